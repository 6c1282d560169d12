"""What batches cost a training: padding, the time to plan an epoch, and the time an update waits for its batch."""

import math
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from typing import NamedTuple

import torch
from torch import nn

from nmt.benchmarks.suite import Bench, Report, table
from nmt.data.batching import Batches, collate
from nmt.data.encoded import EncodedPairs
from nmt.data.plan import Plan
from nmt.data.prepared import Prepared
from nmt.errors import require_whole
from nmt.run import count_parameters
from nmt.training.loop import Job, Progress, TrainingSettings, one_update, ready_batches

EPOCH = 1


class Updates(NamedTuple):
    """Means over some updates, in seconds."""

    seconds: float  # of an update, from the end of the one before
    waiting: float  # for its batches, within that


@dataclass(frozen=True)
class Row:
    """One budget."""

    tokens: int
    pairs: int
    batches: int  # an epoch
    source_padding: float  # shares of the positions
    target_padding: float
    padding: float
    plan_seconds: float  # for an epoch
    plan_cpu_seconds: float
    update_seconds: float
    waiting_share: float  # of the time of an update: until its batches are there
    collating_share: float  # the CPU time of making them, in the time of an update; other threads go on meanwhile

    def cells(self) -> list[str]:
        return [
            f"{self.tokens:,}",
            f"{self.pairs:,}",
            f"{self.batches:,}",
            *(f"{100 * share:.2f}%" for share in (self.source_padding, self.target_padding, self.padding)),
            f"{self.plan_cpu_seconds:.3f} s",
            f"{self.update_seconds:.3f} s",
            f"{100 * self.waiting_share:.3f}%",
            f"{100 * self.collating_share:.3f}%",
        ]


HEADER = ["tokens", "pairs", "batches", "padding: source", "target", "both", "plan", "update", "waiting", "collating"]


@dataclass(frozen=True)
class Loading:
    """Each budget of `tokens` in turn, over `updates` updates after a first one that is not counted."""

    tokens: Sequence[int]
    updates: int

    def __post_init__(self) -> None:
        for budget in self.tokens:
            require_whole("suite.tokens", budget)
        require_whole("suite.updates", self.updates)

    def run(self, bench: Bench) -> Report:
        prepared = bench.prepare()
        rows, parameters = [], 0
        for tokens in self.tokens:
            bench.say(f"loading: {tokens:,} tokens a batch")
            job = bench.job(prepared, Batches(prepared.train, replace(bench.batching, tokens=tokens)))
            parameters = count_parameters(job.model)
            rows.append(self._measured(job, prepared, bench))
            bench.say(f"loading: {self.updates} updates of {rows[-1].update_seconds:.3f} s")
        results = {
            "parameters": parameters,
            "updates": self.updates,
            "threads": torch.get_num_threads(),
            "rows": [asdict(row) for row in rows],
        }
        notes = [
            "plan: CPU time for an epoch; waiting, collating (CPU time, in a thread beside): shares of an update",
            f"update: {'bf16' if job.precision == 'bf16' else 'fp32'}, {parameters:,} parameters, "
            f"{torch.get_num_threads()} threads, {job.device}",
        ]
        return Report(table(HEADER, [row.cells() for row in rows]), notes, results)

    def _measured(self, job: Job, prepared: Prepared, bench: Bench) -> Row:
        plan, seconds, cpu_seconds = timed(lambda: job.batches.plan(EPOCH))
        updates = timed_updates(job, bench.training, self.updates)
        collating = collating_seconds(job.batches, prepared.train, self.updates)
        return Row(
            tokens=job.batches.settings.tokens,
            pairs=len(prepared.train),
            batches=len(plan),
            source_padding=plan.padding.source,
            target_padding=plan.padding.target,
            padding=plan.padding.both,
            plan_seconds=seconds,
            plan_cpu_seconds=cpu_seconds,
            update_seconds=updates.seconds,
            waiting_share=updates.waiting / updates.seconds,
            collating_share=bench.training.accumulate * collating / updates.seconds,
        )


def timed(make: Callable[[], Plan]) -> tuple[Plan, float, float]:
    """What is made; seconds; CPU seconds of this thread."""
    wall, cpu = time.perf_counter(), time.thread_time()
    made = make()
    return made, time.perf_counter() - wall, time.thread_time() - cpu


def timed_updates(job: Job, settings: TrainingSettings, count: int) -> Updates:
    """Updates as a training makes them, after a first one, which warms up."""
    job.model.train()
    started = waiting = 0.0
    with closing(ready_batches(job, Progress(epoch=EPOCH), ahead=settings.accumulate + 1)) as stream:
        for update in range(count + 1):
            if update == 1:
                started, waiting = time.perf_counter(), 0.0
            asked = time.perf_counter()
            batches = [next(stream)[-1] for _ in range(settings.accumulate)]
            waiting += time.perf_counter() - asked
            one_update(job, batches, settings)
            norm = nn.utils.clip_grad_norm_(job.model.parameters(), settings.clip_norm or math.inf)
            job.optimizer.step()
            job.optimizer.zero_grad(set_to_none=True)
            norm.item()  # waits for the device
        return Updates((time.perf_counter() - started) / count, waiting / count)


def collating_seconds(batches: Batches, pairs: EncodedPairs, count: int) -> float:
    """CPU seconds to make a batch of the plan, over the first `count`."""
    plan = batches.plan(EPOCH)
    chosen = [plan[number] for number in range(min(count, len(plan)))]
    started = time.thread_time()
    for indices in chosen:
        collate(pairs, indices)
    return (time.thread_time() - started) / len(chosen)
