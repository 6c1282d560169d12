"""The virtual environment that the scripts share: `.venv`, made once and recognised by a stamp.

Standard library only; runs on Linux, macOS and Windows. The stamp says which versions (constraints.txt),
which package (pyproject.toml) and which checkout the environment was made for; while it agrees nothing is
installed. The scripts and this module keep to a syntax that an old Python can read, so that there it is told
in words that a newer one is needed.
"""

import sys

if sys.version_info < (3, 11):
    sys.exit(
        "%s: Python 3.11 or newer is needed, and this is %d.%d (%s): try python3.13, python3.12 or python3.11"
        % (sys.argv[0], sys.version_info[0], sys.version_info[1], sys.executable)
    )

import hashlib
import importlib.util
import json
import os
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parent.parent
OLDEST_PYTHON = (3, 11)
STAMP = "nmt-ready.json"
TORCH_CPU_INDEX = "https://download.pytorch.org/whl/cpu"
INSTALL_TIME = "2 to 5 minutes the first time, and nothing to do after that"
CPU_HELP = "install PyTorch without CUDA, from its own index (on Linux: 200 MB to download in place of 3 GB)"


class SetupError(Exception):
    """What the person at the keyboard can mend, and how."""


def python_of(venv: Path, system: str = os.name) -> Path:
    """The interpreter of a virtual environment; `system` is "nt" on Windows."""
    return venv / "Scripts" / "python.exe" if system == "nt" else venv / "bin" / "python"


def fingerprint(root: Path = ROOT) -> str:
    """Changes exactly when the pinned versions or the package's own description change."""
    digest = hashlib.sha256()
    for name in ("constraints.txt", "pyproject.toml"):
        digest.update((root / name).read_bytes().replace(b"\r\n", b"\n"))
    return digest.hexdigest()


def installed_extras(root: Path = ROOT) -> set[str] | None:
    """The extras that the environment was made with; None where it is missing, unfinished or out of date."""
    try:
        stamp = json.loads((root / ".venv" / STAMP).read_text(encoding="utf-8"))
        current = stamp["fingerprint"] == fingerprint(root) and stamp["root"] == str(root)
        return set(stamp["extras"]) if current else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def ensure(extras: Iterable[str] = (), cpu: bool = False, root: Path = ROOT) -> Path:
    """The environment's interpreter, after installing what is missing.

    Raises SetupError where that cannot be done; the next call goes on from there.
    """
    python = python_of(root / ".venv")
    have = installed_extras(root)
    if have is not None and have >= set(extras) and version_of(python) is not None:
        say(f"using {root / '.venv'}")
        return python
    make_venv(root / ".venv")
    stamp = root / ".venv" / STAMP
    stamp.unlink(missing_ok=True)
    wanted = sorted(set(extras) | (have or set()))
    pip_install(python, pip_arguments(wanted, cpu), root)
    unfinished = stamp.with_suffix(".tmp")
    content = {"fingerprint": fingerprint(root), "extras": wanted, "root": str(root)}
    unfinished.write_text(json.dumps(content), encoding="utf-8")
    unfinished.replace(stamp)
    return python


def version_of(python: Path) -> tuple[int, int] | None:
    """(3, 11) and the like; None where the interpreter is missing or does not start."""
    command = [str(python), "-c", "import sys; print(*sys.version_info[:2])"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=clean_environment())
        major, minor = done.stdout.split()
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return int(major), int(minor)


def make_venv(venv: Path) -> None:
    """A virtual environment with pip at `venv`, unless one is there; any other folder is left alone."""
    version = version_of(python_of(venv))
    if version is not None and version < OLDEST_PYTHON:
        found = ".".join(map(str, version))
        raise SetupError(f"{venv} holds Python {found}, too old: move that folder away and try again")
    strange = venv.is_file() or (venv.is_dir() and any(venv.iterdir()) and not (venv / "pyvenv.cfg").exists())
    if version is None and strange:
        raise SetupError(f"{venv} exists and is no virtual environment: move it away and try again")
    if version is not None and has_pip(python_of(venv)):
        return
    for module in ("venv", "ensurepip"):
        if importlib.util.find_spec(module) is None:
            major, minor = sys.version_info[:2]
            raise SetupError(
                f"this Python ({sys.executable}) lacks its module {module}: on Debian and Ubuntu,"
                f" sudo apt install python{major}.{minor}-venv; elsewhere use the Python of python.org"
            )
    say(f"making {venv}")
    command = [sys.executable, "-m", "venv", *(["--clear"] if version is None else []), str(venv)]
    made = subprocess.run(command, capture_output=True, text=True, env=clean_environment())
    if made.returncode != 0 or not has_pip(python_of(venv)):
        last_words = (made.stdout + made.stderr).strip() or "no message"
        raise SetupError(f"{venv} could not be made: {last_words}")


def has_pip(python: Path) -> bool:
    command = [str(python), "-m", "pip", "--version"]
    return subprocess.run(command, capture_output=True, env=clean_environment()).returncode == 0


def pip_arguments(extras: Sequence[str], cpu: bool) -> list[str]:
    """What follows `pip install`: this checkout and its extras, in the pinned versions."""
    index = ["--extra-index-url", TORCH_CPU_INDEX] if cpu else []
    package = f".[{','.join(extras)}]" if extras else "."
    return [*index, "-c", "constraints.txt", "-e", package]


