"""Things made ahead of their use, in a thread of their own."""

import sys
import threading
from collections.abc import Generator
from queue import SimpleQueue
from typing import TypeVar

T = TypeVar("T")
PATIENCE = 5.0  # seconds to wait for the thread to end what it is making


def prefetch(source: Generator[T, None, None], ahead: int = 2) -> Generator[T, None, None]:
    """What `source` yields, made in a thread while the caller is busy; at most `ahead` of them wait.

    An exception in `source` is raised here, in its turn. When this generator is closed, dropped or left by an
    exception, the thread ends and `source` is closed. Only the thread runs `source`, from the first `next` on.
    """
    ready: SimpleQueue[tuple[T, None] | tuple[None, BaseException]] = SimpleQueue()
    room = threading.Semaphore(ahead)
    closed = threading.Event()

    def work() -> None:
        try:
            while room.acquire() and not closed.is_set():
                ready.put((next(source), None))
        except BaseException as error:  # StopIteration at the end
            ready.put((None, error))
        finally:
            source.close()

    thread = threading.Thread(target=work, name="prefetch", daemon=True)
    thread.start()
    try:
        while True:
            made, error = ready.get()
            if isinstance(error, StopIteration):
                return
            if error is not None:
                raise error
            room.release()
            yield made  # type: ignore[misc]
    finally:
        closed.set()
        room.release()
        # at the interpreter's exit threads stand still, and the garbage collector may run in the thread itself
        if not sys.is_finalizing() and thread is not threading.current_thread():
            thread.join(PATIENCE)
