"""Settings of `python -m nmt.train`: what is refused and how, odd names, sweeps, trackers."""

import json
import os
import time
from pathlib import Path

import pytest
import yaml

from tests.conftest import RunProgram, program_environment
from tests.small_text import SMALL, assert_refused, contents, files, some_slow, train, updates

OTHER_MODELS = [
    ("model.hidden_size=17", "model.hidden_size=128, now 17"),
    ("optimizer.lr=0.5", "optimizer.lr=0.001, now 0.5"),
    ("schedule=constant", "schedule._target_"),
    ("batching.tokens=77", "batching.tokens=4096, now 77"),
    ("seed=2", "seed=1, now 2"),
    ("data.train_src=b.fr", ""),
]


@pytest.mark.parametrize(("change", "shown"), some_slow(OTHER_MODELS, fast=0))
def test_another_model_in_the_same_directory_is_refused_and_nothing_changes(
    text: Path, run_program: RunProgram, change: str, shown: str
) -> None:
    assert train(run_program, "run_dir=r").returncode == 0
    before = contents(text / "r")
    changes = [change, "data.train_tgt=b.en"] if change.startswith("data.") else [change]
    assert_refused(train(run_program, "run_dir=r", *changes), "r was ", shown)
    assert contents(text / "r") == before


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
    (["precision=fp16"], ["precision=fp16", "fp32 or bf16"]),
    (["optimizer=adamx"], ["adam", "adamw"]),
    (["model.cell=lstmm"], ["model.cell=lstmm", "lstm"]),
    (["attention=dot", "model.hidden_size=17"], ["attention=dot"]),
    (["attention=multihead"], ["model.attention is missing: choose attention=NAME", "additive"]),
    (["attention_backend=tiled"], ["what is chosen here has no setting attention_backend"]),
    (["experiment=transformer", "attention_backend=varlen"], ["varlen cannot run here", "attention_backend=auto"]),
    (["experiment=transformer", "attention_backend=linear", "model.positions=alibi"], ["linear does not support"]),
    (["experiment=transformer", "attention_backend=tiled", "model.attention_dropout=0.1"], ["tiled has no dropout"]),
    (["model.input_feeding=true"], ["no setting model.input_feeding", "it belongs to model=luong"]),
    (["model.summary=first"], ["model.summary=first", "last_both"]),
    (["attention=local_p", "attention@model.attention.score=location"], ["attention@model.attention.score=additive"]),
]


@pytest.mark.parametrize(("arguments", "parts"), some_slow(REFUSALS, fast=3))
def test_a_refused_start_says_why_in_a_line_and_writes_nothing(
    text: Path, run_program: RunProgram, arguments: list[str], parts: list[str]
) -> None:
    before = contents(text)
    assert_refused(train(run_program, "run_dir=new", *arguments), *parts)
    assert contents(text) == before
    assert not (text / "new").exists()


@pytest.mark.slow
def test_a_sentence_beyond_the_learned_positions_is_said_in_a_line(text: Path, run_program: RunProgram) -> None:
    learned = ["model.positions=learned", "model.max_positions=5"]
    assert_refused(train(run_program, *learned, experiment="transformer"), "5 learned positions", "model.max_positions")


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
    assert [path.name for path in text.iterdir() if path.is_dir() and path.name != "data"] == [Path(name).parts[0]]


@pytest.mark.slow
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
def test_a_sweep_has_a_directory_for_each_job_and_is_refused_a_shared_one(text: Path, run_program: RunProgram) -> None:
    sweep = ["-m", "experiment=rnn", *files(), *SMALL, "optimizer.lr=1e-3,1e-4", "training.log_every=1"]
    done = run_program("train", *sweep, "run_dir=shared")
    assert done.returncode in (1, 2)
    assert "run_dir=" in done.stderr
    assert updates(text / "shared") == [1, 2]
    done = run_program("train", *sweep)
    assert done.returncode == 0, done.stderr
    for rate in ("0.001", "0.0001"):
        assert updates(text / "outputs" / "text" / f"rnn-lr={rate}") == [1, 2]
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


@pytest.mark.slow
def test_a_processor_without_fast_bf16_uses_fp32_and_says_so(
    text: Path, run_program: RunProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "avx2")
    bf16 = ("precision=bf16", "model.cell=lstm", "training.max_updates=1", "device=cpu", "run_dir=b")
    done = train(run_program, *bf16)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("precision=fp32 is used") == 1
    assert yaml.safe_load((text / "b" / "config.yaml").read_text())["precision"] == "fp32"
