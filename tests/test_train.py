"""`python -m nmt.train` as a user runs it: starts, refusals, resumes, interruptions."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import RunProgram, program_environment

SMALL = ["training.max_updates=2", "training.bleu_sentences=0", "tokenizer.vocab_size=310", "size.embedding=16"]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """A small corpus of numbered sentences, in the test's own folder."""
    numbers = range(1, 401)
    files = {
        "b.en": [f"the man number {i} sees the dog {i % 17} near the house" for i in numbers],
        "b.fr": [f"l homme numero {i} voit le chien {i % 17} devant la maison" for i in numbers],
        "v.en": [f"a woman with {i} cats walks to the market" for i in range(1, 41)],
        "v.fr": [f"une femme avec {i} chats marche vers le marche" for i in range(1, 41)],
        "3.en": ["the dog sleeps", "a cat runs", "we eat"],
        "3.fr": ["le chien dort", "un chat court", "nous mangeons"],
    }
    for name, lines in files.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return tmp_path


def some_slow(cases: Sequence[tuple[Any, ...]], fast: int) -> list[Any]:
    """Cases of one kind: the first few in every test run, the others among the slow tests."""
    return [*cases[:fast], *(pytest.param(*case, marks=pytest.mark.slow) for case in cases[fast:])]


def files(src: str = "b.en", tgt: str = "b.fr") -> list[str]:
    return ["data=text", f"data.train_src={src}", f"data.train_tgt={tgt}", "data.valid_src=v.en", "data.valid_tgt=v.fr"]


def train(run_program: RunProgram, *arguments: str, experiment: str = "rnn") -> subprocess.CompletedProcess[str]:
    return run_program("train", f"experiment={experiment}", *files(), *SMALL, *arguments)


def updates(run_dir: Path) -> list[int]:
    lines = [json.loads(line) for line in (run_dir / "metrics.jsonl").open()]
    return [line["update"] for line in lines if "train/nll" in line]


def contents(folder: Path) -> dict[str, str]:
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


def assert_refused(done: subprocess.CompletedProcess[str], *parts: str) -> None:
    """One clear line, an exit code of 1 or 2, no traceback."""
    assert done.returncode in (1, 2), done.stderr
    assert "Traceback" not in done.stderr
    errors = [line for line in done.stderr.split("\n") if line.startswith("error: ")]
    assert len(errors) == 1, done.stderr
    for part in parts:
        assert part in errors[0]


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
    assert sorted(path.name for path in text.iterdir() if path.is_dir()) == ["run"]


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
    assert "the same command goes on" in rest
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


OTHER_MODELS = [
    ("model.hidden_size=17", "model.hidden_size=128, now 17"),
    ("optimizer.lr=0.5", "optimizer.lr=0.001, now 0.5"),
    ("schedule=constant", "schedule._target_"),
    ("batching.tokens=77", "batching.tokens=4096, now 77"),
    ("seed=2", "seed=1, now 2"),
    ("data.train_src=v.en", ""),
]


@pytest.mark.parametrize(("change", "shown"), some_slow(OTHER_MODELS, fast=1))
def test_another_model_in_the_same_directory_is_refused_and_nothing_changes(
    text: Path, run_program: RunProgram, change: str, shown: str
) -> None:
    assert train(run_program, "run_dir=r").returncode == 0
    before = contents(text / "r")
    changes = [change, "data.train_tgt=v.fr"] if change.startswith("data.") else [change]
    assert_refused(train(run_program, "run_dir=r", *changes), "r was ", shown)
    assert contents(text / "r") == before


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
    assert config["precision"] == "bf16"
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


