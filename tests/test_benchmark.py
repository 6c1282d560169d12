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
    cells = [[cell.strip() for cell in line.split("|")[1:]] for line in lines[:4]]
    assert cells[0][:3] == ["tokens", "pairs", "batches"]
    assert [row[0] for row in cells[2:]] == ["400", "900"]
    assert (text / "out" / "loading.md").read_text().startswith(done.stdout)
    written = (text / "out" / "loading.json").read_text()
    numbers = json.loads(written)
    assert (numbers["suite"], numbers["experiment"], numbers["data"]) == ("loading", "transformer", "text")
    assert [row["tokens"] for row in numbers["rows"]] == [400, 900]
    assert "nmt.benchmark" in numbers["record"]["command"]
    assert str(text) not in written


@pytest.mark.slow
def test_preparing_is_measured_as_text_and_as_parquet(text: Path, run_program: RunProgram) -> None:
    sizes = ["suite.pairs=[600,1200]", "suite.vocab_size=320", "suite.updates=1"]
    done = run_program(
        "benchmark", "suite=preparing", "suite.source=b.en", "suite.target=b.fr", *sizes, f"output={text}/out.json",
        env={"HF_HOME": str(text / "hf")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    numbers = json.loads((text / "out.json").read_text())
    assert [(row["form"], row["pairs"]) for row in numbers["rows"]] == [
        ("text", 600), ("text", 1200), ("parquet", 600), ("parquet", 1200),
    ]  # fmt: skip
    assert all(row["pairs_per_second"] > 0 and row["prepare_peak_mb"] > 1 for row in numbers["rows"])
    assert set(numbers["prepare_bytes_per_pair"]) == {"text", "parquet"}
    assert_refused(run_program("benchmark", "suite=preparing"), "suite.source=FILE")


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
    (row,) = json.loads((text / "out.json").read_text())["rows"]
    assert row["attention"] == "tiled"
    assert 0 < row["peak_fraction"] < 1


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
