"""Lines in and out: from a file, a pipe or a terminal, and output files that are complete or absent."""

import os
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from nmt.errors import UserError

Write = Callable[[str], None]


def read_blocks(stream: BinaryIO, max_lines: int) -> Iterator[list[bytes]]:
    """Lines as they arrive, at most `most` at a time.

    A process that waits for each translation gets it; a file of any size is read in bounded memory.
    """
    unfinished: list[bytes] = []
    try:
        while block := stream.read1(1 << 20):  # type: ignore[attr-defined]
            head, *others = block.split(b"\n")
            unfinished.append(head)
            if others:
                lines = [b"".join(unfinished), *others[:-1]]
                unfinished = others[-1:]
                for start in range(0, len(lines), max_lines):
                    yield lines[start : start + max_lines]
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"the input cannot be read to its end: {error}") from None
    if last := b"".join(unfinished):
        yield [last]


def read_typed_lines(stream: BinaryIO) -> Iterator[list[bytes]]:
    """Lines typed at a terminal, one at a time."""
    prompt("Type a sentence, then Enter. Ctrl-D ends.")
    while True:
        prompt("> ", end="")
        try:
            line = stream.readline()
        except KeyboardInterrupt:
            prompt("")
            raise
        if not line:
            prompt("")
            return
        yield [line.removesuffix(b"\n")]


@contextmanager
def open_output(name: str | None, keep: Sequence[str | None] = ()) -> Iterator[Write]:
    """Writes UTF-8 with \\n to standard output, or to a file that gets its name only once it is complete.

    UserError where it would replace one of the files to `keep`, or what another run has left unfinished.
    """
    if name is None:
        yield line_writer(sys.stdout.buffer, "standard output")
        return
    path = Path(name).expanduser().resolve()
    is_regular = path.is_file() or not path.exists()  # /dev/null, a named pipe: written as they are
    partial = path.with_name(path.name + ".part") if is_regular else path
    try:
        stream = partial.open("wb")
    except OSError as error:
        raise UserError(f"cannot write {name}: {error.strerror}") from None
    try:
        with stream:
            yield line_writer(stream, name)
    except BaseException:  # Ctrl-C too
        if is_regular and partial.stat().st_size:
            prompt(f"{name} is not written; what was done so far is in {partial.name}")
        elif is_regular:
            partial.unlink()
        raise
    if is_regular:
        os.replace(partial, path)


def line_writer(stream: BinaryIO, name: str) -> Write:
    def write(text: str) -> None:
        try:
            stream.write(text.encode("utf-8"))
            stream.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise UserError(f"cannot write {name}: {error.strerror}") from None

    return write


def prompt(message: str, end: str = "\n") -> None:
    """To standard error: standard output carries results only."""
    print(message, end=end, file=sys.stderr, flush=True)
