"""How fast a training runs, and which part of what the device can do it uses."""

import time
from dataclasses import asdict, dataclass

import torch
from torch.utils.flop_counter import FlopCounterMode

from nmt.benchmarks.loading import EPOCH, timed_updates
from nmt.benchmarks.suite import Bench, Report, table
from nmt.data.batching import Batch, Batches, collate
from nmt.data.tokenizer import BOS, EOS
from nmt.errors import require_whole
from nmt.run import count_parameters
from nmt.training.loop import Job, TrainingSettings, one_update, product_type

SIDE = {"cuda": 8192, "cpu": 1024, "mps": 2048}  # of the square matrices that are multiplied


@dataclass(frozen=True)
class Row:
    attention: str  # what computed it
    parameters: int
    pairs: int  # an update, in the mean
    source_pieces: float  # of a pair, </s> included
    target_pieces: float
    update_seconds: float
    source_pieces_per_second: float  # padding is no piece
    target_pieces_per_second: float
    flops_per_second: float  # that the pieces ask for; none for padding
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
class Training:
    """`updates` updates of the model that the settings name, after `warm_up` that are not counted."""

    updates: int
    warm_up: int

    def __post_init__(self) -> None:
        require_whole("suite.updates", self.updates)
        require_whole("suite.warm_up", self.warm_up)

    def run(self, bench: Bench) -> Report:
        device, dtype = torch.device(bench.device), product_type(bench.precision)
        prepared = bench.prepare()
        job = bench.job(prepared, Batches(prepared.train, bench.batching))
        attention = job.model.attention_on(device, dtype)  # type: ignore[operator]
        plan = job.batches.plan(EPOCH)
        each = bench.training.accumulate
        timed = [index % len(plan) for index in range(each, each * (self.updates + 1))]  # after one that warms up
        batches = [collate(prepared.train, plan[index]) for index in timed]
        pairs = sum(len(batch.src) for batch in batches)
        source = sum(int(batch.src_lengths.sum()) for batch in batches) / pairs
        target = sum(int(batch.tgt_lengths.sum()) for batch in batches) / pairs

        bench.say(f"training: {self.warm_up} updates to warm up, {self.updates} timed")
        timed_updates(job, bench.training, self.warm_up)
        seconds = timed_updates(job, bench.training, self.updates).seconds
        an_update = pairs / self.updates
        asked = an_update * flops(job, bench.training, round(source), round(target)) / seconds
        peak = matmul_flops_per_second(device, dtype)
        row = Row(
            attention,
            count_parameters(job.model),
            round(an_update),
            source,
            target,
            seconds,
            an_update * source / seconds,
            an_update * target / seconds,
            asked,
            peak,
            asked / peak,
        )
        notes = [
            f"{an_update:,.0f} pairs an update, {source:.1f} source and {target:.1f} target pieces a pair; "
            f"padding {plan.padding.both:.1%} of the positions",
            "TFLOP/s: 10^12 operations a second that the pieces ask for, forward and backward (torch's counter on a "
            "pair of mean lengths); peak: a product of large matrices in the same type",
        ]
        return Report(table(HEADER, [row.cells()]), notes, {"padding": plan.padding.both, "rows": [asdict(row)]})


def flops(job: Job, settings: TrainingSettings, source: int, target: int) -> int:
    """Operations of forward and backward for a pair of so many pieces."""
    src, tgt = torch.full((1, source), EOS), torch.full((1, target), BOS)
    lengths = torch.tensor([source]), torch.tensor([target])
    with FlopCounterMode(display=False) as counter:
        one_update(job, [Batch(src, tgt, tgt, *lengths)], settings)
    job.model.zero_grad(set_to_none=True)
    return counter.get_total_flops()


def matmul_flops_per_second(device: torch.device, dtype: torch.dtype, runs: int = 10) -> float:
    """The best of some runs."""
    side = SIDE[device.type]
    a, b = torch.randn(2, side, side, device=device, dtype=dtype)
    best = float("inf")
    for _ in range(runs):
        started = time.perf_counter()
        (a @ b)[0, 0].item()  # waits for the device
        best = min(best, time.perf_counter() - started)
    return 2 * side**3 / best
