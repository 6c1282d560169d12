"""What each way to compute attention costs, against length: time and peak memory, as ratios to the one written out."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch

from nmt.benchmarks.attention_figure import draw
from nmt.benchmarks.measure import HOW, Work, peak_bytes, timing
from nmt.benchmarks.suite import Bench, Report, table
from nmt.errors import ConfigError, require_whole
from nmt.models.backends.choice import Way, backends
from nmt.models.backends.layout import Packed
from nmt.models.backends.sight import Sight
from nmt.training.loop import product_type

BASELINE = "explicit"
FITTED = 1024  # slopes are fitted on lengths from here on
SUMMED_UP = 4096


@dataclass(frozen=True)
class Point:
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
class Case:
    causal: bool
    backward: bool

    def __str__(self) -> str:
        return f"{'causal' if self.causal else 'not causal'}, forward{' and backward' if self.backward else ''}"


CASES = [Case(causal, backward) for causal in (False, True) for backward in (False, True)]


@dataclass(frozen=True)
class Place:
    """Where it runs, and which clock counts: on one CPU thread its own, which other programs do not move."""

    device: torch.device
    dtype: torch.dtype
    by_cpu: bool

    def seconds(self, point: Point) -> float:
        return point.cpu_seconds if self.by_cpu else point.seconds

    def free_bytes(self) -> float:
        if self.device.type == "cuda":
            return torch.cuda.mem_get_info(self.device)[0]
        return psutil.virtual_memory().available


@dataclass(frozen=True)
class Attention:
    """Self-attention of `batch` sentences of one length, for each of `lengths` that the device allows."""

    lengths: Sequence[int]
    heads: int
    head_size: int
    batch: int
    window: int
    backends: Sequence[str] | None  # null: all that run on the device
    seconds: float  # of runs for each point, at least

    def __post_init__(self) -> None:
        for name in ("heads", "head_size", "batch", "window"):
            require_whole(f"suite.{name}", getattr(self, name))
        for n in self.lengths:
            require_whole("suite.lengths", n)
        unknown = set(self.backends or []) - set(backends(self.window, self.head_size))
        if unknown:
            raise ConfigError(f"suite.backends: there is no {', '.join(sorted(unknown))}")

    def run(self, bench: Bench) -> Report:
        device, dtype = torch.device(bench.device), product_type(bench.precision)
        place = Place(device, dtype, by_cpu=device.type == "cpu" and torch.get_num_threads() == 1)
        ways, skipped = self._ways(place)
        points: list[Point] = []
        for n in self.lengths:
            for name, way in ways.items():
                for case in CASES:
                    needed = _needed(points, name, case, n)
                    if needed > place.free_bytes():
                        size = f"{needed / 2**30:.1f} GiB"
                        skipped.append(f"{name} at {n:,} ({case}) would need about {size}: left out")
                        continue
                    points.append(self._point(name, self._work(way, case, n, place), case, n, place, points))
            bench.say(f"attention: {n:,} places done")
        measured = Measured(points, place)
        results = {
            **{name: getattr(self, name) for name in ("heads", "head_size", "batch", "window")},
            "dtype": str(dtype).removeprefix("torch."),
            "threads": torch.get_num_threads(),
            "compared_by": "cpu_seconds" if place.by_cpu else "seconds",
            "memory_measured_by": HOW[device.type],
            "fitted_from": FITTED,
            "slopes": measured.slopes(),
            "skipped": skipped,
            "points": [asdict(point) for point in points],
        }
        title = f"{self.heads} heads of {self.head_size}, batch {self.batch}, {results['dtype']}, {device.type}"
        notes = [*measured.summary(), f"n^: the exponent of n, fitted from {FITTED:,} places on", *skipped]
        notes.append(f"memory beyond the inputs, by {HOW[device.type]}")
        return Report("\n\n".join(measured.tables()), notes, results, partial(_draw, measured, title))

    def _ways(self, place: Place) -> tuple[dict[str, Way], list[str]]:
        """What runs here, the baseline first, and why the rest does not."""
        known = backends(self.window, self.head_size)
        ways, skipped = {}, []
        for name in self.backends or [BASELINE, *(name for name in known if name not in ("auto", BASELINE))]:
            try:
                ways[name] = known[name].teaching(place.device, place.dtype)
            except ConfigError as error:
                skipped.append(str(error))
        return ways, skipped

    def _point(self, name: str, work: Work, case: Case, n: int, place: Place, before: Sequence[Point]) -> Point:
        peak = peak_bytes(work, place.device)  # also warms up
        time = timing(work, place.device, self.seconds)
        point = Point(name, *_key(case), n, time.seconds, time.cpu_seconds, time.runs, peak)
        same = [p for p in (*before, point) if (p.backend, p.causal, p.backward, p.n) == (BASELINE, *_key(case), n)]
        if not same:
            return point
        faster = place.seconds(same[0]) / place.seconds(point)
        return replace(point, faster=faster, smaller=same[0].peak_bytes / peak)

    def _work(self, way: Way, case: Case, n: int, place: Place) -> Work:
        shape, sight = (self.batch, self.heads, n, self.head_size), Sight(causal=case.causal)
        if way.layout is Packed:
            packed = Packed(torch.ones(self.batch, n, dtype=torch.long, device=place.device), pad_id=0)
            shape = (1, self.heads, self.batch * n, self.head_size)
            sight = packed.so_far(None) if case.causal else packed.around(None)
        q, k, v, upstream = (torch.randn(shape, device=place.device, dtype=place.dtype) for _ in range(4))
        if not case.backward:
            return lambda: way.around(q, k, v, sight, 0.0)
        for x in (q, k, v):
            x.requires_grad_()
        return lambda: torch.autograd.grad(way.around(q, k, v, sight, 0.0)[0], (q, k, v), upstream)


def _key(case: Case) -> tuple[bool, bool]:
    return case.causal, case.backward


def _needed(before: Sequence[Point], name: str, case: Case, n: int) -> float:
    """Bytes, from the length measured last: as if they grew with its square."""
    same = [p for p in before if (p.backend, p.causal, p.backward) == (name, *_key(case))]
    return same[-1].peak_bytes * (n / same[-1].n) ** 2 if same else 0.0


@dataclass(frozen=True)
class Measured:
    """The points, as people read them."""

    points: Sequence[Point]
    place: Place

    def names(self) -> list[str]:
        return list(dict.fromkeys(point.backend for point in self.points))

    def of(self, case: Case, name: str) -> list[Point]:
        return [p for p in self.points if (p.causal, p.backward, p.backend) == (*_key(case), name)]

    def slopes(self) -> list[dict[str, Any]]:
        """How time and memory grow: the exponent of n, fitted on the long lengths."""
        found = []
        for case in CASES:
            for name in self.names():
                points = [point for point in self.of(case, name) if point.n >= FITTED]
                if len(points) > 1:
                    time = slope(points, self.place.seconds)
                    memory = slope(points, lambda point: point.peak_bytes)
                    found.append({"backend": name, **asdict(case), "time": time, "memory": memory})
        return found

    def tables(self) -> list[str]:
        """For each case one of times and one of memory, with the ratios to explicit."""
        found = []
        kinds: list[tuple[str, str, Callable[[Point], float], Callable[[Point], float | None]]] = [
            (
                "CPU ms" if self.place.by_cpu else "ms",
                "time",
                lambda p: 1e3 * self.place.seconds(p),
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
                found.append(table([f"{case}, {unit}: n", *self.names()], rows))
        return found

    def _rows(
        self, case: Case, value: Callable[[Point], float], ratio: Callable[[Point], float | None]
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
        """What is quoted."""
        quoted = [p for p in self.points if p.n == SUMMED_UP and p.backward and p.backend != BASELINE and p.faster]
        return [
            f"n={p.n:,}, {Case(p.causal, True)}: {p.backend} is {p.faster:.1f} times as fast as explicit, "
            f"with {p.smaller:.1f} times less memory"
            for p in quoted
        ]


def slope(points: Sequence[Point], value: Callable[[Point], float]) -> float:
    """Of log value over log n, by least squares."""
    ns, values = np.log([point.n for point in points]), np.log([value(point) for point in points])
    return float(np.polyfit(ns, values, deg=1)[0])


def _draw(measured: Measured, title: str, path: Path) -> None:
    lines = {
        (str(case), name): [
            (p.n, 1e3 * measured.place.seconds(p), p.peak_bytes / 2**20) for p in measured.of(case, name)
        ]
        for case in CASES
        for name in measured.names()
    }
    draw(lines, [str(case) for case in CASES], measured.names(), title, path)
