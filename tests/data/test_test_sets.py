"""Test sets by sacreBLEU's names, from a folder filled beforehand; and what is said where they cannot be had."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from nmt.data.test_sets import set_names, short_name
from tests.conftest import program_environment
from tests.sacrebleu_folder import write_set

# sacreBLEU reads SACREBLEU once, when it is imported: a new interpreter for each folder.
READ = """
import io, json, sys, urllib.request
from nmt.data.test_sets import sacrebleu_test_sets
from nmt.errors import UserError
junk, *cases = json.load(sys.stdin)
if junk:
    urllib.request.urlopen = lambda url: io.BytesIO(b"no archive")
for case in cases:
    try:
        sets = sacrebleu_test_sets(*case)
        said = {name: [one.name, one.sources, one.references] for name, one in sets.items()}
    except UserError as error:
        said = {"error": str(error), "code": error.code}
    print(json.dumps(said))
"""


def read(environment: dict[str, str], *cases: Sequence[Any], junk: bool = False) -> list[dict[str, Any]]:
    """sacrebleu_test_sets(*case) for each case; with `junk` whatever is fetched is no archive."""
    done = subprocess.run(
        [sys.executable, "-c", READ],
        input=json.dumps([junk, *cases]),
        capture_output=True,
        text=True,
        env=program_environment() | environment,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.split("\n")[:-1]]


def test_sources_and_all_references_come_as_they_are(tmp_path: Path) -> None:
    source = ["a\u0085b\u2028c", " two  spaces ", "three\x0c"]
    write_set(tmp_path, "wmt14/full", "en-fr", {"src": source, "ref": ["un", "deux", "trois"]})
    two = {"src": ["hello"], "ref:0": ["hei"], "ref:1": ["moi"]}
    environment = write_set(tmp_path, "wmt17/tworefs", "en-fi", two)
    one, both = read(environment, (["wmt14/full"], "en", "fr"), (["wmt17/tworefs", "wmt17/tworefs"], "en", "fi"))
    assert one == {"wmt14-full": ["wmt14-full", source, [["un", "deux", "trois"]]]}
    assert both == {"wmt17-tworefs": ["wmt17-tworefs", ["hello"], [["hei"], ["moi"]]]}


def test_what_sacrebleu_does_not_know_is_said_with_what_it_does(tmp_path: Path) -> None:
    environment = write_set(tmp_path, "wmt14/full", "en-fr", {"src": ["a"], "ref": ["b"]})
    cases: list[tuple[list[str], str, str]] = [
        (["wmt14/ful"], "en", "fr"),
        (["zzz"], "en", "fr"),
        (["wmt14/full", "wmt14"], "en", "xx"),
        (["wmt14/full"], "", ""),
    ]
    near, far, pair, unsaid = [one["error"] for one in read(environment, *cases)]
    assert near.startswith("sacreBLEU has no test set wmt14/ful; the nearest: wmt14/full")
    assert far.startswith("sacreBLEU has no test set zzz; it has: wmt24, ")
    assert pair.startswith("wmt14/full has no pair en-xx; it has: cs-en, ")
    assert "the corpus does not say which" in unsaid
    assert {one["code"] for one in read(environment, *cases)} == {2}


def test_without_a_network_the_place_to_copy_to_is_said(tmp_path: Path) -> None:
    environment = write_set(tmp_path, "wmt14/full", "en-fr", {"src": ["a"], "ref": ["b"]})
    (said,) = read(environment, (["wmt13"], "en", "fr"))
    assert said["error"].startswith("cannot fetch wmt13 (")
    assert "Connection refused" in said["error"]
    assert f"sacreBLEU keeps it in {tmp_path / 'wmt13'}: copy that folder" in said["error"]
    assert "SACREBLEU" in said["error"]


@pytest.mark.parametrize("reference", [[], ["un", "deux"]])
def test_files_of_different_lengths_are_damaged(tmp_path: Path, reference: list[str]) -> None:
    environment = write_set(tmp_path, "wmt14/full", "en-fr", {"src": ["a"], "ref": reference})
    (said,) = read(environment, (["wmt14/full"], "en", "fr"))
    assert f"wmt14_full.en-fr.ref has {len(reference)} lines" in said["error"]
    assert f"delete {tmp_path / 'wmt14' / 'full'} and start again" in said["error"]


def test_what_was_fetched_and_is_no_archive_is_damaged_then_and_later(tmp_path: Path) -> None:
    environment = {"SACREBLEU": str(tmp_path)}
    first, later = read(environment, (["wmt14/full"], "en", "fr"), (["wmt14/full"], "en", "fr"), junk=True)
    assert "MD5 sum" in first["error"]
    for said in (first, later):
        assert "\n" not in said["error"]
        assert f"delete {tmp_path / 'wmt14' / 'full'} and start again" in said["error"]


@pytest.mark.parametrize(
    ("value", "names"),
    [
        (None, []),
        ("wmt14/full", ["wmt14/full"]),
        ("wmt13, wmt14/full,wmt13", ["wmt13", "wmt14/full"]),
        (["wmt13", "wmt14/full"], ["wmt13", "wmt14/full"]),
    ],
)
def test_names_may_be_one_or_many(value: Any, names: list[str]) -> None:
    assert set_names(value) == names


def test_a_name_that_names_files_has_no_slash() -> None:
    assert short_name("wmt20/robust/set1") == "wmt20-robust-set1"
