"""How a result was made: command, commit, machine and versions, written beside every result."""

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

DISTRIBUTION = "nmt-attention"  # the index has another project's nmt


def provenance() -> dict[str, Any]:
    """How a result was made, written beside every result."""
    return {
        "command": command_line(),
        "commit": git_commit(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": machine_description(),
        "versions": {
            "python": platform.python_version(),
            **{name: package_version(name) for name in (DISTRIBUTION, "torch", "sentencepiece", "sacrebleu")},
        },
    }


def command_line() -> str:
    """`nmt train …` or `python -m nmt.train …` as it was typed; absolute paths are cut to their last part."""
    typed = sys.orig_argv[1:]  # sys.argv is rewritten by nmt/cli.py
    is_script = bool(typed) and Path(typed[0]).stem == "nmt"  # the command nmt is a script that Python runs
    words = ["nmt", *typed[1:]] if is_script else ["python", *typed]
    return printable(" ".join(_quote_argument(without_absolute_paths(argument)) for argument in words))


def _quote_argument(argument: str) -> str:
    return argument if "$NMT_DATA/" in argument else shlex.quote(argument)


def without_absolute_paths(argument: str) -> str:
    """`key=/home/me/a.en` -> `key=a.en`, or `key=$NMT_DATA/a.en`, in lists too: it is read on other machines."""
    parts = re.split(r"([=,\[\]])", argument)
    return "".join(_relocate(part) if os.path.isabs(part) else part for part in parts)


def _relocate(path: str) -> str:
    data = os.environ.get("NMT_DATA")
    if data and Path(path).is_relative_to(data):
        return f"$NMT_DATA/{Path(path).relative_to(data).as_posix()}"
    return Path(path).name


def git_commit() -> str:
    """The checkout's commit, marked +changes where files differ from it; empty for an installed wheel."""
    checkout = Path(__file__).resolve().parent.parent
    if not (checkout / ".git").exists():
        return ""
    try:
        head, changes = (
            subprocess.run(["git", "-C", str(checkout), *command], capture_output=True, text=True, timeout=10).stdout
            for command in (["rev-parse", "--short=10", "HEAD"], ["status", "--porcelain", "--untracked-files=no"])
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return head.strip() + ("+changes" if changes.strip() else "")


def machine_description() -> str:
    """Processor, number of cores and system, as far as the system tells."""
    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.split(":", 1)[1].strip() for line in cpuinfo.read_text().split("\n") if "model name" in line]
        processor = names[0] if names else processor
    return f"{processor}, {os.cpu_count()} cores, {platform.system()}"


def package_version(package: str) -> str:
    """Empty where it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""
