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
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar

from nmt.errors import UserError

Item = TypeVar("Item")
Result = TypeVar("Result")
PACKAGE_ROOT = Path(__file__).resolve().parents[3]
COMMAND = [sys.executable, "-c", "from nmt.data.preparation.worker_pool import run_worker; run_worker()"]


def map_in_order(work: Callable[[Item], Result], items: Iterable[Item], workers: int) -> Iterator[Result]:
    """work(item) for each item, in their order, with `workers` processes; `items` is read a few ahead.

    A single item, or one worker, is computed in this process.
    """
    items = iter(items)
    first = list(islice(items, 2))
    if workers <= 1 or len(first) < 2:
        yield from map(work, chain(first, items))
        return
    path = os.pathsep.join(filter(None, [str(PACKAGE_ROOT), os.environ.get("PYTHONPATH")]))
    processes: list[subprocess.Popen[bytes]] = []
    own = threading.local()  # each thread waits for a process of its own

    def start() -> None:
        own.process = subprocess.Popen(
            COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": path}
        )
        processes.append(own.process)
        with suppress(OSError):  # it has ended: the first call says so
            _send(own.process.stdin, work)

    def call(item: Item) -> Any:
        try:
            _send(own.process.stdin, item)
            failed, result = pickle.load(own.process.stdout)
        except (OSError, EOFError):
            raise UserError(
                "a worker process has ended (killed, or out of memory); the same command resumes; workers=1 needs less"
            ) from None
        if failed:
            raise result
        return result

    threads = ThreadPoolExecutor(workers, initializer=start)
    pending: deque[Future[Result]] = deque()
    try:
        for item in chain(first, items):
            pending.append(threads.submit(call, item))
            if len(pending) >= 2 * workers:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        threads.shutdown(cancel_futures=True)
        for process in processes:
            process.communicate()  # closes the pipes and waits


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
            item = pickle.load(tasks)
            try:
                answer = (False, work(item))
            except Exception as error:  # raised again in the parent
                answer = (True, error)
            _send(results, answer)
