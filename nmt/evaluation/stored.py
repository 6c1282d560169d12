"""Evaluations on disk: strict JSON and the hypotheses beside it."""

import hashlib
import io
import json
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from nmt.data.text import decode_lines
from nmt.errors import UserError
from nmt.files import read_bounded, read_json, write_text
from nmt.progress import say


def lines_sha256(lines: Iterable[str]) -> str:
    """SHA-256 of lines, each with its newline: that of a plain text file that holds them."""
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line.encode("utf-8") + b"\n")
    return digest.hexdigest()


def require_writable(folder: Path) -> None:
    """Make the folder; UserError, before anything is computed, where nothing can be written into it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        reason = error.strerror or error
        raise UserError(f"cannot write into {folder} ({reason}); name another folder with output=FOLDER") from None


def to_json(value: dict[str, Any], indent: int | None = 1) -> str:
    """Strict JSON: NaN or infinity is an error here and not in the reader's program."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)


def read_stored(
    folder: Path, name: str, lines_suffix: str = "hyp.txt", checksum: str = "hypotheses_sha256"
) -> tuple[dict[str, Any], list[str]] | None:
    """NAME.json and the lines beside it (plain, or .gz), whose checksum the JSON has: an evaluation and its hypotheses.

    None where there is none, or where its parts do not belong together.
    """
    plain = folder / f"{name}.{lines_suffix}"
    try:
        stored = read_json(folder / f"{name}.json")
        text = read_bounded(plain if plain.exists() else plain.with_name(f"{plain.name}.gz"))
        lines = list(decode_lines(io.BytesIO(text.encode()), plain.name))
        return (stored, lines) if stored[checksum] == lines_sha256(lines) else None
    except (OSError, KeyError, UserError):
        return None


def write_with_lines(folder: Path, name: str, lines_suffix: str, lines: Iterable[str], content: dict[str, Any]) -> None:
    """What `read_stored` reads, the lines first: a JSON that is there has its lines beside it."""
    write_text(folder / f"{name}.{lines_suffix}", "".join(f"{line}\n" for line in lines))
    write_text(folder / f"{name}.json", to_json(content) + "\n")
    say(f"written: {folder / name}.json and .{lines_suffix}")
