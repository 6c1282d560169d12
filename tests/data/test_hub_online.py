"""Datasets by name: from a hub of the test's own, from the cache without one, and what the programs say of both."""

import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from nmt.cli import conf_dir
from nmt.data.hub import HubCorpus
from nmt.errors import ConfigError
from nmt.schema import check
from nmt.training_settings import HubSettings
from tests.conftest import RunProgram, program_environment
from tests.data.fake_hub import FakeHub, commit, serving
from tests.small_text import SMALL, assert_refused

# `datasets` reads HF_HOME and HF_ENDPOINT once, when it is imported: each case list has an interpreter of its own.
READ = """
import json, sys, time
import datasets  # takes a second or more, which is not what `seconds` are about
from nmt.data.hub import HubCorpus
from nmt.errors import UserError
for settings in json.load(sys.stdin):
    start = time.monotonic()
    try:
        corpus = HubCorpus(**{"source": "en", "target": "fr", **settings})
        said = {"train": list(corpus.train()), "valid": list(corpus.valid()), "facts": corpus.provenance()}
    except UserError as error:
        said = {"error": str(error), "code": error.code}
    print(json.dumps({**said, "seconds": time.monotonic() - start}))
"""
CARD = "---\nconfigs:\n" + "".join(
    f"- config_name: {name}\n  data_files:\n  - split: train\n    path: {name}/train-*\n"
    f"  - split: validation\n    path: {name}/validation-*\n"
    for name in ("cs-en", "fr-en")
)


def parquet(*rows: tuple[str, str]) -> bytes:
    stream = io.BytesIO()
    pq.write_table(pa.table({"translation": pa.array([{"en": row[0], "fr": row[1]} for row in rows])}), stream)
    return stream.getvalue()


def configuration(name: str) -> dict[str, bytes]:
    splits = {"train": parquet((f"{name} one", "un"), ("two", "deux")), "validation": parquet(("three", "trois"))}
    return {f"{name}/{split}-00000-of-00001.parquet": content for split, content in splits.items()}


@pytest.fixture(scope="module")
def hub() -> Iterator[FakeHub]:
    talks = "IWSLT/iwslt2017"
    datasets = {
        ("wmt/wmt14", "main"): {
            "README.md": f"{CARD}---\n".encode(),
            **configuration("cs-en"),
            **configuration("fr-en"),
        },
        (talks, "main"): {"README.md": b"# talks\n", "iwslt2017.py": b"raise SystemExit\n"},
        (talks, "refs/convert/parquet"): {
            f"{name}/{split}/0000.parquet": parquet((name, split))
            for name in ("iwslt2017-de-en", "iwslt2017-fr-en")
            for split in ("train", "validation")
        },
        ("own/table", "main"): {"train.csv": b"en,fr\nNA,7\n"},
    }
    refusals = {"own/gated": (403, "GatedRepo"), "own/private": (401, "RepoNotFound")}
    with serving(FakeHub(datasets, refusals)) as served:
        yield served


