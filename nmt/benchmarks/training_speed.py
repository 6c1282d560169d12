"""Speed of a training, and the fraction of the device's peak that it uses."""

import math
import time
import timeit
import warnings
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from nmt.benchmarks import BenchmarkReport, BenchmarkSetup, markdown_table
from nmt.data.batching import Batch, Batches, collate
from nmt.data.tokenizer import BOS, EOS
from nmt.loading import count_parameters
from nmt.progress import say
from nmt.training.loop import Progress, TrainState, accumulate_gradients, precision_dtype, prefetched_batches
from nmt.training_settings import TrainingSettings

EPOCH = 1
MATMUL_SIDE = {"cuda": 8192, "cpu": 1024, "mps": 2048}  # of the square matrices that are multiplied


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
        pairs, src_pieces, tgt_pieces = (sum(size) for size in zip(*sizes, strict=True))
        source, target = src_pieces / pairs, tgt_pieces / pairs

        say(f"training: {self.warm_up} updates to warm up, {self.updates} timed")
        timed_updates(state, setup.training, self.warm_up)
        seconds = timed_updates(state, setup.training, self.updates).seconds
        pairs_per_update = pairs / self.updates
        pair_flops = flops_per_pair(state, setup.training, round(source), round(target))
        flops, peak = pairs_per_update * pair_flops / seconds, matmul_flops_per_second(device, dtype)
        row = {
            "attention": attention,  # what computed it
            "parameters": count_parameters(state.model),
            "pairs": round(pairs_per_update),
            "source_pieces": source,  # of a pair, </s> included
            "target_pieces": target,
            "update_seconds": seconds,
            "source_pieces_per_second": pairs_per_update * source / seconds,  # padding is no piece
            "target_pieces_per_second": pairs_per_update * target / seconds,
            "flops_per_second": flops,  # of the pieces; none for padding
            "peak_flops_per_second": peak,  # of a product of large matrices in the same type, measured here
            "peak_fraction": flops / peak,
        }
        cells = {
            "attention": attention,
            "parameters": f"{row['parameters'] / 1e6:.1f} M",
            "update": f"{1e3 * seconds:.1f} ms",
            "source/s": f"{row['source_pieces_per_second']:,.0f}",
            "target/s": f"{row['target_pieces_per_second']:,.0f}",
            "TFLOP/s": f"{flops / 1e12:.2f}",
            "peak": f"{peak / 1e12:.2f}",
            "of it": f"{flops / peak:.1%}",
        }
        notes = [
            f"{pairs_per_update:,.0f} pairs an update, {source:.1f} source and {target:.1f} target pieces a pair; "
            f"padding {plan.padding.both:.1%} of the positions",
            "TFLOP/s: 10^12 operations a second that the pieces ask for, forward and backward (torch's counter on a "
            "pair of mean lengths); peak: a product of large matrices in the same type",
        ]
        table = markdown_table(list(cells), [list(cells.values())])
        return BenchmarkReport(table, notes, {"padding": plan.padding.both, "rows": [row]})


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
    # the copy of a number waits for the device
    return 2 * side**3 / min(timeit.repeat(lambda: (a @ b)[0, 0].item(), number=1, repeat=runs))
