"""The speed of a training, in the pieces and operations that it says."""

from copy import deepcopy
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from nmt.benchmarks import BenchmarkSetup
from nmt.benchmarks.training_speed import TrainingSpeed, flops_per_pair
from nmt.data.batching import Batches
from nmt.data.encoded_pairs import EncodedPairs, Sequences
from nmt.errors import ConfigError
from nmt.evaluation.stored import to_json
from nmt.schema import check
from nmt.settings import TrainingSuite
from nmt.training.loop import TrainState
from nmt.training.schedule import constant
from nmt.training_settings import BatchingSettings, TrainingSettings
from tests.models.tiny import build_tiny

RNG = np.random.default_rng(7)
PAIRS = EncodedPairs(*(Sequences.of([RNG.integers(4, 19, n) for n in RNG.integers(1, 13, 211)]) for _ in range(2)))
SETTINGS = TrainingSettings.defaults(max_updates=1)


class CountedModel:
    """Training states with a tiny model, and how often it is called."""

    def __init__(self) -> None:
        self.calls = 0

    def make_state(self, prepared: object, batches: Batches) -> TrainState:
        model = deepcopy(build_tiny("experiment=transformer"))  # it is kept for other tests
        model.register_forward_hook(self.count)
        return TrainState(model, torch.optim.SGD(model.parameters(), lr=0.01), constant(), batches, None)

    def count(self, *_: object) -> None:
        self.calls += 1


def test_pieces_and_operations_add_up() -> None:
    counted, batching = CountedModel(), BatchingSettings.defaults(tokens=97, pool=101)
    prepared = SimpleNamespace(train=PAIRS)
    bench = BenchmarkSetup(lambda: prepared, counted.make_state, batching, SETTINGS, "cpu", "fp32")  # type: ignore[arg-type,return-value]
    report = TrainingSpeed(updates=2, warm_up=1).run(bench)
    (row,) = report.results["rows"]
    assert row["attention"] == "fused, chosen by auto"
    assert row["source_pieces_per_second"] * row["update_seconds"] == pytest.approx(
        row["pairs"] * row["source_pieces"], rel=0.1
    )
    assert row["peak_fraction"] == row["flops_per_second"] / row["peak_flops_per_second"]
    assert counted.calls == (1 + 1) + (2 + 1) + 1
    to_json(report.results)


def test_operations_are_six_for_each_weight_and_piece_that_meet() -> None:
    state = CountedModel().make_state(None, Batches(PAIRS, BatchingSettings.defaults(tokens=97)))
    model = state.model
    pair_flops = flops_per_pair(state, SETTINGS, 5, 7)
    encoder = sum(p.numel() for p in model.encoder_layers.parameters() if p.dim() == 2)  # type: ignore[operator,union-attr]
    crossing = sum(layer.cross_attention.kv.weight.numel() for layer in model.decoder_layers)  # type: ignore[union-attr]
    decoder = sum(p.numel() for p in model.decoder_layers.parameters() if p.dim() == 2) - crossing  # type: ignore[operator,union-attr]
    output = model.output_layer.weight.numel()  # type: ignore[union-attr]
    products = 6 * (5 * (encoder + crossing) + 7 * (decoder + output))
    assert products <= pair_flops <= 1.3 * products  # and attention itself
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_the_operations_of_a_recurrent_encoder_are_counted(cell: str) -> None:
    model = deepcopy(build_tiny(f"experiment=bahdanau model.cell={cell}"))
    state = TrainState(model, torch.optim.SGD(model.parameters(), lr=0.01), constant(), None, None)  # type: ignore[arg-type]
    encoder = sum(p.numel() for name, p in model.encoder.named_parameters() if p.dim() == 2)  # type: ignore[operator,union-attr]
    assert flops_per_pair(state, SETTINGS, 50, 2) - flops_per_pair(state, SETTINGS, 10, 2) >= 6 * 40 * encoder


@pytest.mark.parametrize("name", ["updates", "warm_up"])
def test_no_updates_are_refused(name: str) -> None:
    settings = {"_target_": f"{TrainingSpeed.__module__}.TrainingSpeed", "updates": 1, "warm_up": 1}
    with pytest.raises(ConfigError, match=rf"^suite\.{name}=0"):
        check(TrainingSuite, settings | {name: 0}, "suite.")
