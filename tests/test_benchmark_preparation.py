"""scripts/benchmark_preparation.py as a user runs it."""

import json
from pathlib import Path

import pytest

from tests.conftest import run_script
from tests.small_text import assert_refused


@pytest.mark.slow
def test_preparing_is_measured_as_text_and_as_parquet(text: Path) -> None:
    sizes = ["--pairs", "600", "1200", "--vocab-size", "320", "--updates", "1"]
    arguments = ["b.en", "b.fr", *sizes, "--output", f"{text}/out.json"]
    done = run_script("benchmark_preparation", text, *arguments, env={"HF_HOME": str(text / "hf")})
    assert done.returncode == 0, done.stderr
    numbers = json.loads((text / "out.json").read_text())
    assert [(row["form"], row["pairs"]) for row in numbers["rows"]] == [
        ("text", 600), ("text", 1200), ("parquet", 600), ("parquet", 1200),
    ]  # fmt: skip
    assert all(row["pairs_per_second"] > 0 and row["prepare_peak_mb"] > 1 for row in numbers["rows"])
    assert set(numbers["prepare_bytes_per_pair"]) == {"text", "parquet"}
    assert_refused(run_script("benchmark_preparation", text, "absent.en", "b.fr"), "absent.en")
