"""Speed of a training, and the fraction of the device's peak that it uses."""

import math
import time
import warnings
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import NamedTuple

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from nmt.benchmarks import BenchmarkReport, BenchmarkSetup, markdown_table
from nmt.data.batching import Batch, Batches, collate
from nmt.data.tokenizer import BOS, EOS
from nmt.loading import count_parameters
from nmt.training.loop import Progress, TrainState, accumulate_gradients, precision_dtype, prefetched_batches
from nmt.training_settings import TrainingSettings

EPOCH = 1
MATMUL_SIDE = {"cuda": 8192, "cpu": 1024, "mps": 2048}  # of the square matrices that are multiplied


@dataclass(frozen=True)
class TrainingSpeedRow:
    attention: str  # what computed it
    parameters: int
    pairs: int  # an update, in the mean
    source_pieces: float  # of a pair, </s> included
    target_pieces: float
    update_seconds: float
    source_pieces_per_second: float  # padding is no piece
    target_pieces_per_second: float
    flops_per_second: float  # of the pieces; none for padding
    peak_flops_per_second: float  # of a product of large matrices in the same type, measured here
    peak_fraction: float

    def cells(self) -> list[str]:
        return [
            self.attention,
            f"{self.parameters / 1e6:.1f} M",
            f"{1e3 * self.update_seconds:.1f} ms",
            f"{self.source_pieces_per_second:,.0f}",
            f"{self.target_pieces_per_second:,.0f}",
            f"{self.flops_per_second / 1e12:.2f}",
            f"{self.peak_flops_per_second / 1e12:.2f}",
            f"{self.peak_fraction:.1%}",
        ]


HEADER = ["attention", "parameters", "update", "source/s", "target/s", "TFLOP/s", "peak", "of it"]


@dataclass(frozen=True)
class TrainingSpeed:
    """`updates` updates of the model that the settings name, after `warm_up` that are not counted."""

    updates: int
    warm_up: int

    def run(self, setup: BenchmarkSetup) -> BenchmarkReport:
        device, dtype = torch.device(setup.device), precision_dtype(setup.precision)
        prepared = setup.prepare()
        state = setup.make_state(prepared, Batches(prepared.train, setup.batching))
        attention = state.model.describe_attention(device, dtype)  # type: ignore[operator]
        plan = state.batches.plan(EPOCH)
        accumulate = setup.training.accumulate
        timed = [i % len(plan) for i in range(accumulate, accumulate * (self.updates + 1))]  # the first update warms up
        batches = (collate(prepared.train, plan[index]) for index in timed)
        sizes = [(len(batch.src), int(batch.src_lengths.sum()), int(batch.tgt_lengths.sum())) for batch in batches]
        pairs = sum(size[0] for size in sizes)
        source, target = (sum(size[side] for size in sizes) / pairs for side in (1, 2))

        setup.say(f"training: {self.warm_up} updates to warm up, {self.updates} timed")
        if self.warm_up:
            timed_updates(state, setup.training, self.warm_up)
        seconds = timed_updates(state, setup.training, self.updates).seconds
        pairs_per_update = pairs / self.updates
        pair_flops = flops_per_pair(state, setup.training, round(source), round(target))
        flops_per_second = pairs_per_update * pair_flops / seconds
        peak = matmul_flops_per_second(device, dtype)
        row = TrainingSpeedRow(
            attention,
            count_parameters(state.model),
            round(pairs_per_update),
            source,
            target,
            seconds,
            pairs_per_update * source / seconds,
            pairs_per_update * target / seconds,
            flops_per_second,
            peak,
            flops_per_second / peak,
        )
        notes = [
            f"{pairs_per_update:,.0f} pairs an update, {source:.1f} source and {target:.1f} target pieces a pair; "
            f"padding {plan.padding.both:.1%} of the positions",
            "TFLOP/s: 10^12 operations a second that the pieces ask for, forward and backward (torch's counter on a "
            "pair of mean lengths); peak: a product of large matrices in the same type",
        ]
        return BenchmarkReport(
            markdown_table(HEADER, [row.cells()]), notes, {"padding": plan.padding.both, "rows": [asdict(row)]}
        )


class UpdateTimes(NamedTuple):
    """Means over some updates, in seconds."""

    seconds: float  # of an update, from the end of the one before
    waiting: float  # for its batches, within that


def timed_updates(state: TrainState, settings: TrainingSettings, count: int) -> UpdateTimes:
    """Updates as a training makes them, after a first one, which warms up."""
    state.model.train()
    started = waiting = 0.0
    with closing(prefetched_batches(state, Progress(epoch=EPOCH), ahead=settings.accumulate + 1)) as stream:
        for update in range(count + 1):
            if update == 1:
                started, waiting = time.perf_counter(), 0.0
            asked = time.perf_counter()
            batches = [next(stream)[-1] for _ in range(settings.accumulate)]
            waiting += time.perf_counter() - asked
            accumulate_gradients(state, batches, settings)
            norm = nn.utils.clip_grad_norm_(state.model.parameters(), settings.clip_norm or math.inf)
            state.optimizer.step()
            state.optimizer.zero_grad(set_to_none=True)
            norm.item()  # waits for the device
        return UpdateTimes((time.perf_counter() - started) / count, waiting / count)


def flops_per_pair(state: TrainState, settings: TrainingSettings, source: int, target: int) -> int:
    """Operations of forward and backward for a pair of so many pieces."""
    src, tgt = torch.full((1, source), EOS), torch.full((1, target), BOS)
    lengths = torch.tensor([source]), torch.tensor([target])
    # oneDNN's LSTM is one operation that the counter does not know; without it the products are counted
    with warnings.catch_warnings(action="ignore"), torch.backends.mkldnn.flags(enabled=False):
        with FlopCounterMode(display=False) as counter:
            accumulate_gradients(state, [Batch(src, tgt, tgt, *lengths)], settings)
    state.model.zero_grad(set_to_none=True)
    return counter.get_total_flops()


def matmul_flops_per_second(device: torch.device, dtype: torch.dtype, runs: int = 10) -> float:
    """The best of some runs."""
    side = MATMUL_SIDE[device.type]
    a, b = torch.randn(2, side, side, device=device, dtype=dtype)
    best = float("inf")
    for _ in range(runs):
        started = time.perf_counter()
        (a @ b)[0, 0].item()  # waits for the device
        best = min(best, time.perf_counter() - started)
    return 2 * side**3 / best
