"""README quotes what outputs/reference holds, its pictures exist, and its commands compose."""

import re
import shlex
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir

from nmt.cli import conf_dir
from scripts.readme import PLACE, filled

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_table_is_the_one_in_outputs_reference() -> None:
    assert PLACE.search(README)
    assert filled(README) == README


def test_every_picture_and_every_linked_file_exists() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target


def commands() -> list[list[str]]:
    text = README.replace("\\\n", " ")
    found = re.findall(r"^(?:\S+=\S+ )*python -m nmt\.train (.*?)(?:\s+#.*)?$", text, re.MULTILINE)
    return [shlex.split(line) for line in found]


@pytest.mark.parametrize("arguments", commands(), ids=" ".join)
def test_every_training_command_composes(arguments: list[str]) -> None:
    plain = [a.split(",")[0] if a.startswith(("experiment=", "seed=")) else a for a in arguments if "=" in a]
    plain = [a for a in plain if not a.startswith("attention=cosine")]
    with initialize_config_dir(conf_dir(), version_base="1.3"):
        assert compose("train", plain).model
