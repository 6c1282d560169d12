"""Bytes in and out: lines from a file, a pipe or a person, and files that are complete or not there."""

import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from nmt.errors import UserError

Write = Callable[[str], None]


def arriving(stream: BinaryIO, most: int) -> Iterator[list[bytes]]:
    """Lines as they come, at most so many at a time.

    A writer that waits for its translation gets it; a file of any size is read in bounded memory.
    """
    unfinished: list[bytes] = []
    try:
        while block := stream.read1(1 << 20):  # type: ignore[attr-defined]
            head, *others = block.split(b"\n")
            unfinished.append(head)
            if others:
                lines = [b"".join(unfinished), *others[:-1]]
                unfinished = others[-1:]
                for start in range(0, len(lines), most):
                    yield lines[start : start + most]
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"the input cannot be read to its end: {error}") from None
    if last := b"".join(unfinished):
        yield [last]


def typed(stream: BinaryIO) -> Iterator[list[bytes]]:
    """Lines from a person, one at a time."""
    tell("Type a sentence, then Enter. Ctrl-D ends.")
    while True:
        tell("> ", end="")
        try:
            line = stream.readline()
        except KeyboardInterrupt:
            tell("")
            raise
        if not line:
            tell("")
            return
        yield [line.removesuffix(b"\n")]


@contextmanager
def writing(name: str | None) -> Iterator[Write]:
    """Writes UTF-8 with \\n to standard output, or to a file that gets its name only once it is complete."""
    if name is None:
        yield writer(sys.stdout.buffer, "standard output")
        return
    path = Path(name).expanduser().resolve()
    ordinary = path.is_file() or not path.exists()  # /dev/null, a named pipe: written as they are
    partial = path.with_name(path.name + ".part") if ordinary else path
    try:
        stream = partial.open("wb")
    except OSError as error:
        raise UserError(f"cannot write {name}: {error.strerror}") from None
    try:
        with stream:
            yield writer(stream, name)
    except BaseException:  # Ctrl-C too
        if ordinary and partial.stat().st_size:
            tell(f"{name} is not written; what was done so far is in {partial.name}")
        elif ordinary:
            partial.unlink()
        raise
    if ordinary:
        os.replace(partial, path)


def writer(stream: BinaryIO, name: str) -> Write:
    def write(text: str) -> None:
        try:
            stream.write(text.encode("utf-8"))
            stream.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise UserError(f"cannot write {name}: {error.strerror}") from None

    return write


def tell(message: str, end: str = "\n") -> None:
    """To a person: standard output carries results only."""
    print(message, end=end, file=sys.stderr, flush=True)
