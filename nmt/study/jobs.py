"""Runs command lines as subprocesses, a few at a time, and reports how each ends."""

import os
import signal
import subprocess
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NamedTuple, Protocol

POLL_INTERVAL = 0.2  # seconds
STOP_TIMEOUT = 60.0  # seconds that a stopped job has to write its checkpoint
TAIL_BYTES = 4096  # bytes read from the end of a log for its last line


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


class JobOutcome(NamedTuple):
    """How a job ended: error is None, or the last line of the step that failed."""

    job: Job
    error: str | None
    seconds: float


class JobWatcher(Protocol):
    """Callbacks of `run_jobs`; job_progress.py has one for a terminal and one for a log file."""

    def update(self, running: Sequence["RunningJob"], waiting: int) -> None: ...

    def done(self, outcome: JobOutcome) -> None: ...

    def stopping(self, running: Sequence["RunningJob"]) -> None: ...


@dataclass
class RunningJob:
    """A job with the process of its present step."""

    job: Job
    environment: Mapping[str, str]
    started: float = field(default_factory=time.monotonic)
    step: int = 0
    process: "subprocess.Popen[bytes] | None" = None

    def advance(self) -> JobOutcome | None:
        """Starts the next step once the last has ended well; the outcome once all have, or one has failed."""
        if self.process is not None:
            code = self.process.poll()
            if code is None:
                return None
            if code != 0:
                what = self.job.steps[self.step].activity
                last = last_log_line(self.job.log) or f"exit status {code}"
                return JobOutcome(self.job, f"{what} failed: {last}", self.seconds)
            self.step += 1
        if self.step == len(self.job.steps):
            return JobOutcome(self.job, None, self.seconds)
        self._start(self.job.steps[self.step])
        return None

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    @property
    def activity(self) -> str:
        return self.job.steps[min(self.step, len(self.job.steps) - 1)].activity

    def _start(self, step: JobStep) -> None:
        self.job.log.parent.mkdir(parents=True, exist_ok=True)
        with self.job.log.open("ab") as log:
            log.write(f"$ {' '.join(step.command)}\n".encode())
            log.flush()
            self.process = _spawn(step.command, log, self.environment)


def run_jobs(
    jobs: Sequence[Job], at_once: int, environment: Mapping[str, str], watcher: JobWatcher
) -> list[JobOutcome]:
    """Runs the jobs in order, at_once of them at a time; a job that fails does not stop the others.

    On Ctrl-C (or SIGTERM) every running process is asked to stop as by Ctrl-C, gets a minute to leave its
    checkpoint, and KeyboardInterrupt is raised again; a second Ctrl-C kills them.
    """
    waiting = deque(jobs)
    running: list[RunningJob] = []
    outcomes: list[JobOutcome] = []
    with _terminate_is_interrupt():
        try:
            while waiting or running:
                while waiting and len(running) < at_once:
                    running.append(RunningJob(waiting.popleft(), environment))
                for job in list(running):
                    outcome = job.advance()
                    if outcome is not None:
                        running.remove(job)
                        outcomes.append(outcome)
                        watcher.done(outcome)
                watcher.update(running, len(waiting))
                if running:
                    time.sleep(POLL_INTERVAL)
        except BaseException:
            watcher.stopping(running)
            stop_processes([job.process for job in running if job.process is not None])
            raise
    return outcomes


def child_environment(threads: int) -> dict[str, str]:
    """This process's environment, with that many threads for numeric libraries and this package on the path."""
    package = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
    numeric = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
    return {**os.environ, **numeric, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8"}


def stop_processes(processes: Sequence["subprocess.Popen[bytes]"], timeout: float = STOP_TIMEOUT) -> None:
    """Interrupts the processes and waits until they have ended; kills those that do not."""
    for process in processes:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
    end = time.monotonic() + timeout
    try:
        for process in processes:
            process.wait(max(0.0, end - time.monotonic()))
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        pass
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()


def last_log_line(log: Path) -> str:
    """The last line with content; a progress line rewritten by carriage returns counts as lines."""
    if not log.is_file():
        return ""
    with log.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - TAIL_BYTES))
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


@contextmanager
def _terminate_is_interrupt() -> Iterator[None]:
    """SIGTERM and a closed terminal stop the jobs as Ctrl-C does: none is left behind."""
    handlers = {number: signal.signal(number, signal.default_int_handler) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
