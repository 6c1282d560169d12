"""What the suite says about batches is what the batches are."""

from copy import deepcopy
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from nmt.benchmarks.loading import Loading
from nmt.benchmarks.suite import Bench, table
from nmt.data.batching import Batches, BatchingSettings
from nmt.data.encoded import EncodedPairs, Sequences
from nmt.errors import ConfigError
from nmt.evaluation.store import to_json
from nmt.training.loop import Job, TrainingSettings
from nmt.training.schedule import constant
from tests.models.tiny import build_tiny

RNG = np.random.default_rng(7)
PAIRS = EncodedPairs(*(Sequences.of([RNG.integers(4, 19, n) for n in RNG.integers(1, 13, 211)]) for _ in range(2)))
BUDGETS = [97, 401]


class Counted:
    """Jobs with a tiny model, and how often it is called."""

    def __init__(self) -> None:
        self.calls = 0

    def job(self, prepared: object, batches: Batches) -> Job:
        model = deepcopy(build_tiny("experiment=transformer"))  # it is kept for other tests
        model.register_forward_hook(self.count)
        return Job(model, torch.optim.SGD(model.parameters(), lr=0.01), constant(), batches, None)

    def count(self, *_: object) -> None:
        self.calls += 1


def bench(counted: Counted, said: list[str], accumulate: int = 1) -> Bench:
    return Bench(
        prepare=lambda: SimpleNamespace(train=PAIRS),  # type: ignore[arg-type,return-value]
        job=counted.job,
        batching=BatchingSettings(tokens=1, pool=101),
        training=TrainingSettings(max_updates=1, accumulate=accumulate),
        device="cpu",
        precision="fp32",
        say=said.append,
    )


def test_each_budget_is_a_row_with_the_numbers_of_its_plan() -> None:
    said: list[str] = []
    report = Loading(BUDGETS, updates=2).run(bench(Counted(), said))
    rows = report.results["rows"]
    assert [row["tokens"] for row in rows] == BUDGETS
    for row in rows:
        plan = Batches(PAIRS, BatchingSettings(tokens=row["tokens"], pool=101)).plan(1)
        assert (row["pairs"], row["batches"]) == (len(PAIRS), len(plan))
        assert (row["source_padding"], row["target_padding"], row["padding"]) == plan.padding
        assert 0 <= row["waiting_share"] < 1
        assert row["collating_share"] > 0
    assert len(report.table.split("\n")) == 2 + len(BUDGETS)
    assert "97" in said[0]
    to_json(report.results)


def test_as_many_updates_are_made_as_asked_for_and_one_to_warm_up() -> None:
    counted = Counted()
    Loading([97], updates=3).run(bench(counted, [], accumulate=2))
    assert counted.calls == (3 + 1) * 2


@pytest.mark.parametrize(("tokens", "updates", "key"), [([97, 0], 2, "tokens=0"), ([97], 0, "updates=0")])
def test_a_budget_or_a_time_of_nothing_is_refused(tokens: list[int], updates: int, key: str) -> None:
    with pytest.raises(ConfigError, match=f"suite.{key}"):
        Loading(tokens, updates)


def test_a_table_has_numbers_under_each_other() -> None:
    assert table(["a", "bbb"], [["100", "2"], ["3", "4"]]) == "\n".join(
        ["|   a | bbb |", "| --: | --: |", "| 100 |   2 |", "|   3 |   4 |"]
    )