REFUSALS: list[tuple[list[str], list[str]]] = [
    (["training.max_update=3"], ["training.max_update", "did you mean training.max_updates"]),
    (["data.train_src=absent.en"], ["cannot read absent.en"]),
    (["data.train_src=3.en"], ["3.en has 3 lines", "b.fr has 400"]),
    (["tokenizer.vocab_size=200"], ["tokenizer.vocab_size=200", "smallest that works"]),
    (["tokenizer.vocab_size=8000"], ["tokenizer.vocab_size=8000", "largest that works"]),
    (["training.max_updates=null", "training.max_epochs=null"], ["give a budget"]),
    (
        ["training.max_updates=null", "training.max_epochs=null", "training.max_minutes=1"],
        ["schedule=linear needs an end"],
    ),
    (
        ["device=cuda:0" if not os.environ.get("CUDA_VISIBLE_DEVICES") else "device=tpu"],
        ["there is no such device"],
    ),
    (["init_from=absent"], ["there is no checkpoint at absent"]),
    (["data.train_src=${oc.env:NO_SUCH_PLACE}/b.en"], ["NO_SUCH_PLACE"]),
    (["optimizer=adamx"], ["adam", "adamw"]),
    (["model.cell=lstmm"], ["model.cell=lstmm", "lstm"]),
    (["attention=dot", "model.hidden_size=17"], ["attention=dot"]),
]


@pytest.mark.parametrize(("arguments", "parts"), some_slow(REFUSALS, fast=4))
def test_a_refused_start_says_why_in_a_line_and_writes_nothing(
    text: Path, run_program: RunProgram, arguments: list[str], parts: list[str]
) -> None:
    before = contents(text)
    assert_refused(train(run_program, "run_dir=new", *arguments), *parts)
    assert contents(text) == before
    assert not (text / "new").exists()


@pytest.mark.parametrize("arguments", [["--help"], ["--cfg", "job"]])
def test_help_and_cfg_explain_and_write_nothing(text: Path, run_program: RunProgram, arguments: list[str]) -> None:
    before = contents(text)
    done = run_program("train", "experiment=rnn", *arguments)
    assert done.returncode == 0
    assert "max_updates" in done.stdout
    assert contents(text) == before


def test_without_an_experiment_the_choices_are_named(run_program: RunProgram) -> None:
    assert_refused(run_program("train"), "experiment=NAME", "rnn", "bahdanau", "luong", "transformer")
    assert_refused(run_program("train", "experiment=seq2seq"), "experiment=seq2seq", "transformer")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["20261129", "1_1_1", "1e3", "007", "true", "out/日本", "out/{a}", "it's"])
def test_the_run_directory_has_the_name_that_was_typed(text: Path, run_program: RunProgram, name: str) -> None:
    done = train(run_program, f"run_dir={name}", "training.max_updates=1")
    assert done.returncode == 0, done.stderr
    assert (text / name / "config.yaml").exists()
    assert [path.name for path in text.iterdir() if path.is_dir()] == [Path(name).parts[0]]


def test_files_with_odd_names_are_read(text: Path, run_program: RunProgram) -> None:
    (text / "b.en").rename(text / "données.en")
    (text / "b.fr").rename(text / "fr#1, (été).fr")
    done = train(run_program, "data.train_src=données.en", "data.train_tgt=fr#1, (été).fr", "run_dir=r")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("word", ["None", "null", ""])
@pytest.mark.parametrize("key", ["init_from", "run_dir", "threads"])
def test_none_null_and_nothing_leave_no_folder_of_that_name(
    text: Path, run_program: RunProgram, key: str, word: str
) -> None:
    done = train(run_program, f"{key}={word}")
    assert done.returncode == 0, done.stderr
    assert not list(text.rglob("*None*"))


@pytest.mark.slow
@pytest.mark.parametrize("key", ["seed", "batching.max_pieces", "training.log_every", "tokenizer.vocab_size"])
def test_a_number_of_none_is_refused_in_a_line(text: Path, run_program: RunProgram, key: str) -> None:
    assert_refused(run_program("train", "experiment=rnn", *files(), f"{key}=None"), f"{key}=null")


