"""Stopped anywhere, nothing is lost: a training that is killed, signalled or damaged ends as one never stopped."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import nmt.train
from scripts.soak_disk import small_disk
from scripts.soak_files import Watch, run_forked
from scripts.soak_kills import SETTINGS, differences
from tests.conftest import RunProgram, program_environment, run_script


def start(run_dir: str, *arguments: str, watch: Watch | None = None) -> int:
    """A training of a few updates in the current folder, in a fork; its log is RUN_DIR.log."""
    typed = ["experiment=rnn", *SETTINGS, f"run_dir={run_dir}", *arguments]
    return run_forked(nmt.train.main, "train", typed, Path(f"{run_dir}.log"), Path(run_dir), watch)


def log_of(run_dir: str) -> str:
    return Path(f"{run_dir}.log").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the run `whole`, which was never stopped."""
    folder, here = tmp_path_factory.mktemp("finished"), Path.cwd()
    os.chdir(folder)
    try:
        assert start("whole") == 0, log_of("whole")
    finally:
        os.chdir(here)
    return folder


@pytest.fixture
def whole(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The run never stopped, beside an equal one called `run`, in the current folder."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(finished / "data", "data")
    shutil.copytree(finished / "whole", "run")
    return Path(shutil.copytree(finished / "whole", "whole"))


@pytest.mark.parametrize("lost", ["last.safetensors", "averaged.safetensors"])
def test_a_finished_run_without_its_weights_is_made_whole(whole: Path, lost: str) -> None:
    Path("run", lost).unlink()
    assert start("run") == 0
    assert differences(whole, Path("run")) == []


def test_weights_older_than_the_resume_state_are_written_again(whole: Path) -> None:
    shutil.copy("run/kept/update-0000006.safetensors", "run/last.safetensors")
    assert start("run") == 0
    assert differences(whole, Path("run")) == []


@pytest.mark.parametrize("kept", [(), ("source.model",), ("source.model", "target.model", "data.json")])
def test_a_run_that_was_killed_while_it_was_created_goes_on(whole: Path, kept: tuple[str, ...]) -> None:
    shutil.rmtree("run")
    Path("run").mkdir()
    for name in kept:
        shutil.copy(whole / name, "run")
    Path("run/.lock").touch()
    Path("run/.config.yaml.77.tmp").write_text("half", encoding="utf-8")
    assert start("run") == 0, log_of("run")
    assert differences(whole, Path("run")) == []


def test_killed_in_its_validations_it_ends_as_if_it_never_was(whole: Path) -> None:
    shutil.rmtree("run")
    for _ in range(3):
        assert start("run", watch=at_first("os.rename checkpoints/", signal.SIGKILL)) == -signal.SIGKILL
    assert start("run") == 0
    assert differences(whole, Path("run")) == []


@pytest.mark.parametrize("damage", ["cut", "empty", "zeros"])
@pytest.mark.parametrize("name", ["metrics.jsonl", "data.json", "config.yaml", "source.model", "resume.pt"])
def test_a_file_that_a_power_cut_damaged_stops_no_resume(whole: Path, name: str, damage: str) -> None:
    path = Path("run", name)
    content = path.read_bytes()
    half = len(content) // 2
    path.write_bytes({"cut": content[:half], "empty": b"", "zeros": content[:half] + bytes(half)}[damage])
    assert start("run", "training.max_updates=14") == 0, log_of("run")
    assert json.loads(Path("run/status.json").read_text(encoding="utf-8"))["updates"] == 14


def at_first(beginning: str, *numbers: int) -> Watch:
    """Sends the signals to itself before the first event that begins so."""
    numbers_left = list(numbers)

    def send(event: str) -> None:
        while event.startswith(beginning) and numbers_left:
            os.kill(os.getpid(), numbers_left.pop())

    return send


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2])
def test_a_signal_saves_and_leaves_with_128_and_its_number(whole: Path, number: signal.Signals) -> None:
    shutil.rmtree("run")
    assert start("run", watch=at_first("open .status.json", number)) == 128 + number, log_of("run")
    assert json.loads(Path("run/status.json").read_text(encoding="utf-8"))["state"] == "interrupted"
    assert start("run") == 0
    assert differences(whole, Path("run")) == []


