"""Time and memory of a piece of work, on a CPU and on a CUDA device."""

import os
import time
from collections.abc import Callable
from typing import NamedTuple

import torch

Work = Callable[[], object]
HOW = {
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


def timing(work: Work, device: torch.device, seconds: float, least: int = 2) -> Timing:
    """Runs until `seconds` are over, and at least `least` times. It has run before: nothing warms up here."""
    found: list[tuple[float, float]] = []
    started = time.perf_counter()
    while len(found) < least or time.perf_counter() - started < seconds:
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        found.append((time.perf_counter() - wall, time.process_time() - cpu))
    walls, cpus = zip(*found, strict=True)
    return Timing(min(walls), min(cpus), len(found))
