"""Runs that are older than a setting are read, resumed and compared as if they had stated what they did."""

from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from nmt.cli import conf_dir
from nmt.run_directory import differences, read_config

REFERENCE = Path(__file__).resolve().parent.parent / "outputs" / "reference" / "grammar"


@pytest.mark.parametrize("experiment", ["rnn", "bahdanau", "luong", "transformer"])
def test_an_older_runs_model_and_training_are_those_of_the_same_command_today(experiment: str) -> None:
    with initialize_config_dir(conf_dir(), version_base="1.3"):
        today = OmegaConf.to_container(compose("train", [f"experiment={experiment}"]), resolve=True)
    before = read_config(REFERENCE / experiment)
    for section in ("model", "training"):
        assert differences({section: before[section]}, {section: today[section]}) == []
