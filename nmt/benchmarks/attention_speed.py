"""Time and peak memory of the attention backends against length, as ratios to `explicit`."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import psutil
import torch

from nmt.benchmarks import BenchmarkReport, BenchmarkSetup, markdown_table
from nmt.errors import ConfigError
from nmt.models.backends import Kernels, available_backends
from nmt.models.backends.masks import AttentionMask
from nmt.models.backends.packing import PackedBatch
from nmt.progress import say
from nmt.study.figures import COLOURS, FONT, save_chart
from nmt.training.loop import precision_dtype

BASELINE = "explicit"
FIT_FROM_LENGTH = 1024  # the exponents are fitted on lengths from here on
MEMORY_MEASURED_BY = {
    "cpu": "torch.profiler: the running sum of what the CPU allocator gives out and takes back, at its highest",
    "cuda": "torch.cuda.max_memory_allocated above what was allocated before",
}
Work = Callable[[], object]


class AttentionCase(NamedTuple):
    causal: bool
    backward: bool  # forward and backward; else forward alone, without a gradient

    def __str__(self) -> str:
        return f"{'causal' if self.causal else 'not causal'}, forward{' and backward' if self.backward else ''}"


CASES = [AttentionCase(causal, backward) for causal in (False, True) for backward in (False, True)]


class Measurement(NamedTuple):
    seconds: float  # the fastest of `runs`
    runs: int
    peak_bytes: int
    faster: float | None  # than explicit in the same case, at the same length
    smaller: float | None


Points = dict[tuple[str, AttentionCase, int], Measurement]  # by backend, case and length


@dataclass(frozen=True)
class AttentionSpeed:
    """Self-attention of `batch` sentences of one length, for each of `lengths` that the device allows."""

    lengths: Sequence[int]
    heads: int
    head_size: int
    batch: int
    window: int
    backends: Sequence[str] | None  # null: all that run on the device
    seconds: float  # of runs for each point, at least

    def run(self, setup: BenchmarkSetup) -> BenchmarkReport:
        device, dtype = torch.device(setup.device), precision_dtype(setup.precision)
        # on one CPU thread the process's own CPU time counts, which other programs do not change
        by_cpu_clock = device.type == "cpu" and torch.get_num_threads() == 1
        all_kernels, skipped = self._available_kernels(device, dtype)
        points: Points = {}
        for n in self.lengths:
            for (name, kernels), case in product(all_kernels.items(), CASES):
                shorter = [(length, point) for (*key, length), point in points.items() if key == [name, case]]
                needed = shorter[-1][1].peak_bytes * (n / shorter[-1][0]) ** 2 if shorter else 0.0  # if it grows as n^2
                if needed > free_bytes(device):
                    skipped.append(f"{name} at {n:,} ({case}) would need about {needed / 2**30:.1f} GiB: left out")
                    continue
                work = self._work(kernels, case, n, device, dtype)
                peak = peak_bytes(work, device)  # also warms up
                seconds, runs = time_work(work, device, self.seconds, by_cpu_clock)
                point = Measurement(seconds, runs, peak, None, None)
                base = point if name == BASELINE else points.get((BASELINE, case, n))
                if base:
                    point = point._replace(faster=base.seconds / seconds, smaller=base.peak_bytes / peak)
                points[name, case, n] = point
            say(f"attention: {n:,} positions done")
        results = {
            **{name: getattr(self, name) for name in ("heads", "head_size", "batch", "window")},
            "dtype": str(dtype).removeprefix("torch."),
            "threads": torch.get_num_threads(),
            "compared_by": "cpu_seconds" if by_cpu_clock else "seconds",
            "memory_measured_by": MEMORY_MEASURED_BY[device.type],
            "fitted_from": FIT_FROM_LENGTH,
            "slopes": [{"backend": name, **case._asdict(), **fit} for (name, case), fit in slopes(points).items()],
            "skipped": skipped,
            "points": [
                {"backend": name, **case._asdict(), "n": n, **point._asdict()}
                for (name, case, n), point in points.items()
            ],
        }
        title = f"{self.heads} heads of {self.head_size}, batch {self.batch}, {results['dtype']}, {device.type}"
        notes = [
            f"n^: the exponent of n, fitted from {FIT_FROM_LENGTH:,} positions on",
            *skipped,
            f"memory beyond the inputs, by {MEMORY_MEASURED_BY[device.type]}",
        ]
        table = tables(points, "CPU ms" if by_cpu_clock else "ms")
        return BenchmarkReport(table, notes, results, partial(draw_attention_speed, points, title))

    def _available_kernels(self, device: torch.device, dtype: torch.dtype) -> tuple[dict[str, Kernels], list[str]]:
        """The kernels that run here, the baseline first, and why the others do not."""
        backends = available_backends(self.window, self.head_size)
        kernels, skipped = {}, []
        names = self.backends or [name for name in backends if name != "auto"]
        for name in sorted(names, key=lambda name: name != BASELINE):
            try:
                kernels[name] = backends[name].for_training(device, dtype)
            except ConfigError as error:
                skipped.append(str(error))
        return kernels, skipped

    def _work(self, kernels: Kernels, case: AttentionCase, n: int, device: torch.device, dtype: torch.dtype) -> Work:
        shape, mask = (self.batch, self.heads, n, self.head_size), AttentionMask(causal=case.causal)
        if kernels.make_batch is PackedBatch:
            packed = PackedBatch(torch.ones(self.batch, n, dtype=torch.long, device=device), pad_id=0)
            shape = (1, self.heads, self.batch * n, self.head_size)
            mask = packed.attention_mask(packed, causal=case.causal)
        q, k, v, upstream = (torch.randn(shape, device=device, dtype=dtype) for _ in range(4))
        if not case.backward:
            return lambda: kernels.self_attention(q, k, v, mask, 0.0)
        for x in (q, k, v):
            x.requires_grad_()
        return lambda: torch.autograd.grad(kernels.self_attention(q, k, v, mask, 0.0)[0], (q, k, v), upstream)


def free_bytes(device: torch.device) -> float:
    return torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else psutil.virtual_memory().available


def peak_bytes(work: Work, device: torch.device) -> int:
    """The most memory that exists at one time beyond what existed before."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        work()
        torch.cuda.synchronize(device)
        return torch.cuda.max_memory_allocated(device) - before
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # some builds say on standard error that they start and stop
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        work()
    events = profile.profiler.kineto_results.events()  # type: ignore[union-attr]
    return max(0, *np.cumsum([0, *(event.nbytes() for event in events if event.name() == "[memory]")]).tolist())