def test_a_signal_that_was_ignored_at_the_start_stays_ignored(whole: Path) -> None:
    def send(event: str) -> None:
        os.kill(os.getpid(), signal.SIGHUP)

    shutil.rmtree("run")
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        assert start("run", watch=send) == 0, log_of("run")
    finally:
        signal.signal(signal.SIGHUP, before)
    assert differences(whole, Path("run")) == []


def test_a_second_ctrl_c_leaves_at_once(whole: Path) -> None:
    shutil.rmtree("run")
    assert start("run", watch=at_first("open .status.json", signal.SIGINT, signal.SIGINT)) == 130
    assert "Traceback" not in log_of("run")
    assert not Path("run/last.safetensors").exists()
    assert start("run") == 0
    assert differences(whole, Path("run")) == []


def test_temporary_files_of_killed_writers_go_at_the_next_start(whole: Path) -> None:
    for name in (".resume.pt.123.tmp", ".last.safetensors.9.tmp", ".status.json.77.tmp"):
        Path("run", name).write_bytes(b"half")
    assert start("run") == 0
    assert differences(whole, Path("run")) == []


def test_a_fine_tuned_run_is_resumed_and_evaluated_though_its_parent_is_gone(whole: Path) -> None:
    assert start("child", "init_from=run", "training.max_updates=2") == 0, log_of("child")
    shutil.rmtree("run")
    assert start("child", "init_from=run", "training.max_updates=4") == 0, log_of("child")
    assert json.loads(Path("child/status.json").read_text(encoding="utf-8"))["updates"] == 4


@pytest.mark.parametrize(
    "arguments",
    [
        ["output=in.txt"],
        ["output=./in.txt"],
        ["output=link.txt"],
        ["output=out.txt", "alignment_out=in.txt"],
        ["output=out"],
    ],
)
def test_translate_never_writes_over_what_the_user_has(
    whole: Path, run_program: RunProgram, arguments: list[str]
) -> None:
    Path("in.txt").write_text("b c d\n", encoding="utf-8")
    Path("link.txt").symlink_to("in.txt")
    Path("out.part").write_text("mine\n", encoding="utf-8")
    done = run_program("translate", "checkpoint=run", "input=in.txt", *arguments)
    assert done.returncode in (1, 2), done.stderr
    assert "Traceback" not in done.stderr
    assert Path("in.txt").read_text(encoding="utf-8") == "b c d\n"
    assert Path("out.part").read_text(encoding="utf-8") == "mine\n"


def test_a_hangup_of_the_terminal_saves_a_training(whole: Path) -> None:
    """As a process of its own, whose terminal goes away in the middle."""
    command = [sys.executable, "-m", "nmt.train", "experiment=rnn", *SETTINGS, "run_dir=new"]
    process = subprocess.Popen(
        [*command, "training.max_updates=100000", "training.validate_every=100000"],
        env=program_environment(),
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while not Path("new/metrics.jsonl").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGHUP)
    assert process.wait(timeout=60) == 128 + signal.SIGHUP
    assert json.loads(Path("new/status.json").read_text(encoding="utf-8"))["state"] == "interrupted"
    assert Path("new/resume.pt").exists()


@pytest.mark.slow
def test_killed_anywhere_it_resumes_to_equal_bytes(tmp_path: Path) -> None:
    """A seeded tenth of what scripts/soak_kills.py tries."""
    done = run_script("soak_kills", tmp_path, "--share", "0.1", "--systems", "rnn,transformer")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("program", ["train", "prepare", "evaluate", "translate", "compare"])
def test_a_full_disk_is_one_line_and_the_same_command_finishes_once_there_is_space(
    tmp_path: Path, program: str
) -> None:
    """A seeded tenth of what scripts/soak_disk.py tries."""
    try:
        with small_disk():
            pass
    except OSError as error:
        pytest.skip(f"a small disk of memory cannot be mounted here: {error}")
    share = "0.02" if program == "compare" else "0.1"
    done = run_script("soak_disk", tmp_path, "--share", share, "--programs", program)
    assert done.returncode == 0, done.stdout + done.stderr
