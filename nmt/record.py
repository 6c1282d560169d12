"""With what a result was made: command, commit, date, machine, versions. No absolute path."""

import datetime
import importlib.metadata
import os
import platform
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from nmt.files import printable


def record() -> dict[str, Any]:
    """Facts that travel with every result."""
    return {
        "command": command(),
        "commit": commit(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": {
            "python": platform.python_version(),
            **{name: package_version(name) for name in ("nmt", "torch", "sentencepiece", "sacrebleu")},
        },
    }


def command() -> str:
    """`python -m nmt.train …` as it was typed; absolute paths are cut to their last part."""
    typed = sys.orig_argv[1:]  # sys.argv is rewritten at the door (nmt/cli.py)
    return printable(" ".join(["python", *(_quoted(without_absolute_paths(argument)) for argument in typed)]))


def _quoted(argument: str) -> str:
    return argument if "$NMT_DATA/" in argument else shlex.quote(argument)


def without_absolute_paths(argument: str) -> str:
    """`key=/home/me/a.en` -> `key=a.en`, or `key=$NMT_DATA/a.en`, in lists too: a record is read on other machines."""
    parts = re.split(r"([=,\[\]])", argument)
    return "".join(_relocated(part) if os.path.isabs(part) else part for part in parts)


def _relocated(path: str) -> str:
    data = os.environ.get("NMT_DATA")
    if data and Path(path).is_relative_to(data):
        return f"$NMT_DATA/{Path(path).relative_to(data).as_posix()}"
    return Path(path).name


def commit() -> str:
    """The checkout's commit, with a mark where files differ from it; empty for an installed wheel."""
    package = Path(__file__).resolve().parent
    if not (package.parent / ".git").exists():
        return ""
    git = ["git", "-C", str(package.parent)]
    try:
        name = subprocess.run([*git, "rev-parse", "--short=10", "HEAD"], capture_output=True, text=True, timeout=10)
        changed = subprocess.run(
            [*git, "status", "--porcelain", "--untracked-files=no"], capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return name.stdout.strip() + ("+changes" if changed.stdout.strip() else "")


def machine() -> str:
    """Processor and cores, as far as the system tells."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.split(":", 1)[1].strip() for line in cpuinfo.read_text().split("\n") if "model name" in line]
        model = names[0] if names else model
    return f"{model}, {os.cpu_count()} cores, {platform.system()}"


def package_version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""