def read(home: Path, *settings: dict[str, Any], **environment: str) -> list[dict[str, Any]]:
    """What HubCorpus(**settings) gives or says, each in turn; HF_HOME is a folder of the test's own."""
    done = subprocess.run(
        [sys.executable, "-c", READ],
        input=json.dumps(settings),
        capture_output=True,
        text=True,
        env=program_environment() | {"HF_HOME": str(home), **environment},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert all(": fetched and converted once, into " in line for line in done.stderr.split("\n")[:-1])
    return [json.loads(line) for line in done.stdout.split("\n")[:-1]]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hf")


def test_what_was_fetched_once_is_there_without_a_network(hub: FakeHub, home: Path) -> None:
    wanted = {"path": "wmt/wmt14", "name": "fr-en"}
    (online,) = read(home, wanted, HF_ENDPOINT=hub.url)
    assert online["train"] == [["fr-en one", "un", []], ["two", "deux", []]]
    assert online["valid"] == [["three", "trois", []]]
    assert online["facts"]["pairs"] == {"train": 2, "validation": 1}
    assert online["facts"]["commit"] == commit("wmt/wmt14")
    for offline in ({"HF_HUB_OFFLINE": "1"}, {"HF_ENDPOINT": "http://127.0.0.1:9"}):
        again, other = read(home, wanted, {"path": "wmt/wmt14", "name": "cs-en"}, **offline)
        assert {**again, "seconds": 0} == {**online, "seconds": 0}
        assert "cannot reach the hub for wmt/wmt14" in other["error"]


def test_answers_of_the_hub_become_one_line_each(hub: FakeHub, home: Path) -> None:
    talks = {"path": "IWSLT/iwslt2017", "name": "iwslt2017-de-en"}
    cases: list[tuple[dict[str, Any], str]] = [
        ({"path": "wmt/wmt14"}, "has several configurations; choose data.name, one of: cs-en, fr-en"),
        ({"path": "wmt/wmt14", "name": "xx"}, "has no configuration xx; choose data.name, one of: cs-en, fr-en"),
        (talks, "has a loading script, which is not run; the hub's own conversion may be there: data.revision=refs/c"),
        ({**talks, "name": None, "revision": "refs/convert/parquet"}, "one of: iwslt2017-de-en, iwslt2017-fr-en"),
        ({**talks, "name": "xx", "revision": "refs/convert/parquet"}, "no configuration xx; choose data.name, one of:"),
        ({"path": "own/table", "name": "xx"}, "own/table has no configuration xx, and no others: data.name=null"),
        ({"path": "own/table", "revision": "old"}, "data.revision is a branch, a tag or a commit of own/table"),
        ({"path": "own/gated"}, "own/gated is a gated dataset: ask for access at https://huggingface.co/datasets/own/"),
        ({"path": "own/private"}, "there is no dataset own/private on the hub, or it is a private one"),
        ({"path": "own/nothing"}, "there is no dataset own/nothing on the hub"),
        ({"path": "own/table", "source": "xx"}, "has no column xx; there are: en, fr"),
    ]
    results = read(home, *(settings for settings, _ in cases), HF_ENDPOINT=hub.url)
    for (settings, message), said in zip(cases, results, strict=True):
        assert message in said.get("error", "no error"), settings
        assert "\n" not in said["error"]


def test_a_branch_of_folders_without_a_card_has_its_configurations_there(hub: FakeHub, home: Path) -> None:
    converted = {"path": "IWSLT/iwslt2017", "name": "iwslt2017-de-en", "revision": "refs/convert/parquet"}
    talks, table = read(home, converted, {"path": "own/table"}, HF_ENDPOINT=hub.url)
    assert talks["train"] == [["iwslt2017-de-en", "train", []]]
    assert talks["valid"] == [["iwslt2017-de-en", "validation", []]]
    assert table["train"] == [["NA", "7", []]]


@pytest.mark.parametrize("environment", [{"HF_HUB_OFFLINE": "1"}, {"HF_DATASETS_OFFLINE": "1"}, {}])
def test_out_of_reach_is_said_within_seconds_with_what_to_do(tmp_path: Path, environment: dict[str, str]) -> None:
    refused = {"HF_ENDPOINT": "http://127.0.0.1:9", **environment}  # nothing listens there
    (said,) = read(tmp_path, {"path": "wmt/wmt14", "name": "fr-en"}, **refused)
    reason = "OFFLINE is set" if environment else "Connection refused"
    for part in (
        "cannot reach the hub for wmt/wmt14 (",
        reason,
        "python -m nmt.prepare data=..., then copy its folder",
    ):
        assert part in said["error"]
    assert said["seconds"] < 10


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"path": None}, r"data=hub needs data\.path"),
        ({"source": None}, r"data=hub needs data\.source and data\.target"),
        ({"train_split": None}, r"data\.train_split=null"),
    ],
)
def test_settings_that_name_no_text_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        HubCorpus(**{"path": "wmt/wmt14", "source": "en", "target": "fr", **settings})


def test_a_subset_is_the_first_pairs_or_random_ones() -> None:
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        values: Any = OmegaConf.to_container(compose("prepare", ["data=hub"]).data)
    with pytest.raises(ConfigError, match=r"^data\.subset=last: give first or random$"):
        check(HubSettings, values | {"subset": "last"}, "data.")


