"""`python -m nmt.benchmark` as a user runs it."""

import json
from pathlib import Path

import pytest

from tests.conftest import RunProgram
from tests.small_text import SMALL, assert_refused, files, some_slow

QUICK = [*files(), *SMALL, "size.transformer.feed_forward=16", "suite.updates=1", "suite.tokens=[400,900]", "threads=1"]


def test_a_table_goes_to_stdout_and_the_numbers_with_their_record_to_a_file(
    text: Path, run_program: RunProgram
) -> None:
    done = run_program("benchmark", "suite=loading", *QUICK, f"output={text}/out/loading.json")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.split("\n")
    assert lines[0].split()[:3] == ["tokens", "pairs", "batches"]
    assert [line.split()[0] for line in lines[1:3]] == ["400", "900"]
    written = (text / "out" / "loading.json").read_text()
    numbers = json.loads(written)
    assert (numbers["suite"], numbers["experiment"], numbers["data"]) == ("loading", "transformer", "text")
    assert [row["tokens"] for row in numbers["rows"]] == [400, 900]
    assert "nmt.benchmark" in numbers["record"]["command"]
    assert str(text) not in written


REFUSALS = [
    (["suite.tokens=[0]"], ["suite.tokens=0"]),
    (["output=b.en/out.json"], ["b.en"]),
    (["suite=fast"], ["suite=fast", "loading"]),
]


@pytest.mark.parametrize(("arguments", "parts"), some_slow(REFUSALS, fast=1))
def test_what_cannot_be_measured_is_said_in_a_line(
    text: Path, run_program: RunProgram, arguments: list[str], parts: list[str]
) -> None:
    assert_refused(run_program("benchmark", *QUICK, *arguments), *parts)
