"""The commonest mistakes of a new user, in a terminal: one line that says what to type, and never a traceback."""

import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import program_environment
from tests.small_text import some_slow

SECONDS = 120  # for a command; torch takes some to import


class Screen(NamedTuple):
    """What a terminal shows of a command, and its exit code."""

    code: int
    lines: list[str]

    def errors(self) -> list[str]:
        return [line for line in self.lines if "error:" in line]


def type_command(command: str, folder: Path) -> Screen:
    """The command in a shell whose input, output and errors are one terminal of 200 columns."""
    controller, terminal = pty.openpty()
    environment = program_environment() | {"COLUMNS": "200", "TERM": "xterm", "PYTHON": sys.executable}
    shell = subprocess.Popen(
        ["bash", "-c", f"set -o pipefail; {command}"],
        stdin=terminal, stdout=terminal, stderr=terminal, cwd=folder, env=environment, start_new_session=True,
    )  # fmt: skip
    os.close(terminal)
    output = _read_all(controller)
    os.close(controller)
    return Screen(shell.wait(), re.split(r"\r?\n", output.decode()))


def _read_all(controller: int) -> bytes:
    output, deadline = b"", time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        if select.select([controller], [], [], 1)[0]:
            try:
                chunk = os.read(controller, 65536)
            except OSError:  # the other end is closed: Linux
                return output
            if not chunk:  # and elsewhere
                return output
            output += chunk
    raise AssertionError(f"no end after {SECONDS} s: {output!r}")


MISTAKES = [
    ("train bahdanau", ["did you mean experiment=bahdanau?"]),
    ("train --max_updates 300", ["training.max_updates=300"]),
    ("train", ["choose experiment=NAME", "bahdanau", "transformer"]),
    ("train experiment=transformer attention=dot", ["model.attention", "leave attention=NAME away"]),
    ("train experiment=rnn training.max_update=3", ["did you mean training.max_updates?"]),
    ("train experiment=rnnn", ["there is no experiment=rnnn", "rnn"]),
    ("train experiment=rnn model.hidden_size=abc", ["model.hidden_size=abc: give a whole number"]),
    ("train experiment=rnn training.max_updates=abc", ["training.max_updates=abc: give a whole number"]),
    ("train experiment=rnn data=text", ["data.train_src=FILE", "data.train_tgt=FILE"]),
    ("train experiment=rnn data=text data.train_src=b.en data.train_tgt=c.fr", ["c.fr", "No such file"]),
    ("train experiment=rnn seed=1,2", ["seed=1,2", "-m"]),
    ("train experiment=rnn device=gpu", ["device=gpu: give auto, cpu, cuda"]),
    ("translate", ["checkpoint=... is needed"]),
    ("translate checkpoint=outputs/rnn", ["no checkpoint at outputs/rnn", "python -m nmt.train"]),
    ("translate outputs/rnn", ["outputs/rnn: settings are written key=value", "checkpoint=outputs/rnn"]),
    ("evaluate", ["checkpoint=RUN", "hypotheses=FILE references=FILE"]),
    ("evaluate checkpoint=outputs/rnn", ["no checkpoint at outputs/rnn"]),
    ("compare experiment=rnn", ["experiments=rnn"]),
]


@pytest.mark.parametrize(("command", "parts"), some_slow(MISTAKES, fast=2))
def test_a_mistake_gets_one_line_that_says_what_to_type(command: str, parts: list[str], tmp_path: Path) -> None:
    (tmp_path / "b.en").write_text("a cat\n", encoding="utf-8")
    screen = type_command(f'"$PYTHON" -m nmt.{command}', tmp_path)
    assert screen.code in (1, 2), screen
    assert len(screen.errors()) == 1, screen
    assert screen.errors()[0].startswith("error: ")
    assert not any("Traceback" in line for line in screen.lines), screen
    for part in parts:
        assert part in screen.errors()[0]
    assert [path.name for path in tmp_path.iterdir()] == ["b.en"]


def test_help_into_head_ends_quietly(tmp_path: Path) -> None:
    screen = type_command('"$PYTHON" -m nmt.train --help | head -n 5', tmp_path)
    assert screen.code == 0, screen
    assert screen.lines[0] == "Train one system."
    assert len([line for line in screen.lines if line]) <= 5, screen


@pytest.mark.slow
@pytest.mark.parametrize("program", ["train", "evaluate", "translate", "compare", "prepare", "benchmark"])
def test_help_explains_settings_without_interpolations(program: str, tmp_path: Path) -> None:
    screen = type_command(f'"$PYTHON" -m nmt.{program} --help', tmp_path)
    text = "\n".join(screen.lines)
    assert screen.code == 0, screen
    assert not screen.errors()
    assert "_target_" not in text
    assert "${" not in text
    assert "Settings (key=value" in text


@pytest.mark.slow
def test_the_whole_configuration_is_shown_without_an_experiment(tmp_path: Path) -> None:
    screen = type_command('"$PYTHON" -m nmt.train --cfg job', tmp_path)
    assert screen.code == 0, screen
    assert not screen.errors()
    assert any(line.startswith("training:") for line in screen.lines)
