"""Evaluations on disk: strict JSON and the hypotheses beside it."""

import hashlib
import io
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from nmt.data.text import decode_lines
from nmt.errors import UserError
from nmt.files import read_bounded, read_json


def lines_sha256(lines: Iterable[str]) -> str:
    """SHA-256 of lines, each with its newline: that of a plain text file that holds them."""
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line.encode("utf-8") + b"\n")
    return digest.hexdigest()


def require_writable(folder: Path) -> None:
    """Make the folder; UserError, before anything is computed, where nothing can be written into it."""
    probe = folder / f".probe.{os.getpid()}.tmp"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        reason = error.strerror or error
        raise UserError(f"cannot write into {folder} ({reason}); name another folder with output=FOLDER") from None


def to_json(value: dict[str, Any], indent: int | None = 1) -> str:
    """Strict JSON: NaN or infinity is an error here and not in the reader's program."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)


def read_stored(folder: Path, name: str) -> tuple[dict[str, Any], list[str]] | None:
    """An evaluation and its hypotheses; None where there is none, or where its parts do not belong together."""
    return read_with_lines(folder / f"{name}.json", folder / f"{name}.hyp.txt", "hypotheses_sha256")


def read_with_lines(file: Path, plain: Path, checksum: str) -> tuple[dict[str, Any], list[str]] | None:
    """A JSON file and the lines (plain, or .gz) whose checksum the JSON has under that key; None as `read_stored`."""
    try:
        stored = read_json(file)
        text = read_bounded(plain if plain.exists() else plain.with_name(f"{plain.name}.gz"))
        lines = list(decode_lines(io.BytesIO(text.encode()), plain.name))
        unchanged = stored[checksum] == lines_sha256(lines)
    except (OSError, KeyError, UserError):
        return None
    return (stored, lines) if unchanged else None
