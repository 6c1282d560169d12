"""What the suite says about attention is what was measured."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from nmt.benchmarks import BenchmarkReport, BenchmarkSetup, attention_speed
from nmt.benchmarks.attention_speed import CASES, AttentionSpeed, Measurement, peak_bytes, slopes
from nmt.errors import ConfigError
from nmt.evaluation.stored import to_json
from nmt.models.backends import available_backends
from nmt.models.backends.masks import AttentionMask
from nmt.schema import check
from nmt.settings import AttentionSuite
from nmt.training_settings import BatchingSettings, TrainingSettings

CPU = torch.device("cpu")
EXACT_AND_OTHERS = ["explicit", "fused", "tiled", "window", "linear"]


def run(lengths: list[int], names: list[str] | None = None, precision: str = "fp32") -> BenchmarkReport:
    bench = BenchmarkSetup(
        prepare=lambda: pytest.fail("no corpus is needed"),
        make_state=lambda *_: pytest.fail("no model is needed"),
        batching=BatchingSettings.defaults(),
        training=TrainingSettings.defaults(max_updates=1),
        device="cpu",
        precision=precision,
    )
    return AttentionSpeed(lengths, heads=2, head_size=8, batch=1, window=5, backends=names, seconds=0.0).run(bench)


@pytest.fixture(scope="module")
def report() -> BenchmarkReport:
    return run([16, 32])


def test_every_backend_that_runs_here_is_measured_at_every_length_in_every_case(report: BenchmarkReport) -> None:
    points = report.results["points"]
    measured = {(p["backend"], p["n"], p["causal"], p["backward"]) for p in points}
    assert len(points) == len(measured) == 5 * 2 * 4
    assert {p["backend"] for p in points} == set(EXACT_AND_OTHERS)
    assert all(p["seconds"] > 0 and p["peak_bytes"] > 0 and p["runs"] >= 2 for p in points)
    assert all(p["faster"] == p["smaller"] == 1.0 for p in points if p["backend"] == "explicit")


def test_ratios_are_to_explicit_in_the_same_run(report: BenchmarkReport) -> None:
    by_key = {(p["backend"], p["n"], p["causal"], p["backward"]): p for p in report.results["points"]}
    for (name, *rest), point in by_key.items():
        base = by_key["explicit", *rest]
        assert point["faster"] == pytest.approx(base["seconds"] / point["seconds"]), name
        assert point["smaller"] == pytest.approx(base["peak_bytes"] / point["peak_bytes"]), name


def test_what_cannot_run_here_and_how_it_was_measured_is_said(report: BenchmarkReport, tmp_path: Path) -> None:
    assert any("varlen cannot run here" in line for line in report.results["skipped"])
    assert "torch.profiler" in report.results["memory_measured_by"]
    assert report.results["compared_by"] == "cpu_seconds"
    assert json.loads(to_json(report.results))["dtype"] == "float32"
    assert report.draw is not None
    report.draw(tmp_path / "attention.png")
    assert (tmp_path / "attention.png").stat().st_size > 10_000


def test_halves_and_chosen_backends_are_measured_when_asked_for() -> None:
    report = run([16], ["tiled"], precision="bf16")
    assert report.results["dtype"] == "bfloat16"
    assert {point["backend"] for point in report.results["points"]} == {"tiled"}
    assert all(point["faster"] is None for point in report.results["points"])


def test_what_would_not_fit_into_memory_is_left_out_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention_speed, "free_bytes", lambda _: 100_000)
    report = run([16, 32, 512], ["explicit"])
    assert [p["n"] for p in report.results["points"]] == [16] * 4 + [32] * 4
    assert sum("explicit at 512" in line and "left out" in line for line in report.results["skipped"]) == 4


def test_slopes_are_the_exponents_of_the_long_lengths() -> None:
    points = {
        ("tiled", case, n): Measurement(1e-9 * n**2 if n >= 1024 else 5.0, 1, 1000 * n, None, None)
        for case in CASES
        for n in (64, 1024, 2048, 8192)
    }
    fitted = slopes(points).values()
    assert len(fitted) == 4
    assert all(each["time"] == pytest.approx(2) and each["memory"] == pytest.approx(1) for each in fitted)


def test_unknown_backends_and_sizes_of_nothing_are_refused() -> None:
    settings = {"heads": 1, "head_size": 8, "batch": 1, "window": 5, "backends": None, "seconds": 0.1}
    settings |= {"_target_": f"{AttentionSpeed.__module__}.AttentionSpeed", "lengths": [8]}
    for key, wrong, shown in (
        ("lengths", [8, 0], r"\[8,0\]"),
        ("heads", 0, "0"),
        ("backends", ["flash"], r"\[flash\]"),
    ):
        with pytest.raises(ConfigError, match=rf"^suite\.{key}={shown}: give"):
            check(AttentionSuite, settings | {key: wrong}, "suite.")


def backward(name: str, n: int) -> Callable[[], object]:
    attend = available_backends(window=128, head_size=64)[name].for_search.self_attention
    q, k, v = (torch.randn(1, 4, n, 64).requires_grad_() for _ in range(3))
    upstream = torch.randn(1, 4, n, 64)
    return lambda: torch.autograd.grad(attend(q, k, v, AttentionMask(causal=True), 0.0)[0], (q, k, v), upstream)


def test_a_known_amount_of_memory_is_measured_to_the_byte() -> None:
    def work() -> None:
        first = torch.empty(1000)
        del first
        second, third = torch.empty(3000), torch.empty(500)
        del second, third

    assert peak_bytes(work, CPU) == pytest.approx(4 * 3500, abs=256)


@pytest.mark.slow
def test_memory_grows_with_length_for_tiled_and_fused_and_with_its_square_for_explicit() -> None:
    peaks = {name: [peak_bytes(backward(name, n), CPU) for n in (1024, 2048)] for name in EXACT_AND_OTHERS}
    growth = {name: high / low for name, (low, high) in peaks.items()}
    assert growth["explicit"] == pytest.approx(4, rel=0.1)
    assert all(growth[name] == pytest.approx(2, rel=0.1) for name in ("fused", "tiled", "window", "linear"))
    assert peaks["explicit"][1] > 10 * peaks["fused"][1]


RSS = """
import sys, torch
sys.path.insert(0, ".")
from tests.benchmarks.test_attention_speed import CPU, backward, peak_bytes
def status(key): return next(1024 * int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(key))
torch.set_num_threads(1)
work = backward(sys.argv[1], 2048)
work()
open("/proc/self/clear_refs", "w").write("5")
before = status("VmRSS")
work()
print(status("VmHWM") - before, peak_bytes(work, CPU))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak of resident memory is read from /proc")
@pytest.mark.parametrize("name", EXACT_AND_OTHERS)
def test_the_peak_is_that_of_resident_memory(name: str) -> None:
    import os
    import subprocess

    env = os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", RSS, name], capture_output=True, text=True, cwd=root, env=env)
    if "clear_refs" in done.stderr:
        pytest.skip("this system does not let a process reset its peak")
    resident, measured = map(int, done.stdout.split())
    assert measured == pytest.approx(resident, rel=0.05, abs=2**20)
