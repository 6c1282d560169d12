"""Runs command lines as subprocesses, a few at a time, and reports how each fares and ends."""

import math
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

from nmt.progress import format_duration, say

POLL_INTERVAL = 0.2  # seconds
LINE_EVERY = 30.0  # seconds between the lines of a job where stderr is no terminal
STOP_TIMEOUT = 60.0  # seconds that a stopped job has to write its checkpoint
TAIL_BYTES = 4096  # read from the end of a log for its last line


class JobStep(NamedTuple):
    """One command of a job, and what it does: "training", "evaluating"."""

    activity: str
    command: tuple[str, ...]


@dataclass(frozen=True)
class Job:
    """Steps that run one after the other, and the file that their output goes to."""

    name: str
    steps: tuple[JobStep, ...]
    log: Path


class RunningJob:
    """A job with the process of its present step."""

    def __init__(self, job: Job, environment: Mapping[str, str]) -> None:
        self.job, self.environment = job, environment
        self.steps = iter(job.steps)
        self.activity = ""
        self.process: subprocess.Popen[bytes] | None = None
        self.started = self.last_line = time.monotonic()

    @property
    def clock(self) -> str:
        return format_duration(time.monotonic() - self.started)

    def advance(self, line_every: float) -> str | None:
        """Starts the next step once the last has ended well. How the job ended, once it has; empty for well."""
        code = self.process.poll() if self.process else 0
        if code is None:
            if time.monotonic() - self.last_line >= line_every:
                say(f"{self.job.name}: {self.activity}, {self.clock}: {last_log_line(self.job.log)}")
                self.last_line = time.monotonic()
            return None
        if code:
            return f"{self.activity} failed: {last_log_line(self.job.log) or f'exit status {code}'}"
        step = next(self.steps, None)
        if step is None:
            return ""
        self.activity, self.last_line = step.activity, time.monotonic()
        if line_every < math.inf:
            say(f"{self.job.name}: {self.activity}")
        self.job.log.parent.mkdir(parents=True, exist_ok=True)
        with self.job.log.open("ab") as log:
            log.write(os.fsencode(f"$ {' '.join(step.command)}\n"))
            log.flush()
            self.process = _spawn(step.command, log, self.environment)
        return None


def run_jobs(
    jobs: Sequence[Job], at_once: int, environment: Mapping[str, str], line_every: float = LINE_EVERY
) -> dict[str, str]:
    """Runs the jobs in order, at_once of them at a time; why those that failed did, by name. The others go on.

    On Ctrl-C (or SIGTERM) every running process is asked to stop as by Ctrl-C, gets a minute to leave its
    checkpoint, and KeyboardInterrupt is raised again; a second Ctrl-C kills them.
    """
    waiting = deque(jobs)
    running: list[RunningJob] = []
    failed: dict[str, str] = {}
    with _terminate_is_interrupt(), _live_display(running, waiting) as is_live:
        try:
            while waiting or running:
                while waiting and len(running) < at_once:
                    running.append(RunningJob(waiting.popleft(), environment))
                for active in list(running):
                    error = active.advance(math.inf if is_live else line_every)
                    if error is None:
                        continue
                    running.remove(active)
                    name, log = active.job.name, active.job.log.as_posix()
                    say(f"{name}: {error} (log: {log})" if error else f"{name}: done in {active.clock}")
                    failed |= {name: error} if error else {}
                if running:
                    time.sleep(POLL_INTERVAL)
        except BaseException:
            names = ", ".join(active.job.name for active in running)
            say(f"stopping {names}: a moment for the checkpoints (Ctrl-C again gives them none)")
            _stop([active.process for active in running if active.process is not None])
            raise
    return failed


def child_environment(threads: int) -> dict[str, str]:
    """This process's environment, with that many threads for numeric libraries and this package on the path."""
    package = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
    numeric = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
    return {**os.environ, **numeric, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8"}


def last_log_line(log: Path) -> str:
    """The last line with content; a progress line rewritten by carriage returns counts as lines."""
    if not log.is_file():
        return ""
    with log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
        text = file.read().decode("utf-8", errors="replace")
    lines = [line.strip() for line in text.replace("\r", "\n").split("\n")]
    return next((line for line in reversed(lines) if line and not line.startswith("$ ")), "")


def _spawn(command: Sequence[str], log: IO[bytes], environment: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    """A process in a session of its own: the terminal's Ctrl-C reaches it through us, once and not twice."""
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        env=dict(environment),
        start_new_session=True,
    )


def _stop(processes: Sequence["subprocess.Popen[bytes]"]) -> None:
    """Interrupts the processes and waits until they have ended; kills those that do not."""
    for process in processes:
        process.send_signal(signal.SIGINT)  # none where it has ended
    end = time.monotonic() + STOP_TIMEOUT
    try:
        with suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
            for process in processes:
                process.wait(max(0.0, end - time.monotonic()))
    finally:
        for process in processes:
            process.kill()
            process.wait()


@contextmanager
def _terminate_is_interrupt() -> Iterator[None]:
    """SIGTERM and a closed terminal stop the jobs as Ctrl-C does: none is left behind."""
    handlers = {number: signal.signal(number, signal.default_int_handler) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


@contextmanager
def _live_display(running: Sequence[RunningJob], waiting: Collection[Job]) -> Iterator[bool]:
    """On a terminal a line for each running job, rewritten in place; elsewhere nothing, and False."""
    if not sys.stderr.isatty():
        yield False
        return
    from rich.console import Console
    from rich.live import Live
    from rich.table import Table
    from rich.text import Text

    def lines() -> Table:
        table = Table.grid(padding=(0, 2))
        table.add_column(no_wrap=True)
        table.add_column(justify="right", no_wrap=True)
        table.add_column(no_wrap=True, overflow="ellipsis")
        for active in list(running):
            last = last_log_line(active.job.log) or active.activity
            table.add_row(Text(active.job.name, style="bold"), active.clock, Text(last))
        if waiting:
            table.add_row("", "", Text(f"{len(waiting)} more to come", style="dim"))
        return table

    with Live(get_renderable=lines, console=Console(stderr=True), refresh_per_second=4, transient=True):
        yield True
