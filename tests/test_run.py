"""Run directories: committed settings are complete, and provenance names no path of one machine."""

from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from nmt.cli import conf_dir
from nmt.loading import build_model
from nmt.provenance import command_line, command_of, without_absolute_paths
from nmt.run import changed_settings, read_config

REFERENCE = Path(__file__).resolve().parent.parent / "outputs" / "reference" / "grammar"


@pytest.mark.parametrize("experiment", ["rnn", "bahdanau", "luong", "transformer"])
def test_a_reference_runs_model_and_training_are_those_of_the_same_command_today(experiment: str) -> None:
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        today = OmegaConf.to_container(compose("train", [f"experiment={experiment}"]), resolve=True)
    before = read_config(REFERENCE / experiment)
    for section in ("model", "training"):
        assert changed_settings({section: before[section]}, {section: today[section]}) == []


@pytest.mark.parametrize(
    ("typed", "recorded"),
    [
        ("input=/home/me/a.en", "input=a.en"),
        ("input=/data/sets/a.en", "input=$NMT_DATA/sets/a.en"),
        ("runs=[/home/me/rnn,runs/luong,/data/x.hyp]", "runs=[rnn,runs/luong,$NMT_DATA/x.hyp]"),
        ("runs=/home/me/rnn,/home/me/luong", "runs=rnn,luong"),
        ("evaluate.test=wmt14/full", "evaluate.test=wmt14/full"),
        ("sentence=either/or", "sentence=either/or"),
        ("/home/me/script.py", "script.py"),
    ],
)
def test_absolute_paths_keep_their_last_part(monkeypatch: pytest.MonkeyPatch, typed: str, recorded: str) -> None:
    monkeypatch.setenv("NMT_DATA", "/data")
    assert without_absolute_paths(typed) == recorded


@pytest.mark.parametrize(
    ("typed", "recorded", "next_command"),
    [
        (["python", "/env/bin/nmt", "train", "seed=2"], "nmt train seed=2", "nmt evaluate"),
        (["python", "-m", "nmt.train", "seed=2"], "python -m nmt.train seed=2", "python -m nmt.evaluate"),
    ],
)
def test_hints_and_records_name_the_command_as_it_was_started(
    monkeypatch: pytest.MonkeyPatch, typed: list[str], recorded: str, next_command: str
) -> None:
    monkeypatch.setattr("sys.orig_argv", typed)
    assert command_line() == recorded
    assert command_of("evaluate") == next_command


@pytest.mark.parametrize("config", sorted(REFERENCE.parent.glob("*/*/config.yaml")), ids=lambda path: path.parent.name)
def test_every_reference_run_states_all_settings_of_its_model_and_training(config: Path) -> None:
    settings = read_config(config.parent)
    model = "transformer" if settings["model"]["_target_"].endswith("Transformer") else "bahdanau"
    model = "luong" if settings["model"]["_target_"].endswith("Luong") else model
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        today = compose("train", [f"experiment={model}"])
    assert set(settings["model"]) == set(today.model)
    assert set(settings["training"]) == set(today.training)
    build_model(settings["model"], 8, 8)
