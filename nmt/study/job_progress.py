"""Progress of the running jobs: a live display on a terminal, plain lines now and then in a log."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from nmt.progress import say
from nmt.study.jobs import JobOutcome, JobWatcher, RunningJob, last_log_line

LINE_EVERY = 30.0  # seconds between plain lines of a job


class LogWatcher:
    """For a log file: a line when a job's step begins or ends, and every half minute the last line of its log."""

    def __init__(self, every: float = LINE_EVERY) -> None:
        self.every = every
        self._reported: dict[str, tuple[str, float]] = {}  # by job: its activity and the time of its last line

    def update(self, running: Sequence[RunningJob], waiting: int) -> None:
        now = time.monotonic()
        for active in running:
            what, when = self._reported.get(active.job.name, ("", 0.0))
            if what != active.activity:
                self._say(f"{active.job.name}: {active.activity}")
            elif now - when >= self.every:
                self._say(
                    f"{active.job.name}: {active.activity}, {duration(active.seconds)}: {last_log_line(active.job.log)}"
                )
            else:
                continue
            self._reported[active.job.name] = (active.activity, now)

    def done(self, outcome: JobOutcome) -> None:
        self._say(outcome_line(outcome))

    def stopping(self, running: Sequence[RunningJob]) -> None:
        self._say(stopping_line(running))

    def _say(self, line: str) -> None:
        say(line)


class TerminalWatcher(LogWatcher):
    """For a terminal: one line for each running job, rewritten in place, finished ones above."""

    def __init__(self) -> None:
        super().__init__()
        from rich.console import Console
        from rich.live import Live

        self._live = Live(console=Console(stderr=True), refresh_per_second=4, transient=True)

    def start(self) -> None:
        self._live.start()

    def end(self) -> None:
        self._live.stop()

    def update(self, running: Sequence[RunningJob], waiting: int) -> None:
        from rich.table import Table
        from rich.text import Text

        lines = Table.grid(padding=(0, 2))
        lines.add_column(no_wrap=True)
        lines.add_column(justify="right", no_wrap=True)
        lines.add_column(no_wrap=True, overflow="ellipsis")
        for active in running:
            last = last_log_line(active.job.log) or active.activity
            lines.add_row(Text(active.job.name, style="bold"), duration(active.seconds), Text(last))
        if waiting:
            lines.add_row("", "", Text(f"{waiting} more to come", style="dim"))
        self._live.update(lines)

    def _say(self, line: str) -> None:
        from rich.text import Text

        self._live.console.print(Text(line))


@contextmanager
def job_watcher() -> Iterator[JobWatcher]:
    """The watcher that fits stderr."""
    if not sys.stderr.isatty():
        yield LogWatcher()
        return
    lines = TerminalWatcher()
    lines.start()
    try:
        yield lines
    finally:
        lines.end()


def outcome_line(outcome: JobOutcome) -> str:
    """One line on how a job ended, with the log where it failed."""
    if outcome.error is None:
        return f"{outcome.job.name}: done in {duration(outcome.seconds)}"
    return f"{outcome.job.name}: {outcome.error} (log: {outcome.job.log.as_posix()})"


def stopping_line(running: Sequence[RunningJob]) -> str:
    names = ", ".join(active.job.name for active in running)
    return f"stopping {names}: a moment for the checkpoints (Ctrl-C again gives them none)"


def duration(seconds: float) -> str:
    """Seconds as m:ss, or h:mm:ss."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
