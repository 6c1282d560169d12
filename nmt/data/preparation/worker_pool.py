"""A pool of worker processes: results in the order of the items.

A worker is a plain subprocess that reads pickles from its standard input. It imports nothing that its work does not
need, and it ends when its input does: workers of `multiprocessing` (so of `datasets.map` too) stay when their parent is
killed, three of three in a trial, and under `spawn` each imports the main program, torch with it.
"""

import os
import pickle
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import chain, islice
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

from nmt.errors import UserError

Item = TypeVar("Item")
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
    first = list(islice(items, 2))
    if workers <= 1 or len(first) < 2:
        for item in chain(first, items):
            yield item, work(*arguments(item))
        return
    pending: deque[tuple[Item, Future[Any]]] = deque()
    with _processes(work, workers) as idle, ThreadPoolExecutor(workers) as threads:
        try:
            for item in chain(first, items):
                pending.append((item, threads.submit(_call, idle, arguments(item))))
                if len(pending) >= 2 * workers:
                    done, future = pending.popleft()
                    yield done, future.result()
            for done, future in pending:
                yield done, future.result()
        finally:
            threads.shutdown(cancel_futures=True)


@contextmanager
def _processes(work: Callable[..., Any], count: int) -> Iterator["SimpleQueue[subprocess.Popen[bytes]]"]:
    """A queue of the processes that wait for arguments."""
    path = os.pathsep.join(filter(None, [str(PACKAGE_ROOT), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-c", "from nmt.data.preparation.worker_pool import run_worker; run_worker()"]
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "env": os.environ | {"PYTHONPATH": path}}
    idle: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()
    processes = [subprocess.Popen(command, **options) for _ in range(count)]  # type: ignore[call-overload]
    try:
        for process in processes:
            with suppress(OSError):  # it has ended: the first call says so
                _send(process.stdin, work)
            idle.put(process)
        yield idle
    finally:
        for process in processes:
            with suppress(OSError):
                process.stdin.close()
        for process in processes:
            process.stdout.close()
            process.wait()


def _call(idle: "SimpleQueue[subprocess.Popen[bytes]]", arguments: tuple[Any, ...]) -> Any:
    process = idle.get()
    try:
        _send(process.stdin, arguments)
        failed, result = pickle.load(process.stdout)  # type: ignore[arg-type]
    except (OSError, EOFError):
        raise UserError(
            "a worker process has ended (killed, or out of memory); the same command resumes; workers=1 needs less"
        ) from None
    finally:
        idle.put(process)
    if failed:
        raise result
    return result


def _send(stream: Any, message: Any) -> None:
    stream.write(pickle.dumps(message))  # whole: what cannot be pickled must not leave half a message
    stream.flush()


def run_worker() -> None:
    """The worker: first the function, then its arguments repeatedly, until the parent closes the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group: the parent decides
    tasks, results = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # whatever prints must not get between the results
    with suppress(EOFError, BrokenPipeError):
        work = pickle.load(tasks)
        while True:
            arguments = pickle.load(tasks)
            try:
                answer = (False, work(*arguments))
            except Exception as error:  # raised again in the parent
                answer = (True, error)
            _send(results, answer)
