"""`python -m nmt.benchmark` as a user runs it."""

import json
from pathlib import Path

import pytest

from tests.conftest import RunProgram
from tests.small_text import SMALL, assert_refused, files, some_slow

QUICK = [*files(), *SMALL, "size.transformer.feed_forward=16", "suite=training", "suite.updates=1", "threads=1"]


@pytest.mark.slow
def test_attention_is_measured_without_any_text_and_drawn(tmp_path: Path, run_program: RunProgram) -> None:
    sizes = ["suite.lengths=[16,32]", "suite.head_size=8", "suite.seconds=0", "threads=1"]
    done = run_program("benchmark", "suite=attention", *sizes, "output=a/attention.json")
    assert done.returncode == 0, done.stderr
    assert "causal, forward and backward, CPU ms: n" in done.stdout
    assert json.loads((tmp_path / "a/attention.json").read_text())["compared_by"] == "cpu_seconds"
    assert (tmp_path / "a/attention.png").exists()
    assert "USDT" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.slow
def test_the_speed_of_a_training_is_measured(text: Path, run_program: RunProgram) -> None:
    quick = [*files(), *SMALL, "suite.updates=1", "suite.warm_up=1", "attention_backend=tiled", "threads=1"]
    done = run_program("benchmark", "suite=training", *quick, f"output={text}/out.json")
    assert done.returncode == 0, done.stderr
    written = (text / "out.json").read_text()
    numbers = json.loads(written)
    assert (numbers["suite"], numbers["experiment"], numbers["data"]) == ("training", "transformer", "text")
    assert "nmt.benchmark" in numbers["provenance"]["command"]
    assert str(text) not in written
    assert (text / "out.md").read_text().startswith(done.stdout)
    (row,) = numbers["rows"]
    assert row["attention"] == "tiled"
    assert 0 < row["peak_fraction"] < 1


REFUSALS = [
    (["suite.updates=0"], ["suite.updates=0"]),
    (["output=b.en/out.json"], ["b.en"]),
    (["suite=fast"], ["suite=fast", "attention, training"]),
]


@pytest.mark.parametrize(("arguments", "parts"), some_slow(REFUSALS, fast=1))
def test_what_cannot_be_measured_is_said_in_a_line(
    text: Path, run_program: RunProgram, arguments: list[str], parts: list[str]
) -> None:
    assert_refused(run_program("benchmark", *QUICK, *arguments), *parts)
