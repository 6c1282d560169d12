"""scripts/gpu_check.sh without a GPU: a stand-in for Python notes what it is asked to run."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir

from nmt.cli import conf_dir
from tests.conftest import program_environment

SCRIPT = Path(__file__).resolve().parent.parent / "scripts" / "gpu_check.sh"
STAND_IN = """#!/usr/bin/env bash
printf '%s\\t' "$@" >> "$NOTES"
echo >> "$NOTES"
case "$*" in *"$FAILING"*) exit 3 ;; esac
"""

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")


def run(
    tmp_path: Path, failing: str = "nothing", **env: str
) -> tuple[subprocess.CompletedProcess[str], list[list[str]]]:
    python = tmp_path / "python"
    python.write_text(STAND_IN)
    python.chmod(0o755)
    places = {"PYTHON": str(python), "NOTES": str(tmp_path / "notes"), "OUT": str(tmp_path / "out"), "FAILING": failing}
    done = subprocess.run(
        ["bash", str(SCRIPT)], capture_output=True, text=True, env=program_environment() | places | env
    )
    return done, [line.split("\t")[:-1] for line in (tmp_path / "notes").read_text().split("\n") if "-m" in line]


def test_the_script_runs_the_tests_and_the_benchmarks_whose_settings_there_are(tmp_path: Path) -> None:
    done, commands = run(tmp_path, NMT_DATA="/data")
    assert done.returncode == 0, done.stderr
    assert [command[1] for command in commands] == ["pytest", "nmt.benchmark", "nmt.benchmark", "nmt.benchmark"]
    for command in commands[1:]:
        with initialize_config_dir(str(conf_dir()), version_base="1.3"):
            cfg = compose("benchmark", command[2:])
        assert (cfg.device, cfg.precision) == ("cuda", "bf16")
        assert Path(cfg.output).parent == tmp_path / "out"
    assert "attention_backend=varlen" in commands[2]
    assert "attention_backend=fused" in commands[3]
    assert any(argument.startswith("data.train_src=/data/europarl-fren") for argument in commands[2])


def test_a_step_that_fails_does_not_stop_the_others_and_is_said(tmp_path: Path) -> None:
    done, commands = run(tmp_path, failing="pytest")
    assert done.returncode == 1
    assert len(commands) == 4
    assert "failed: tests (3)" in done.stdout


def test_its_steps_fit_into_eight_minutes() -> None:
    seconds = [int(found) for found in re.findall(r'step (?:\w+|"[^"]+") (\d+) ', SCRIPT.read_text())]
    assert sum(seconds) + seconds[-1] <= 480  # the last step runs twice
