"""Files written whole or not at all, and files of strangers read within bounds."""

import gzip
import hashlib
import json
import math
import os
import re
import stat
import unicodedata
import zlib
from collections.abc import Callable, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Any

import yaml

from nmt.errors import UserError

TEXT_LIMIT = 1 << 26  # bytes of a text, compressed or not, in a run directory
CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f]")
MAX_ENTRIES = 20_000
YAML_DEPTH = 24  # nested sections
LONGEST_LINE = 1 << 16  # characters of a line of metrics

_UMASK = os.umask(0)
os.umask(_UMASK)
_DEFAULT_MODE = 0o666 & ~_UMASK
_MAX_NAME_BYTES = 120  # of a label in a file name
_INVISIBLE = ("Cc", "Cf", "Cs", "Cn", "Zl", "Zp")  # Unicode's categories


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """`write` to a temporary file beside `path`, then put it in place in one move. UserError where that fails."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        write(temporary)
        temporary.chmod(_DEFAULT_MODE)  # safetensors creates files that only their owner can read
        _sync(temporary)  # or a power cut could leave the name without the content
        os.replace(temporary, path)
        _sync(path.parent)
    except Exception as error:  # torch and safetensors have kinds of their own for a full disk
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())[:200]
        raise UserError(f"cannot write {path}: {reason}") from None
    finally:
        temporary.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_temporaries(folder: Path) -> None:
    """What writes that were killed have left behind in a folder and below; no other process may be writing there."""
    for path in folder.rglob(".*.tmp"):
        path.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """UTF-8, with line ends as they are in `text`."""
    write_whole(path, lambda to: to.write_text(text, encoding="utf-8", newline="\n"))


def write_bytes(path: Path, content: bytes) -> None:
    write_whole(path, lambda to: to.write_bytes(content))


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def printable(name: str) -> str:
    """A name as text that can be written and shown: bytes that are no UTF-8 and control characters are escaped."""
    return CONTROLS.sub(lambda match: f"\\x{ord(match[0]):02x}", name.encode("utf-8", "backslashreplace").decode())


def require_self_contained(folder: Path) -> None:
    """UserError unless everything in a folder is an ordinary file or folder, and no link leads out of it."""
    inside, entries = folder.resolve(), 0
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path, entries = Path(parent, name), entries + 1
            if entries > MAX_ENTRIES:
                raise UserError(f"{folder} holds more than {MAX_ENTRIES:,} files; a run directory has fewer")
            if path.is_symlink() and not (path.exists() and Path(os.path.realpath(path)).is_relative_to(inside)):
                raise UserError(
                    f"{printable(str(path))} is a link that leads out of {folder}, or nowhere; replace it by a copy"
                )
            kind = path.stat().st_mode if path.exists() else stat.S_IFREG
            if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
                raise UserError(f"{printable(str(path))} is neither a file nor a folder; remove it")


def read_bounded(path: Path, limit: int = TEXT_LIMIT, errors: str = "strict") -> str:
    """UTF-8 text of an ordinary file (.gz: compressed) of at most `limit` bytes.

    UserError where it is none; FileNotFoundError passes.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise UserError(f"{path} is not an ordinary file")
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            content = file.read(limit + 1)
        if len(content) > limit:
            raise UserError(f"{path} holds more than {limit:,} bytes; no more are read")
        return content.decode("utf-8", errors)
    except FileNotFoundError:
        raise
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 (byte {error.start + 1})") from None
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None


def read_json(path: Path, limit: int = 1 << 24) -> dict[str, Any]:
    """A JSON object from a file of at most `limit` bytes. UserError where it is none; FileNotFoundError passes."""
    try:
        value = strict_json(read_bounded(path, limit))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not JSON that can be read: {' '.join(str(error).split())}") from None
    if not isinstance(value, dict):
        raise UserError(f"{path} does not hold a JSON object")
    return value


def read_yaml(path: Path, limit: int = 1 << 16) -> Any:
    """A value from YAML of at most `limit` bytes; UserError where it is none, FileNotFoundError passes.

    There are no aliases in it and its depth is bounded: a small file cannot expand to a large value.
    """
    text, depth = read_bounded(path, limit), 0
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if isinstance(event, yaml.AliasEvent) or depth > YAML_DEPTH:
                raise ValueError(f"aliases, and sections nested more than {YAML_DEPTH} deep, are not read")
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UserError(f"cannot read {path}: {printable(' '.join(str(error).split()))}") from None


def strict_json(text: str, limit: int = 1 << 24) -> Any:
    """A value of JSON as this program writes it: no NaN, no infinity, no number that a float cannot hold."""
    if len(text) > limit:
        raise ValueError(f"over {limit:,} characters")
    return json.loads(text, parse_constant=_finite, parse_float=_finite, parse_int=_finite)


def _finite(text: str) -> float | int:
    is_whole = text.lstrip("-").isdecimal()
    if not math.isfinite(float(text)) or (is_whole and len(text) > 20):
        raise ValueError(f"{text[:20]} is no finite number, or has too many digits")
    return int(text) if is_whole else float(text)


def visible(text: str) -> str:
    """Text that acts on nothing where it is shown: line ends, a terminal's escapes and the like are U+FFFD."""
    return "".join("\ufffd" if unicodedata.category(letter) in _INVISIBLE else letter for letter in text)


def file_name(label: str) -> str:
    """A label without the characters that file names may not hold, short enough for any file system with a suffix."""
    return re.sub(r"[^\w.-]+", "-", label).encode()[:_MAX_NAME_BYTES].decode(errors="ignore")


def file_names(labels: Sequence[str]) -> list[str]:
    """A name for each label, no two alike, also where file names ignore case."""
    names: dict[str, str] = {}  # by their lower case
    for label in labels:
        stem = file_name(label)
        name = next(name for name in chain([stem], (f"{stem}-{n}" for n in count(2))) if name.lower() not in names)
        names[name.lower()] = name
    return list(names.values())
