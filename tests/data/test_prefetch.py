"""Made ahead, in order, and no thread left behind, however the work ends."""

import gc
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator
from contextlib import closing

import pytest

from nmt.data.prefetch import prefetch
from tests.conftest import program_environment

LONG = 20.0  # seconds; nothing waits that long unless it is broken


class Numbers:
    """0, 1, ... below `end`, with a record of what was made and of the end."""

    def __init__(self, end: int = 10**9) -> None:
        self.end = end
        self.made = 0
        self.third = threading.Event()
        self.closed = threading.Event()
        self.thread: threading.Thread | None = None

    def __iter__(self) -> Generator[int, None, None]:
        self.thread = threading.current_thread()
        try:
            for number in range(self.end):
                self.made += 1
                if self.made == 3:
                    self.third.set()
                yield number
        finally:
            self.closed.set()


@pytest.mark.parametrize("ahead", [1, 2, 7])
def test_nothing_is_lost_or_out_of_order(ahead: int) -> None:
    assert list(prefetch(iter(Numbers(101)), ahead)) == list(range(101))


def test_the_next_two_are_made_while_the_first_is_in_use_and_no_more() -> None:
    numbers = Numbers()
    with closing(prefetch(iter(numbers), ahead=2)) as stream:
        assert next(stream) == 0
        assert numbers.third.wait(LONG)
        assert numbers.thread is not threading.current_thread()
        for taken in range(2, 50):
            next(stream)
            assert numbers.made <= taken + 2


def test_an_exception_comes_in_its_turn() -> None:
    def failing() -> Iterator[int]:
        yield 1
        yield 2
        raise ValueError("no third")

    stream = prefetch(failing())
    assert [next(stream), next(stream)] == [1, 2]
    with pytest.raises(ValueError, match="no third"):
        next(stream)


def test_closing_ends_the_thread_and_what_it_runs() -> None:
    numbers = Numbers()
    with closing(prefetch(iter(numbers))) as stream:
        next(stream)
    assert numbers.closed.is_set()
    assert numbers.thread is not None
    assert not numbers.thread.is_alive()


def test_one_inside_another_is_closed_with_it() -> None:
    inner = Numbers()

    def outer() -> Generator[int, None, None]:
        with closing(prefetch(iter(inner))) as stream:
            yield from stream

    with closing(prefetch(outer())) as stream:
        assert [next(stream) for _ in range(5)] == [0, 1, 2, 3, 4]
    assert inner.closed.is_set()


def test_dropping_it_ends_the_thread() -> None:
    numbers = Numbers()
    stream = prefetch(iter(numbers))
    next(stream)
    del stream
    gc.collect()
    assert numbers.closed.wait(LONG)


PROGRAM = """
import os, signal, threading, time
from nmt.data.prefetch import prefetch

def numbers():
    yield 0
    while True:
        time.sleep(0.05)
        yield 1

stream = prefetch(numbers())
next(stream)
{ending}
"""


@pytest.mark.parametrize(
    ("ending", "code", "said"),
    [
        ("pass", 0, ""),
        ("raise ValueError('broken')", 1, "broken"),
        (
            "threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()\nfor _ in stream: pass",
            -signal.SIGINT,
            "KeyboardInterrupt",
        ),
    ],
)
def test_a_program_with_an_open_stream_ends(ending: str, code: int, said: str) -> None:
    command = [sys.executable, "-c", PROGRAM.format(ending=ending)]
    done = subprocess.run(command, capture_output=True, text=True, env=program_environment(), timeout=LONG)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
