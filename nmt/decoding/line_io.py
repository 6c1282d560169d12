"""Lines in and out: from a file, a pipe or a terminal, and output files that are complete or absent."""

import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO

from nmt.errors import UserError
from nmt.progress import say

Write = Callable[[str], None]


def read_blocks(stream: BinaryIO, max_lines: int) -> Iterator[list[bytes]]:
    """Lines as they arrive, at most `max_lines` at a time.

    A process that waits for each translation gets it; a file of any size is read in bounded memory.
    """
    unfinished: list[bytes] = []
    try:
        while block := stream.read1(1 << 20):  # type: ignore[attr-defined]
            unfinished.append(block)
            if b"\n" in block:
                *lines, rest = b"".join(unfinished).split(b"\n")
                unfinished = [rest]
                for start in range(0, len(lines), max_lines):
                    yield lines[start : start + max_lines]
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"the input cannot be read to its end: {error}") from None
    if last := b"".join(unfinished):
        yield [last]


def read_typed_lines(stream: BinaryIO) -> Iterator[list[bytes]]:
    """Lines typed at a terminal, one at a time."""
    prompt = partial(print, end="", file=sys.stderr, flush=True)  # standard output carries results only
    prompt("Type a sentence, then Enter. Ctrl-D ends.\n> ")
    try:
        while line := stream.readline():
            yield [line.removesuffix(b"\n")]
            prompt("> ")
    finally:
        prompt("\n")


@contextmanager
def open_output(name: str | None) -> Iterator[Write]:
    """Writes UTF-8 with \\n to standard output, or to a file that gets its name only once it is complete.

    Until then it is NAME.part. UserError where there is one already: another run writes it, or has left it unfinished.
    """
    if name is None:
        yield partial(write_utf8, sys.stdout.buffer, "standard output")
        return
    path = Path(name).expanduser().resolve()
    is_regular = path.is_file() or not path.exists()  # /dev/null, a named pipe: written as they are
    target = path.with_name(path.name + ".part") if is_regular else path
    try:
        stream = target.open("xb" if is_regular else "wb", buffering=0)  # so that closing writes nothing that may fail
    except FileExistsError:
        raise UserError(
            f"{target} is there: another run writes it, or left it unfinished; rename or delete it"
        ) from None
    except OSError as error:
        raise UserError(f"cannot write {name}: {error.strerror}") from None
    try:
        with stream:
            yield partial(write_utf8, stream, name)
    except BaseException:  # Ctrl-C too
        if is_regular and target.stat().st_size:
            say(f"{name} is not written; what was done so far is in {target.name}")
        elif is_regular:
            target.unlink()
        raise
    if is_regular:
        os.replace(target, path)


def write_utf8(stream: BinaryIO, name: str, text: str) -> None:
    try:
        left = memoryview(text.encode("utf-8"))
        while left:
            left = left[stream.write(left) :]
        stream.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UserError(f"cannot write {name}: {error.strerror}") from None
