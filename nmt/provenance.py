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


def command_of(program: str) -> str:
    """`nmt train` or `python -m nmt.train`, as this process was started."""
    return f"nmt {program}" if _is_script() else f"python -m nmt.{program}"


def _is_script() -> bool:
    """The command nmt is a script that Python runs. sys.argv is rewritten by nmt/cli.py."""
    return len(sys.orig_argv) > 1 and Path(sys.orig_argv[1]).stem == "nmt"


def command_line() -> str:
    """`nmt train …` or `python -m nmt.train …` as it was typed; absolute paths are cut to their last part."""
    words = ["nmt", *sys.orig_argv[2:]] if _is_script() else ["python", *sys.orig_argv[1:]]
    relocated = map(without_absolute_paths, words)
    return printable(" ".join(word if "$NMT_DATA/" in word else shlex.quote(word) for word in relocated))


def without_absolute_paths(argument: str) -> str:
    """`key=/home/me/a.en` -> `key=a.en`, or `key=$NMT_DATA/a.en`, in lists too: it is read on other machines."""
    parts, data = re.split(r"([=,\[\]])", argument), os.environ.get("NMT_DATA")
    for n, part in enumerate(parts):
        if os.path.isabs(part):
            is_known = data and Path(part).is_relative_to(data)
            parts[n] = f"$NMT_DATA/{Path(part).relative_to(str(data)).as_posix()}" if is_known else Path(part).name
    return "".join(parts)


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