def pip_install(python: Path, arguments: Sequence[str], root: Path) -> None:
    """Run pip, say every now and then how far it is, keep its words in .venv/install.log."""
    log = root / ".venv" / "install.log"
    command = [str(python), "-m", "pip", "install", "--progress-bar", "off", *arguments]
    say("installing the versions of constraints.txt")
    code = watch(command, log, root)
    if code != 0:
        words = log.read_text(encoding="utf-8", errors="replace")
        raise SetupError(f"{why_pip_failed(words)} (all of pip's words: {log})")
    say("installed")


def watch(command: Sequence[str], log: Path, cwd: Path) -> int:
    """Run a command, keep its output in `log` and say its latest line now and then."""
    seconds_between_lines = 1.0 if sys.stderr.isatty() else 20.0
    latest = ["starting"]
    start = said = time.monotonic()
    with log.open("w", encoding="utf-8") as kept:
        child = subprocess.Popen(
            command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            encoding="utf-8", errors="replace", env=clean_environment(),
        )  # fmt: skip

        def read() -> None:
            for line in child.stdout or ():
                kept.write(line)
                latest[0] = line.strip() or latest[0]

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        try:
            while reader.is_alive():
                reader.join(timeout=0.5)
                if time.monotonic() - said >= seconds_between_lines:
                    said = time.monotonic()
                    progress(f"  {said - start:4.0f} s  {latest[0]}")
            return child.wait()
        finally:
            if child.poll() is None:
                child.terminate()
                child.wait()
            reader.join()
            progress("")


def why_pip_failed(words: str) -> str:
    """One line, from all that pip wrote."""
    unreachable = (
        "NewConnectionError",
        "ConnectTimeoutError",
        "ReadTimeoutError",
        "ProxyError",
        "SSLError",
        "Failed to establish a new connection",
        "Max retries",
        "name resolution",
    )
    if "No space left on device" in words:
        return "the disk is full: PyTorch and the rest need 2 GB, 8 GB with CUDA"
    errors = [line.strip() for line in words.split("\n") if line.strip().lower().startswith("error:")]
    no_torch = any("No matching distribution found for torch" in line for line in errors)
    if any(word in words for word in unreachable) or ("(from versions: none)" in words and not no_torch):
        return (
            "pip cannot reach the package index: look at the network (proxy: set HTTPS_PROXY; mirror: set"
            " PIP_INDEX_URL), then run the same command again; what has been installed is kept"
        )
    if no_torch:
        version = ".".join(map(str, sys.version_info[:2]))
        return (
            f"the pinned PyTorch has no build for Python {version} on this machine: it exists for 64-bit"
            " Linux and Windows and for Macs with Apple silicon; try another Python (3.11 to 3.13)"
        )
    return f"pip failed: {errors[-1] if errors else 'it gave no reason'}"


def clean_environment() -> dict[str, str]:
    """The variables for pip: without those that would make it install elsewhere or ask questions."""
    elsewhere = ("PYTHONHOME", "PYTHONPATH", "PIP_TARGET", "PIP_PREFIX")
    kept = {key: value for key, value in os.environ.items() if key not in elsewhere}
    quiet = {"PIP_USER": "0", "PIP_NO_INPUT": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONUTF8": "1"}
    return kept | quiet


def program_environment() -> dict[str, str]:
    """The variables for what runs in .venv: UTF-8, and one thread each, as several share the cores."""
    return os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONUTF8": "1"}


def run(command: Sequence[str], env: Mapping[str, str], grace_seconds: float = 30.0) -> int:
    """Run a program in the checkout with this terminal's input and output; its exit code, 130 after Ctrl-C.

    Ctrl-C at a terminal reaches the program as well, which then has `grace_seconds` to save what it has.
    """
    child = subprocess.Popen(command, cwd=ROOT, env=dict(env))
    try:
        return child.wait()
    except KeyboardInterrupt:
        try:
            child.wait(timeout=grace_seconds)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            child.terminate()
        child.wait()
        return 130
    finally:
        if child.poll() is None:
            child.terminate()


def guarded(main: Callable[[list[str]], int], go_on: str) -> int:
    """Run a script's main; what goes wrong is told in one line, and so is the command that goes on."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, stop)  # so that `finally` blocks run and no child is left behind
    try:
        code = main(sys.argv[1:])
    except SetupError as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        code = 130
    if code == 130:
        say(f"stopped; what is done is kept, and this goes on from there: {go_on}")
    return code


def this_command() -> str:
    """How this script was started, for messages."""
    words = [Path(sys.executable).name, *sys.argv]
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)


def cpus() -> int:
    """The number of processors that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def say(text: str) -> None:
    """A line for people; standard output is left to results."""
    print(f"{Path(sys.argv[0]).stem}: {text}", file=sys.stderr, flush=True)


def progress(text: str, width: int = 100) -> None:
    """On a terminal, replace the living line (an empty text removes it); elsewhere print a line."""
    if sys.stderr.isatty():
        print(f"\r{text[:width]:<{width}}" + ("" if text else "\r"), end="", file=sys.stderr, flush=True)
    elif text:
        print(text[:width], file=sys.stderr, flush=True)