def time_work(work: Work, device: torch.device, seconds: float, by_cpu_clock: bool) -> tuple[float, int]:
    """Runs until `seconds` are over, and at least twice -> the time of the fastest, and their number."""
    clock = time.process_time if by_cpu_clock else time.perf_counter
    times: list[float] = []
    until = time.perf_counter() + seconds
    while len(times) < 2 or time.perf_counter() < until:
        started = clock()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append(clock() - started)
    return min(times), len(times)


def slopes(points: Points) -> dict[tuple[str, AttentionCase], dict[str, float]]:
    """How time and memory grow: the exponent of n, by a line through the logarithms at the long lengths."""
    fitted = {}
    for name, case in dict.fromkeys((name, case) for name, case, n in points):
        lengths = [n for other, of, n in points if (other, of) == (name, case) and n >= FIT_FROM_LENGTH]
        if len(lengths) > 1:
            long = [points[name, case, n] for n in lengths]
            measured = np.log([(point.seconds, point.peak_bytes) for point in long]).T
            exponents = (float(np.polyfit(np.log(lengths), values, deg=1)[0]) for values in measured)
            fitted[name, case] = dict(zip(("time", "memory"), exponents, strict=True))
    return fitted


def tables(points: Points, unit_of_time: str) -> str:
    """For each case one of times and one of memory, with the ratios to explicit; the last row has the exponents."""
    names, lengths = dict.fromkeys(name for name, _, _ in points), dict.fromkeys(n for _, _, n in points)
    exponents, made = slopes(points), []
    for case, (quantity, unit) in product(CASES, (("time", unit_of_time), ("memory", "MiB"))):
        rows = [[f"{n:,}", *(_cell(points.get((name, case, n)), quantity, name) for name in names)] for n in lengths]
        fitted = [exponents.get((name, case)) for name in names]
        if any(fitted):
            rows.append(["n^", *(f"{growth[quantity]:.2f}" if growth else "" for growth in fitted)])
        made.append(markdown_table([f"{case}, {unit}: n", *names], rows))
    return "\n\n".join(made)


def _cell(point: Measurement | None, quantity: str, backend: str) -> str:
    if point is None:
        return ""
    memory = point.peak_bytes / 2**20, point.smaller
    value, ratio = memory if quantity == "memory" else (1e3 * point.seconds, point.faster)
    return f"{value:.1f}" + (f" ({ratio:.1f}x)" if ratio and backend != BASELINE else "")


def draw_attention_speed(points: Points, title: str, path: Path) -> None:
    """Logarithmic axes: a column for each case, times above, memory below, a line for each backend."""
    import altair as alt

    rows = [
        {"backend": name, "case": str(case), "n": n, "ms": 1e3 * point.seconds, "MiB": point.peak_bytes / 2**20}
        for (name, case, n), point in points.items()
    ]
    names, axis = list(dict.fromkeys(name for name, _, _ in points)), alt.Axis(format=",", tickCount=5)
    chart = alt.Chart(alt.InlineData(rows)).mark_line(point=True).properties(width=190, height=190)
    chart = chart.encode(
        x=alt.X("n:Q", scale=alt.Scale(type="log", base=2), title="positions", axis=axis),
        color=alt.Color("backend:N", scale=alt.Scale(domain=names, range=list(COLOURS[: len(names)]))),
        column=alt.Column("case:N", title=None, sort=[str(case) for case in CASES]),
    )
    panels = [
        chart.encode(y=alt.Y(f"{unit}:Q", scale=alt.Scale(type="log"), title=text, axis=axis))
        for unit, text in (("ms", "milliseconds"), ("MiB", "MiB at the peak"))
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    save_chart(alt.vconcat(*panels).properties(title=f"Attention by length: {title}").configure(font=FONT), path)
