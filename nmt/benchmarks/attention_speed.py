"""Time and peak memory of the attention backends against length, as ratios to `explicit`."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil
import torch

from nmt.benchmarks import BenchmarkReport, BenchmarkSetup, markdown_table
from nmt.errors import ConfigError
from nmt.models.backends import Kernels, available_backends
from nmt.models.backends.masks import AttentionMask
from nmt.models.backends.packing import PackedBatch
from nmt.study.figures import COLOURS, FONT, Chart, save_chart
from nmt.training.loop import precision_dtype

BASELINE = "explicit"
FIT_FROM_LENGTH = 1024  # slopes are fitted on lengths from here on
SUMMARY_LENGTH = 4096


Work = Callable[[], object]
MEMORY_MEASURED_BY = {
    "cpu": "torch.profiler: the running sum of what the CPU allocator gives out and takes back, at its highest",
    "cuda": "torch.cuda.max_memory_allocated above what was allocated before",
}


class Timing(NamedTuple):
    """The fastest of some runs."""

    seconds: float
    cpu_seconds: float  # of the process; other programs on the machine do not count
    runs: int


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
    assert profile.profiler is not None
    held = most = 0
    for event in profile.profiler.kineto_results.events():  # type: ignore[union-attr]
        if event.name() == "[memory]":
            held += event.nbytes()
            most = max(most, held)
    return most


def time_work(work: Work, device: torch.device, seconds: float, least: int = 2) -> Timing:
    """Runs until `seconds` are over, and at least `least` times. It has run before: nothing warms up here."""
    times: list[tuple[float, float]] = []
    started = time.perf_counter()
    while len(times) < least or time.perf_counter() - started < seconds:
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append((time.perf_counter() - wall, time.process_time() - cpu))
    walls, cpus = zip(*times, strict=True)
    return Timing(min(walls), min(cpus), len(times))


@dataclass(frozen=True)
class Measurement:
    """One backend at one length."""

    backend: str
    causal: bool
    backward: bool  # forward and backward; else forward alone, without a gradient
    n: int
    seconds: float
    cpu_seconds: float
    runs: int
    peak_bytes: int
    faster: float | None = None  # than explicit at this length, in this run
    smaller: float | None = None


@dataclass(frozen=True)
class AttentionCase:
    causal: bool
    backward: bool

    def __str__(self) -> str:
        return f"{'causal' if self.causal else 'not causal'}, forward{' and backward' if self.backward else ''}"


CASES = [AttentionCase(causal, backward) for causal in (False, True) for backward in (False, True)]


@dataclass(frozen=True)
class Environment:
    """Device, type and clock: on one CPU thread its own CPU time counts, which other programs do not change."""

    device: torch.device
    dtype: torch.dtype
    by_cpu_clock: bool

    def seconds(self, point: Measurement) -> float:
        return point.cpu_seconds if self.by_cpu_clock else point.seconds

    def free_bytes(self) -> float:
        if self.device.type == "cuda":
            return torch.cuda.mem_get_info(self.device)[0]
        return psutil.virtual_memory().available


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

    def __post_init__(self) -> None:
        unknown = set(self.backends or []) - set(available_backends(self.window, self.head_size))
        if unknown:
            raise ConfigError(f"suite.backends: there is no {', '.join(sorted(unknown))}")

    def run(self, setup: BenchmarkSetup) -> BenchmarkReport:
        device, dtype = torch.device(setup.device), precision_dtype(setup.precision)
        environment = Environment(device, dtype, by_cpu_clock=device.type == "cpu" and torch.get_num_threads() == 1)
        kernels_by_name, skipped = self._available_kernels(environment)
        points: list[Measurement] = []
        for n in self.lengths:
            for name, kernels in kernels_by_name.items():
                for case in CASES:
                    needed = _bytes_needed(points, name, case, n)
                    if needed > environment.free_bytes():
                        size = f"{needed / 2**30:.1f} GiB"
                        skipped.append(f"{name} at {n:,} ({case}) would need about {size}: left out")
                        continue
                    work = self._work(kernels, case, n, environment)
                    points.append(self._measure(name, work, case, n, environment, points))
            setup.say(f"attention: {n:,} positions done")
        measurements = Measurements(points, environment)
        results = {
            **{name: getattr(self, name) for name in ("heads", "head_size", "batch", "window")},
            "dtype": str(dtype).removeprefix("torch."),
            "threads": torch.get_num_threads(),
            "compared_by": "cpu_seconds" if environment.by_cpu_clock else "seconds",
            "memory_measured_by": MEMORY_MEASURED_BY[device.type],
            "fitted_from": FIT_FROM_LENGTH,
            "slopes": measurements.slopes(),
            "skipped": skipped,
            "points": [asdict(point) for point in points],
        }
        title = f"{self.heads} heads of {self.head_size}, batch {self.batch}, {results['dtype']}, {device.type}"
        fitted = f"n^: the exponent of n, fitted from {FIT_FROM_LENGTH:,} positions on"
        memory = f"memory beyond the inputs, by {MEMORY_MEASURED_BY[device.type]}"
        notes, draw = (
            [*measurements.summary(), fitted, *skipped, memory],
            partial(draw_attention_speed, measurements, title),
        )
        return BenchmarkReport("\n\n".join(measurements.tables()), notes, results, draw)

    def _available_kernels(self, environment: Environment) -> tuple[dict[str, Kernels], list[str]]:
        """The kernels that run here, the baseline first, and why the others do not."""
        backends = available_backends(self.window, self.head_size)
        kernels, skipped = {}, []
        for name in self.backends or [BASELINE, *(name for name in backends if name not in ("auto", BASELINE))]:
            try:
                kernels[name] = backends[name].for_training(environment.device, environment.dtype)
            except ConfigError as error:
                skipped.append(str(error))
        return kernels, skipped

    def _measure(
        self,
        name: str,
        work: Work,
        case: AttentionCase,
        n: int,
        environment: Environment,
        before: Sequence[Measurement],
    ) -> Measurement:
        peak = peak_bytes(work, environment.device)  # also warms up
        timing = time_work(work, environment.device, self.seconds)
        point = Measurement(name, *_key(case), n, timing.seconds, timing.cpu_seconds, timing.runs, peak)
        baseline = [p for p in (*before, point) if (p.backend, p.causal, p.backward, p.n) == (BASELINE, *_key(case), n)]
        if not baseline:
            return point
        faster = environment.seconds(baseline[0]) / environment.seconds(point)
        return replace(point, faster=faster, smaller=baseline[0].peak_bytes / peak)

    def _work(self, kernels: Kernels, case: AttentionCase, n: int, environment: Environment) -> Work:
        shape, mask = (self.batch, self.heads, n, self.head_size), AttentionMask(causal=case.causal)
        if kernels.make_batch is PackedBatch:
            packed = PackedBatch(torch.ones(self.batch, n, dtype=torch.long, device=environment.device), pad_id=0)
            shape = (1, self.heads, self.batch * n, self.head_size)
            mask = packed.causal_mask(None) if case.causal else packed.self_mask(None)
        q, k, v, upstream = (torch.randn(shape, device=environment.device, dtype=environment.dtype) for _ in range(4))
        if not case.backward:
            return lambda: kernels.self_attention(q, k, v, mask, 0.0)
        for x in (q, k, v):
            x.requires_grad_()
        return lambda: torch.autograd.grad(kernels.self_attention(q, k, v, mask, 0.0)[0], (q, k, v), upstream)


def _key(case: AttentionCase) -> tuple[bool, bool]:
    return case.causal, case.backward


def _bytes_needed(before: Sequence[Measurement], name: str, case: AttentionCase, n: int) -> float:
    """Bytes, from the length measured last: as if they grew with its square."""
    same = [p for p in before if (p.backend, p.causal, p.backward) == (name, *_key(case))]
    return same[-1].peak_bytes * (n / same[-1].n) ** 2 if same else 0.0


@dataclass(frozen=True)
class Measurements:
    """All measurements, as slopes, tables and sentences."""

    points: Sequence[Measurement]
    environment: Environment

    def names(self) -> list[str]:
        return list(dict.fromkeys(point.backend for point in self.points))

    def of(self, case: AttentionCase, name: str) -> list[Measurement]:
        return [p for p in self.points if (p.causal, p.backward, p.backend) == (*_key(case), name)]

    def slopes(self) -> list[dict[str, Any]]:
        """How time and memory grow: the exponent of n, fitted on the long lengths."""
        slopes = []
        for case in CASES:
            for name in self.names():
                points = [point for point in self.of(case, name) if point.n >= FIT_FROM_LENGTH]
                if len(points) > 1:
                    time_slope = slope(points, self.environment.seconds)
                    memory_slope = slope(points, lambda point: point.peak_bytes)
                    slopes.append({"backend": name, **asdict(case), "time": time_slope, "memory": memory_slope})
        return slopes

    def tables(self) -> list[str]:
        """For each case one of times and one of memory, with the ratios to explicit."""
        tables = []
        kinds: list[tuple[str, str, Callable[[Measurement], float], Callable[[Measurement], float | None]]] = [
            (
                "CPU ms" if self.environment.by_cpu_clock else "ms",
                "time",
                lambda p: 1e3 * self.environment.seconds(p),
                lambda p: p.faster,
            ),
            ("MiB", "memory", lambda p: p.peak_bytes / 2**20, lambda p: p.smaller),
        ]
        for case in CASES:
            for unit, grows, value, ratio in kinds:
                rows = self._rows(case, value, ratio)
                slopes = {
                    each["backend"]: each[grows]
                    for each in self.slopes()
                    if (each["causal"], each["backward"]) == _key(case)
                }
                if slopes:
                    rows.append(["n^", *(f"{slopes[n]:.2f}" if n in slopes else "" for n in self.names())])
                tables.append(markdown_table([f"{case}, {unit}: n", *self.names()], rows))
        return tables

    def _rows(
        self, case: AttentionCase, value: Callable[[Measurement], float], ratio: Callable[[Measurement], float | None]
    ) -> list[list[str]]:
        rows = []
        for n in dict.fromkeys(point.n for point in self.points):
            cells = []
            for name in self.names():
                point = next((point for point in self.of(case, name) if point.n == n), None)
                times = None if point is None or name == BASELINE else ratio(point)
                cells.append("" if point is None else f"{value(point):.1f}" + (f" ({times:.1f}x)" if times else ""))
            rows.append([f"{n:,}", *cells])
        return rows

    def summary(self) -> list[str]:
        """Sentences for the long length that is usually quoted."""
        quoted = [p for p in self.points if p.n == SUMMARY_LENGTH and p.backward and p.backend != BASELINE and p.faster]
        return [
            f"n={p.n:,}, {AttentionCase(p.causal, True)}: {p.backend} is {p.faster:.1f} times as fast as explicit, "
            f"with {p.smaller:.1f} times less memory"
            for p in quoted
        ]


def slope(points: Sequence[Measurement], value: Callable[[Measurement], float]) -> float:
    """Of log value over log n, by least squares."""
    ns, values = np.log([point.n for point in points]), np.log([value(point) for point in points])
    return float(np.polyfit(ns, values, deg=1)[0])


def draw_attention_speed(measurements: Measurements, title: str, path: Path) -> None:
    """Logarithmic axes: a column for each case, times above, memory below, a line for each backend."""
    import altair as alt

    kinds: list[tuple[str, Callable[[Measurement], float]]] = [
        ("milliseconds", lambda point: 1e3 * measurements.environment.seconds(point)),
        ("MiB at the peak", lambda point: point.peak_bytes / 2**20),
    ]
    names = measurements.names()
    colours = alt.Scale(domain=names, range=list(COLOURS[: len(names)]))

    def panel(case: AttentionCase, unit: str, height: Callable[[Measurement], float]) -> Chart:
        rows = [
            {"backend": name, "n": point.n, "value": height(point)}
            for name in names
            for point in measurements.of(case, name)
        ]
        x = alt.X("n:Q", scale=alt.Scale(type="log", base=2), title="positions", axis=alt.Axis(format=",", tickCount=5))
        y = alt.Y("value:Q", scale=alt.Scale(type="log"), title=unit, axis=alt.Axis(format=",", tickCount=5))
        chart = alt.Chart(alt.InlineData(rows), title=str(case)).mark_line(point=True)
        return chart.encode(x=x, y=y, color=alt.Color("backend:N", scale=colours)).properties(width=190, height=190)

    rows = [alt.hconcat(*(panel(case, *kind) for case in CASES)).resolve_scale(y="shared") for kind in kinds]
    path.parent.mkdir(parents=True, exist_ok=True)
    save_chart(alt.vconcat(*rows).properties(title=f"Attention by length: {title}").configure(font=FONT), path)
