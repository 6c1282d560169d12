"""README and docs quote what outputs/reference holds, their pictures exist, and README's commands compose.

tests/test_docs.py holds the rest of the documents.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir

from nmt.schema import conf_dir, declared_settings
from nmt.settings import PROGRAMS
from scripts import settings_reference
from scripts.readme import MARKED, PAGES, SUMMARY, fill_tables
from tests.conftest import program_environment

ROOT = Path(__file__).resolve().parent.parent
README, EXTENDING = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/extending.md"))


@pytest.mark.parametrize("page", PAGES)
def test_every_table_is_the_one_in_outputs_reference(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert MARKED.search(text) or SUMMARY.search(text)
    assert fill_tables(text) == text


@pytest.mark.parametrize("page", PAGES)
def test_every_picture_and_every_linked_file_exists(page: str) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", (ROOT / page).read_text(encoding="utf-8")):
        assert ((ROOT / page).parent / target).exists(), target


def test_the_settings_page_is_what_the_script_writes() -> None:
    assert settings_reference.PAGE.read_text(encoding="utf-8") == settings_reference.page()


def test_the_settings_page_has_every_setting() -> None:
    page = settings_reference.page()
    for program in PROGRAMS.values():
        for one in declared_settings(program):
            is_described = one.is_section or ".parts." in one.key or f"| `{one.key}` |" in page
            assert is_described or one.field.default == {}, one.key


def test_every_file_that_architecture_names_exists() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:nmt|conf|tests)/[\w/.]+)`", text)
    assert len(named) > 30
    assert [path for path in named if not (ROOT / path).exists()] == []


def commands() -> list[list[str]]:
    text = README.replace("\\\n", " ")
    found = re.findall(r"^(?:\S+=\S+ )*(?:nmt |python -m nmt\.)train (.*?)(?:\s+#.*)?$", text, re.MULTILINE)
    return [shlex.split(line) for line in found]


@pytest.mark.slow
def test_an_attention_added_as_the_text_says_trains_and_passes_the_contract(tmp_path: Path) -> None:
    section = EXTENDING[EXTENDING.index("## An attention") : EXTENDING.index("## A model")]
    code, settings = (re.search(rf"```{kind}\n(.*?)```", section, re.DOTALL)[1] for kind in ("python", "yaml"))  # type: ignore[index]
    (tmp_path / "my_attention.py").write_text(code, encoding="utf-8")
    (tmp_path / "my_conf" / "attention").mkdir(parents=True)
    (tmp_path / "my_conf" / "attention" / "cosine.yaml").write_text(settings, encoding="utf-8")
    environment = program_environment()
    environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), environment["PYTHONPATH"]])
    training, testing = (shlex.split(line) for line in re.findall(r"^(?:nmt train|NMT_CONF).*$", section, re.M))
    tiny = ["data=copy", "data.train_pairs=50", "data.valid_pairs=3", "training.max_updates=2"]
    run(["python", "-m", *training], tiny, tmp_path, environment)
    assert (tmp_path / "outputs/cosine/best.safetensors").exists()
    done = run(testing[1:], [], ROOT, environment | {"NMT_CONF": str(tmp_path / "my_conf")})
    assert re.search(r"\d\d passed", done), done


def run(command: list[str], more: list[str], folder: Path, environment: dict[str, str]) -> str:
    assert command[0] == "python"
    done = subprocess.run(
        [sys.executable, *command[1:], *more], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("arguments", commands(), ids=" ".join)
def test_every_training_command_composes(arguments: list[str]) -> None:
    plain = [a.split(",")[0] if a.startswith(("experiment=", "seed=")) else a for a in arguments if "=" in a]
    plain = [a for a in plain if not a.startswith("attention=cosine")]
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        assert compose("train", plain).model
