"""A corpus of numbered sentences, and nmt.train on it, for the tests of whole programs."""

import hashlib
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import RunProgram

SMALL = ["training.max_updates=2", "training.bleu_sentences=0", "tokenizer.vocab_size=310", "size.embedding=16"]


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
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def assert_refused(done: subprocess.CompletedProcess[str], *parts: str) -> None:
    """One clear line, an exit code of 1 or 2, no traceback."""
    assert done.returncode in (1, 2), done.stderr
    assert "Traceback" not in done.stderr
    errors = [line for line in done.stderr.split("\n") if line.startswith("error: ")]
    assert len(errors) == 1, done.stderr
    for part in parts:
        assert part in errors[0]
