"""`python -m nmt.train` as a user runs it: what a run holds, resumes, interruptions, copies, fine-tuning."""

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from nmt.loading import choose_precision
from nmt.run import read_config
from tests.conftest import RunProgram, program_environment
from tests.small_text import SMALL, assert_refused, contents, files, train, updates


def test_a_run_directory_holds_all_that_is_needed_and_no_absolute_path(text: Path, run_program: RunProgram) -> None:
    done = train(
        run_program, f"run_dir={text}/run", "training.log_every=1", f"data.test_src={text}/v.en", "data.test_tgt=v.fr"
    )
    assert done.returncode == 0, done.stderr
    run = text / "run"
    names = {"config.yaml", "data.json", "metrics.jsonl", "status.json", "source.model", "target.model"}
    assert names | {"last.safetensors", "best.safetensors", "resume.pt"} <= {path.name for path in run.iterdir()}
    assert updates(run) == [1, 2]
    assert json.loads((run / "status.json").read_text())["state"] == "finished"
    for path in run.iterdir():
        assert str(text).encode() not in path.read_bytes(), path
    assert done.stdout == ""
    assert sorted(path.name for path in text.iterdir() if path.is_dir()) == ["data", "run"]


@pytest.mark.slow
def test_the_same_command_resumes_and_a_spent_budget_changes_nothing(text: Path, run_program: RunProgram) -> None:
    def to(last: int) -> subprocess.CompletedProcess[str]:
        return train(
            run_program, "run_dir=bu", "training.log_every=1", f"training.max_updates={last}", "schedule=inverse_sqrt"
        )

    assert to(4).returncode == 0
    before = contents(text / "bu")
    again = to(4)
    assert again.returncode == 0
    assert "4 updates are done" in again.stderr
    assert contents(text / "bu") == before
    assert to(6).returncode == 0
    assert updates(text / "bu") == [1, 2, 3, 4, 5, 6]
    less = to(2)
    assert less.returncode == 0
    assert "6 updates are done" in less.stderr
    assert updates(text / "bu") == [1, 2, 3, 4, 5, 6]


