"""What every test gets: one thread, one seed, no account; and the programs, run as a user runs them."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

# Before torch is imported: two thread pools on two cores are many times slower than two single threads.
os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"
os.environ.setdefault("WANDB_MODE", "offline")
os.environ.setdefault("MPLBACKEND", "Agg")

import pytest
import torch

from tests.program_server import program_environment, run_module

ROOT = Path(__file__).resolve().parent.parent
RunProgram = Callable[..., subprocess.CompletedProcess[str]]

torch.set_num_threads(1)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # started in the background of a shell: programs would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # and under nohup this one
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


# Files that begin first, so that none of them runs alone on one of several processors at the end.
LONGEST = ("test_learning.py", "test_wheel.py", "test_compare.py", "test_train.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.name not in LONGEST)
    if torch.cuda.is_available():
        return
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device, and torch finds none"))


@pytest.fixture(autouse=True)
def fixed_seed() -> None:
    """Every test starts from the same random state, whatever ran before it."""
    random.seed(1)
    torch.manual_seed(1)


@pytest.fixture(scope="session")
def nmt_data() -> Path:
    """The folder with real corpora."""
    folder = os.environ.get("NMT_DATA")
    if not folder:
        pytest.skip("needs real data: NMT_DATA does not name a folder")
    if not Path(folder).is_dir():
        pytest.skip(f"needs real data: NMT_DATA={folder} is no folder")
    return Path(folder)


@pytest.fixture
def run_program(tmp_path: Path) -> RunProgram:
    """run_program("translate", "checkpoint=run", stdin="a line") is `python -m nmt.translate checkpoint=run`.

    It runs in the test's own empty folder (or `cwd`), with `stdin` as text or bytes (by default none).
    Line ends in its output are left as the program wrote them, which `text=True` would not do.
    """

    def run(
        name: str,
        *arguments: str,
        stdin: str | bytes = b"",
        cwd: Path = tmp_path,
        env: Mapping[str, str] | None = None,
        timeout: float = 300,
    ) -> subprocess.CompletedProcess[str]:
        done = run_module(
            f"nmt.{name}" if name else "nmt",
            arguments,
            cwd,
            stdin=stdin.encode() if isinstance(stdin, str) else stdin,
            env=program_environment() | dict(env or {}),
            timeout=timeout,
        )
        out, err = done.stdout.decode(), done.stderr.decode(errors="backslashreplace")
        return subprocess.CompletedProcess(done.args, done.returncode, out, err)

    return run


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


def run_script(
    name: str, cwd: Path, *arguments: str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """`python -m scripts.NAME` of this checkout, run in `cwd`."""
    command = [sys.executable, "-m", f"scripts.{name}", *arguments]
    environment = program_environment() | dict(env or {})
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, timeout=300)
