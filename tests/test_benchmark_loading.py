"""What scripts/benchmark_loading.py reports of batches is what the batches are."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from nmt.benchmarks import BenchmarkSetup, markdown_table
from nmt.data.batching import Batches
from nmt.errors import ConfigError
from nmt.evaluation.stored import to_json
from nmt.training_settings import BatchingSettings, TrainingSettings
from scripts.benchmark_loading import LoadingBenchmark
from tests.benchmarks.test_training_speed import PAIRS, CountedModel
from tests.conftest import run_script
from tests.small_text import SMALL, assert_refused, files

BUDGETS = [97, 401]
QUICK = [*files(), *SMALL, "size.transformer.feed_forward=16", "threads=1", "--updates", "1", "--tokens", "400", "900"]


def make_setup(counted: CountedModel, accumulate: int = 1) -> BenchmarkSetup:
    return BenchmarkSetup(
        prepare=lambda: SimpleNamespace(train=PAIRS),  # type: ignore[arg-type,return-value]
        make_state=counted.make_state,
        batching=BatchingSettings.defaults(tokens=1, pool=101),
        training=TrainingSettings.defaults(max_updates=1, accumulate=accumulate),
        device="cpu",
        precision="fp32",
    )


def test_each_budget_is_a_row_with_the_numbers_of_its_plan(capsys: pytest.CaptureFixture[str]) -> None:
    report = LoadingBenchmark(BUDGETS, updates=2).run(make_setup(CountedModel()))
    rows = report.results["rows"]
    assert [row["tokens"] for row in rows] == BUDGETS
    for row in rows:
        plan = Batches(PAIRS, BatchingSettings.defaults(tokens=row["tokens"], pool=101)).plan(1)
        assert (row["pairs"], row["batches"]) == (len(PAIRS), len(plan))
        assert (row["source_padding"], row["target_padding"], row["padding"]) == plan.padding
        assert 0 <= row["waiting_share"] < 1
        assert row["collating_share"] > 0
    assert len(report.table.split("\n")) == 2 + len(BUDGETS)
    assert "97" in capsys.readouterr().err.split("\n")[0]
    to_json(report.results)


def test_as_many_updates_are_made_as_asked_for_and_one_to_warm_up() -> None:
    counted = CountedModel()
    LoadingBenchmark([97], updates=3).run(make_setup(counted, accumulate=2))
    assert counted.calls == (3 + 1) * 2


@pytest.mark.parametrize(("tokens", "updates", "key"), [([97, 0], 2, "tokens=0"), ([97], 0, "updates=0")])
def test_a_budget_or_a_time_of_nothing_is_refused(tokens: list[int], updates: int, key: str) -> None:
    with pytest.raises(ConfigError, match=f"--{key}"):
        LoadingBenchmark(tokens, updates)


def test_a_table_has_numbers_under_each_other() -> None:
    assert markdown_table(["a", "bbb"], [["100", "2"], ["3", "4"]]) == "\n".join(
        ["|   a |   bbb |", "|----:|------:|", "| 100 |     2 |", "|   3 |     4 |"]
    )


@pytest.mark.slow
def test_a_table_goes_to_stdout_and_the_numbers_with_their_provenance_to_a_file(text: Path) -> None:
    done = run_script("benchmark_loading", text, *QUICK, "--output", f"{text}/out/loading.json")
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
    assert "scripts.benchmark_loading" in numbers["provenance"]["command"]
    assert str(text) not in written


@pytest.mark.slow
def test_what_cannot_be_measured_is_refused_in_a_line(text: Path) -> None:
    assert_refused(run_script("benchmark_loading", text, *files(), "--tokens", "0"), "--tokens=0")
