"""Chunks of work done by other processes, results in order.

A worker is a plain subprocess that reads pickles from standard input: it imports nothing that its work does not need,
and it ends when its input does, so none outlives a killed parent.
"""

import os
import pickle
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from nmt.errors import UserError

Chunk = TypeVar("Chunk", bound=tuple[Any, ...])
PACKAGE_ROOT = Path(__file__).resolve().parents[3]


def available_cpus() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def in_order(
    work: Callable[..., Any], chunks: Iterable[Chunk], arguments: Callable[[Chunk], tuple[Any, ...]], workers: int
) -> Iterator[tuple[Chunk, Any]]:
    """(chunk, work(*arguments(chunk))) for each chunk, in their order, with `workers` processes at it.

    `chunks` is read a few ahead. One chunk alone, or one worker, is done right here.
    """
    chunks = iter(chunks)
    first = [chunk for chunk in (next(chunks, None), next(chunks, None)) if chunk is not None]
    if workers <= 1 or len(first) < 2:
        for chunk in chain(first, chunks):
            yield chunk, work(*arguments(chunk))
        return
    crew = _Crew(work)
    with ThreadPoolExecutor(workers) as threads:
        waiting: deque[tuple[Chunk, Future[Any]]] = deque()
        try:
            for chunk in chain(first, chunks):
                waiting.append((chunk, threads.submit(crew.do, arguments(chunk))))
                if len(waiting) >= 2 * workers:
                    done, future = waiting.popleft()
                    yield done, future.result()
            while waiting:
                done, future = waiting.popleft()
                yield done, future.result()
        finally:
            for _, future in waiting:
                future.cancel()
            crew.dismiss()


class _Crew:
    """One worker process for each thread that asks."""

    def __init__(self, work: Callable[..., Any]) -> None:
        self._work = pickle.dumps(work)
        self._own = threading.local()
        self._all: list[subprocess.Popen[bytes]] = []

    def do(self, arguments: tuple[Any, ...]) -> Any:
        worker = getattr(self._own, "worker", None) or self._hire()
        try:
            _send(worker.stdin, pickle.dumps(arguments))  # type: ignore[arg-type]
            failed, result = pickle.loads(_receive(worker.stdout))  # type: ignore[arg-type]
        except (OSError, EOFError):
            raise UserError(
                "a worker process has ended (killed, or out of memory); the same command goes on; workers=1 needs less"
            ) from None
        if failed:
            raise result
        return result

    def _hire(self) -> subprocess.Popen[bytes]:
        path = os.pathsep.join(filter(None, [str(PACKAGE_ROOT), os.environ.get("PYTHONPATH")]))
        worker = subprocess.Popen(
            [sys.executable, "-c", "from nmt.data.preparation.workers import serve; serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": path},
        )
        self._all.append(worker)
        self._own.worker = worker
        _send(worker.stdin, self._work)  # type: ignore[arg-type]
        return worker

    def dismiss(self) -> None:
        for worker in self._all:
            with suppress(OSError):
                worker.stdin.close()  # type: ignore[union-attr]
        for worker in self._all:
            worker.stdout.close()  # type: ignore[union-attr]
            worker.wait()


def serve() -> None:
    """The worker: first the work, then its arguments again and again, until the parent closes the pipe."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group: the parent decides
    tasks, results = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # whatever prints must not get between the results
    with suppress(EOFError, BrokenPipeError):
        work = pickle.loads(_receive(tasks))
        while True:
            arguments = pickle.loads(_receive(tasks))
            try:
                answer = (False, work(*arguments))
            except Exception as error:  # handed to the parent, which knows what to do
                answer = (True, error)
            _send(results, pickle.dumps(answer))


def _send(stream: BinaryIO, message: bytes) -> None:
    stream.write(len(message).to_bytes(8, "little"))
    stream.write(message)
    stream.flush()


def _receive(stream: BinaryIO) -> bytes:
    size = stream.read(8)
    if len(size) < 8:
        raise EOFError
    return stream.read(int.from_bytes(size, "little"))