@pytest.mark.slow
def test_an_environment_variable_in_a_path_is_needed_for_training_only(text: Path, run_program: RunProgram) -> None:
    done = run_program(
        "train", "experiment=rnn", *files("${oc.env:CORPORA}/b.en", "${oc.env:CORPORA}/b.fr"), *SMALL, "run_dir=r",
        env={"CORPORA": str(text)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    translated = run_program("translate", "checkpoint=r", stdin="the dog\n")
    assert translated.returncode == 0, translated.stderr
    assert translated.stdout.count("\n") == 1


@pytest.mark.slow
def test_a_sweep_whose_jobs_share_a_directory_is_refused_after_the_first(text: Path, run_program: RunProgram) -> None:
    sweep = ["-m", "experiment=rnn", *files(), *SMALL, "optimizer.lr=1e-3,1e-4", "training.log_every=1"]
    done = run_program("train", *sweep)
    assert done.returncode in (1, 2)
    assert "run_dir=" in done.stderr
    assert updates(text / "outputs" / "text" / "rnn") == [1, 2]
    assert not list(text.rglob("multirun*"))


@pytest.mark.slow
def test_one_refused_job_does_not_end_the_sweep(text: Path, run_program: RunProgram) -> None:
    assert train(run_program, "optimizer.lr=0.5", "run_dir=q/1", experiment="bahdanau").returncode == 0
    done = run_program(
        "train", "-m", "experiment=rnn,bahdanau,luong", *files(), *SMALL, "run_dir=q/${hydra:job.num}"
    )  # fmt: skip
    assert done.returncode in (1, 2)
    assert (text / "q" / "0" / "last.safetensors").exists()
    assert (text / "q" / "2" / "last.safetensors").exists()
    assert "job 1" in done.stderr.strip().split("\n")[-1]
    assert "optimizer.lr=0.5, now 0.001" in done.stderr


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
    import shutil

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
def test_offline_tracking_needs_no_account_and_no_terminal(text: Path, run_program: RunProgram) -> None:
    bare = {"HOME": str(text), "WANDB_MODE": "", "WANDB_API_KEY": ""}
    started = time.monotonic()
    done = run_program(
        "train", "experiment=rnn", *files(), *SMALL, "tracker=wandb", "run_dir=wb", env=bare, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "offline" in done.stderr
    assert time.monotonic() - started < 100
    assert list((text / "wb").rglob("offline-run-*"))


@pytest.mark.slow
def test_a_tracker_that_cannot_be_imported_is_said_before_any_work(text: Path, run_program: RunProgram) -> None:
    (text / "broken").mkdir()
    (text / "broken" / "wandb.py").write_text("raise ImportError('no wandb here')\n")
    path = os.pathsep.join([str(text / "broken"), program_environment()["PYTHONPATH"]])
    done = run_program(
        "train", "experiment=rnn", *files(), *SMALL, "tracker=wandb", "run_dir=wb", env={"PYTHONPATH": path}
    )
    assert_refused(done, "wandb", "pip install wandb")
    assert not (text / "wb").exists()


@pytest.mark.slow
def test_tensorboard_files_are_written(text: Path, run_program: RunProgram) -> None:
    pytest.importorskip("tensorboard")
    done = train(run_program, "tracker=tensorboard", "run_dir=tb")
    assert done.returncode == 0, done.stderr
    assert list((text / "tb" / "tensorboard").glob("events*"))


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["inverse_sqrt", "linear"])
def test_a_warm_up_that_outlasts_the_training_is_said(text: Path, run_program: RunProgram, schedule: str) -> None:
    done = train(
        run_program, f"schedule={schedule}", "schedule.warmup_updates=9999", "training.log_every=1", "run_dir=w"
    )
    assert done.returncode == 0, done.stderr
    assert "outlasts" in done.stderr
    rates = [json.loads(line).get("learning_rate") for line in (text / "w" / "metrics.jsonl").open()]
    rates = [rate for rate in rates if rate is not None]
    assert rates == sorted(rates)
    assert rates[0] > 0
