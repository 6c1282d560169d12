"""Files written whole or not at all: a crash leaves the old one or the new one."""

import hashlib
import os
import re
import unicodedata
from collections.abc import Callable, Sequence
from itertools import chain, count
from pathlib import Path

from nmt.errors import UserError

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
        os.replace(temporary, path)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """UTF-8, with line ends as they are in `text`."""
    write_whole(path, lambda to: to.write_text(text, encoding="utf-8", newline="\n"))


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def printable(name: str) -> str:
    """A name that is no UTF-8 on disk, as text that can be written."""
    return name.encode("utf-8", "backslashreplace").decode()


def visible(text: str) -> str:
    """Text that acts on nothing where it is shown: line ends, a terminal's escapes and the like are U+FFFD."""
    return "".join("\ufffd" if unicodedata.category(letter) in _INVISIBLE else letter for letter in text)


def file_name(label: str) -> str:
    """A label without the characters that file names may not hold, short enough for any file system with a suffix."""
    return re.sub(r"[^\w.-]+", "-", label).encode()[:_MAX_NAME_BYTES].decode(errors="ignore")


def file_names(labels: Sequence[str]) -> list[str]:
    """A name for each label, no two alike, also where file names ignore case."""
    names: list[str] = []
    for label in labels:
        stem = file_name(label)
        numbered = (f"{stem}-{n}" for n in count(2))
        taken = {name.lower() for name in names}
        names.append(next(name for name in chain([stem], numbered) if name.lower() not in taken))
    return names
