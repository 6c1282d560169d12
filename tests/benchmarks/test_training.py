"""The speed of a training, in the pieces and operations that it says."""

from types import SimpleNamespace

import pytest

from nmt.benchmarks.suite import Bench
from nmt.benchmarks.training import Training, flops
from nmt.data.batching import Batches, BatchingSettings
from nmt.errors import ConfigError
from nmt.evaluation.store import to_json
from nmt.training.loop import TrainingSettings
from tests.benchmarks.test_loading import PAIRS, Counted

SETTINGS = TrainingSettings(max_updates=1)


def test_pieces_and_operations_add_up() -> None:
    counted, batching = Counted(), BatchingSettings(tokens=97, pool=101)
    bench = Bench(lambda: SimpleNamespace(train=PAIRS), counted.job, batching, SETTINGS, "cpu", "fp32", lambda _: None)  # type: ignore[arg-type,return-value]
    report = Training(updates=2, warm_up=1).run(bench)
    (row,) = report.results["rows"]
    assert row["attention"] == "fused, chosen by auto"
    assert row["source_pieces_per_second"] * row["update_seconds"] == pytest.approx(
        row["pairs"] * row["source_pieces"], rel=0.1
    )
    assert row["peak_fraction"] == row["flops_per_second"] / row["peak_flops_per_second"]
    assert counted.calls == (1 + 1) + (2 + 1) + 1
    to_json(report.results)


def test_operations_are_six_for_each_weight_and_piece_that_meet() -> None:
    job = Counted().job(None, Batches(PAIRS, BatchingSettings(tokens=97)))
    model = job.model
    one = flops(job, SETTINGS, 5, 7)
    encoder = sum(p.numel() for p in model.encoder.parameters() if p.dim() == 2)  # type: ignore[operator,union-attr]
    crossing = sum(layer.cross.kv.weight.numel() for layer in model.decoder)  # type: ignore[union-attr]
    decoder = sum(p.numel() for p in model.decoder.parameters() if p.dim() == 2) - crossing  # type: ignore[operator,union-attr]
    output = model.output.weight.numel()  # type: ignore[union-attr]
    products = 6 * (5 * (encoder + crossing) + 7 * (decoder + output))
    assert products <= one <= 1.3 * products  # and attention itself
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize("name", ["updates", "warm_up"])
def test_no_updates_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"suite\.{name}=0"):
        Training(**({"updates": 1, "warm_up": 1} | {name: 0}))