def test_a_name_on_the_hub_has_an_identity_without_being_looked_for() -> None:
    corpus = HubCorpus("wmt/wmt14", "fr-en", "en", "fr", revision="abc")
    identity = corpus.identity()
    assert {key: identity[key] for key in ("path", "name", "revision", "columns", "train_split")} == {
        "path": "wmt/wmt14", "name": "fr-en", "revision": "abc", "columns": ["en", "fr"], "train_split": "train",
    }  # fmt: skip


FACTS = {
    "wmt14_en_fr": ("wmt/wmt14", "fr-en", "en", "fr"),
    "wmt14_fr_en": ("wmt/wmt14", "fr-en", "fr", "en"),
    "wmt14_en_de": ("wmt/wmt14", "de-en", "en", "de"),
    "wmt14_de_en": ("wmt/wmt14", "de-en", "de", "en"),
    "wmt16_de_en": ("wmt/wmt16", "de-en", "de", "en"),
    "iwslt2017_de_en": ("IWSLT/iwslt2017", "iwslt2017-de-en", "de", "en"),
    "multi30k_de_en": ("bentrevett/multi30k", None, "de", "en"),
}


@pytest.mark.parametrize("name", FACTS)
def test_shipped_datasets_are_named_as_on_the_hub(name: str) -> None:
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        cfg = compose("train", ["experiment=rnn", f"data={name}"], return_hydra_config=True)
    data = cfg.data
    assert (data.path, data.name, data.source, data.target) == FACTS[name]
    assert (data.train_split, data.valid_split, data.test_split) == ("train", "validation", "test")
    assert data.revision == ("refs/convert/parquet" if name.startswith("iwslt") else None)
    assert data.url.startswith("https://")
    assert cfg.hydra.runtime.choices["data"] == name  # the folder under outputs/
    if name.startswith("wmt"):
        assert (cfg.tokenizer.vocab_size, cfg.batching.tokens, cfg.training.max_updates) == (32000, 25000, 100000)


def write_copy(folder: Path, sizes: dict[str, int]) -> None:
    """The configuration fr-en with so many invented pairs in each split, none of them twice."""
    for split, size in sizes.items():
        rows = [
            (f"the {split} man\u0085 {i} sees the dog {i % 17}", f"l homme {split} {i}\u2028 voit") for i in range(size)
        ]
        file = folder / "fr-en" / f"{split}-00000-of-00001.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(parquet(*rows))


@pytest.mark.slow
def test_a_shipped_dataset_trains_from_a_local_copy_offline(run_program: RunProgram, tmp_path: Path) -> None:
    write_copy(tmp_path / "my data" / "wmt14 été", {"train": 211, "validation": 13, "test": 7})
    data = ["data=wmt14_en_fr", "data.path=my data/wmt14 été", "data.max_pairs=101", "tokenizer.shrink=true"]
    offline = {"HF_HOME": str(tmp_path / "hf"), "HF_HUB_OFFLINE": "1"}
    done = run_program("train", "experiment=rnn", *data, *SMALL, "run_dir=run", env=offline)
    assert done.returncode == 0, done.stderr
    facts = json.loads((tmp_path / "run" / "data.json").read_text(encoding="utf-8"))
    assert (facts["train"]["read"], facts["valid"]["read"]) == (101, 13)
    assert facts["corpus"]["config"] == "fr-en"
    assert str(tmp_path) not in json.dumps(facts)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (["data=wmt14_en_fr"], "cannot reach the hub for wmt/wmt14"),
        (["data=wmt14_en_fr", "data.path=none/of/these.parquet"], "no file or folder none/of/these.parquet"),
    ],
)
def test_preparing_without_its_text_ends_with_one_line(run_program: RunProgram, data: list[str], message: str) -> None:
    done = run_program("prepare", *data, env={"HF_HOME": "hf", "HF_HUB_OFFLINE": "1"})
    assert_refused(done, message)


def test_importing_the_corpus_costs_no_library() -> None:
    code = "import sys, nmt.data.hub; print({'datasets', 'pyarrow', 'pandas', 'huggingface_hub'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=program_environment())
    assert done.stdout == "set()\n", done.stderr


@pytest.mark.network
def test_the_hub_itself_gives_multi30k(tmp_path: Path) -> None:
    (said,) = read(tmp_path, {"path": "bentrevett/multi30k", "source": "de", "target": "en"})
    assert (len(said["train"]), len(said["valid"])) == (29000, 1014)