@pytest.mark.slow
def test_resumed_after_ctrl_c_equals_never_stopped(text: Path, run_program: RunProgram) -> None:
    settings = ["training.max_updates=40", "training.log_every=1", "model.dropout=0.1", "batching.tokens=600"]
    whole = train(run_program, *settings, "run_dir=whole")
    assert whole.returncode == 0, whole.stderr
    command = [sys.executable, "-m", "nmt.train", "experiment=rnn", *files(), *SMALL, *settings, "run_dir=parts"]
    process = subprocess.Popen(command, cwd=text, env=program_environment(), stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("  update 3/"):
            process.send_signal(signal.SIGINT)
            break
    _, rest = process.communicate(timeout=120)
    assert process.returncode == 130, rest
    assert "the same command resumes from there" in rest
    assert updates(text / "parts")[-1] < 40
    assert json.loads((text / "parts" / "status.json").read_text())["state"] == "interrupted"
    assert train(run_program, *settings, "run_dir=parts").returncode == 0
    assert updates(text / "parts") == list(range(1, 41))
    for name in ("last.safetensors", "best.safetensors"):
        assert (text / "parts" / name).read_bytes() == (text / "whole" / name).read_bytes()


@pytest.mark.slow
def test_a_killed_run_goes_on_from_its_last_checkpoint(text: Path, run_program: RunProgram) -> None:
    settings = ["training.max_updates=30", "training.log_every=1", "training.validate_every=5", "batching.tokens=600"]
    command = [sys.executable, "-m", "nmt.train", "experiment=rnn", *files(), *SMALL, *settings, "run_dir=k"]
    process = subprocess.Popen(command, cwd=text, env=program_environment(), stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("  update 8/"):
            process.kill()
            break
    process.wait()
    done = train(run_program, *settings, "run_dir=k")
    assert done.returncode == 0, done.stderr
    assert "resumed at update" in done.stderr
    assert updates(text / "k") == list(range(1, 31))


@pytest.mark.slow
def test_what_may_change_at_a_resume_does(text: Path, run_program: RunProgram) -> None:
    assert train(run_program, "run_dir=r").returncode == 0
    done = train(
        run_program,
        "run_dir=r",
        "training.max_updates=3",
        "precision=bf16",
        "threads=1",
        "training.patience=9",
        "device=cpu",
    )
    assert done.returncode == 0, done.stderr
    config = yaml.safe_load((text / "r" / "config.yaml").read_text())
    assert config["precision"] == choose_precision("bf16", "cpu")
    assert config["training"]["max_updates"] == 3


@pytest.mark.slow
def test_a_second_run_into_a_directory_in_use_is_refused(text: Path, run_program: RunProgram) -> None:
    command = [
        sys.executable,
        "-m",
        "nmt.train",
        "experiment=rnn",
        *files(),
        *SMALL,
        "training.max_updates=100000",
        "run_dir=r",
    ]
    command += ["training.log_every=1", "schedule=constant", "batching.tokens=600"]
    process = subprocess.Popen(command, cwd=text, env=program_environment(), stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if line.startswith("  update 1/"):
                break
        second = train(
            run_program,
            "training.max_updates=100000",
            "training.log_every=1",
            "schedule=constant",
            "batching.tokens=600",
            "run_dir=r",
        )
        assert_refused(second, "another process is training in r")
        assert process.poll() is None
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_a_corpus_smaller_than_a_batch_is_trained_on(text: Path, run_program: RunProgram) -> None:
    done = run_program(
        "train", "experiment=rnn", *files("3.en", "3.fr"), *SMALL, "tokenizer.vocab_size=276", "training.max_updates=5",
        "training.log_every=1", "batching.tokens=1000000", "run_dir=r", "schedule=constant", "optimizer.lr=0.01",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    losses = [json.loads(line) for line in (text / "r" / "metrics.jsonl").open()]
    losses = [line["train/nll"] for line in losses if "train/nll" in line]
    assert len(losses) == 5
    assert losses[-1] < losses[0]
    assert "one batch" in done.stderr


@pytest.mark.slow
def test_a_copied_and_moved_run_translates_and_resumes(text: Path, run_program: RunProgram) -> None:
    assert train(run_program, "run_dir=src_run").returncode == 0
    shutil.copytree(text / "src_run", text / "elsewhere")
    (text / "src_run").rename(text / "gone")
    original = contents(text / "gone")
    (text / "b.en").rename(text / "hidden")
    elsewhere = text / "other"
    elsewhere.mkdir()
    translated = run_program("translate", f"checkpoint={text / 'elsewhere'}", stdin="hi\n", cwd=elsewhere)
    assert translated.returncode == 0, translated.stderr
    (text / "hidden").rename(text / "b.en")
    assert train(run_program, "run_dir=elsewhere", "training.max_updates=4").returncode == 0
    assert contents(text / "gone") == original


@pytest.mark.slow
@pytest.mark.parametrize("tied", ["target", "all"])
def test_tied_embeddings_stay_tied_through_a_resume(text: Path, run_program: RunProgram, tied: str) -> None:
    settings = [
        f"model.tie_embeddings={tied}",
        "tokenizer.joint=true",
        "run_dir=tied",
        "training.average_last=2",
        "training.validate_every=1",
    ]
    counts = []
    for last in (2, 4):
        done = train(run_program, *settings, f"training.max_updates={last}", experiment="transformer")
        assert done.returncode == 0, done.stderr
        counts.append(json.loads((text / "tied" / "status.json").read_text())["parameters"])
    assert counts[0] == counts[1]
    for name in ("tied", "tied/averaged.safetensors"):
        translated = run_program("translate", f"checkpoint={name}", stdin="hi\n")
        assert translated.returncode == 0, translated.stderr


@pytest.mark.slow
def test_fine_tuning_starts_from_the_other_runs_weights(text: Path, run_program: RunProgram) -> None:
    assert train(run_program, "run_dir=parent", "training.max_updates=20", "optimizer.lr=0.01").returncode == 0
    done = train(run_program, "run_dir=child", "init_from=parent", "training.max_updates=1", "training.log_every=1")
    assert done.returncode == 0, done.stderr
    first = json.loads((text / "child" / "metrics.jsonl").open().readline())["train/nll"]
    fresh = json.loads((text / "parent" / "metrics.jsonl").open().readline())
    assert first < 5.5, fresh
    assert (text / "child" / "source.model").read_bytes() == (text / "parent" / "source.model").read_bytes()


@pytest.mark.slow
def test_the_attentions_backend_is_said_and_an_exact_one_may_change_at_a_resume(
    text: Path, run_program: RunProgram
) -> None:
    def start(*arguments: str) -> subprocess.CompletedProcess[str]:
        return train(run_program, "run_dir=r", *arguments, experiment="transformer")

    done = start("attention_backend=tiled", "training.max_updates=1")
    assert "  attention   tiled\n" in done.stderr
    assert read_config(text / "r")["model"]["attention_backend"] == "tiled"
    before = contents(text / "r")
    assert_refused(start("attention_backend=linear"), "model.attention_backend=tiled, now linear")
    assert contents(text / "r") == before
    done = start("model.attention_dropout=0.0")
    assert done.returncode == 0, done.stderr
    assert "  attention   fused, chosen by auto\n" in done.stderr
    assert updates(text / "r") == [1, 2]
    assert read_config(text / "r")["model"]["attention_backend"] == "auto"
