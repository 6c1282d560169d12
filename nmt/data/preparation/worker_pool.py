"""A pool of worker processes: results in the order of the items.

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

Item = TypeVar("Item", bound=tuple[Any, ...])
PACKAGE_ROOT = Path(__file__).resolve().parents[3]


def available_cpus() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def map_in_order(
    work: Callable[..., Any], items: Iterable[Item], arguments: Callable[[Item], tuple[Any, ...]], workers: int
) -> Iterator[tuple[Item, Any]]:
    """(item, work(*arguments(item))) for each item, in their order, with `workers` processes.

    `items` is read a few ahead. A single item, or one worker, is computed in this process.
    """
    items = iter(items)
    first = [item for item in (next(items, None), next(items, None)) if item is not None]
    if workers <= 1 or len(first) < 2:
        for item in chain(first, items):
            yield item, work(*arguments(item))
        return
    pool = _WorkerPool(work)
    with ThreadPoolExecutor(workers) as threads:
        pending: deque[tuple[Item, Future[Any]]] = deque()
        try:
            for item in chain(first, items):
                pending.append((item, threads.submit(pool.call, arguments(item))))
                if len(pending) >= 2 * workers:
                    done, future = pending.popleft()
                    yield done, future.result()
            while pending:
                done, future = pending.popleft()
                yield done, future.result()
        finally:
            for _, future in pending:
                future.cancel()
            pool.close()


class _WorkerPool:
    """One worker process for each thread that calls."""

    def __init__(self, work: Callable[..., Any]) -> None:
        self._work = pickle.dumps(work)
        self._local = threading.local()
        self._all: list[subprocess.Popen[bytes]] = []

    def call(self, arguments: tuple[Any, ...]) -> Any:
        worker = getattr(self._local, "worker", None) or self._start_worker()
        try:
            _send(worker.stdin, pickle.dumps(arguments))  # type: ignore[arg-type]
            failed, result = pickle.loads(_receive(worker.stdout))  # type: ignore[arg-type]
        except (OSError, EOFError):
            raise UserError(
                "a worker process has ended (killed, or out of memory); the same command resumes; workers=1 needs less"
            ) from None
        if failed:
            raise result
        return result

    def _start_worker(self) -> subprocess.Popen[bytes]:
        path = os.pathsep.join(filter(None, [str(PACKAGE_ROOT), os.environ.get("PYTHONPATH")]))
        worker = subprocess.Popen(
            [sys.executable, "-c", "from nmt.data.preparation.worker_pool import run_worker; run_worker()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": path},
        )
        self._all.append(worker)
        self._local.worker = worker
        _send(worker.stdin, self._work)  # type: ignore[arg-type]
        return worker

    def close(self) -> None:
        for worker in self._all:
            with suppress(OSError):
                worker.stdin.close()  # type: ignore[union-attr]
        for worker in self._all:
            worker.stdout.close()  # type: ignore[union-attr]
            worker.wait()


def run_worker() -> None:
    """The worker: first the function, then its arguments repeatedly, until the parent closes the pipe."""
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
            except Exception as error:  # raised again in the parent
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
