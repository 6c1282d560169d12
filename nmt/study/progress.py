"""How the running jobs are going: lines that live on a terminal, plain lines now and then elsewhere."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from nmt.study.jobs import Outcome, Running, Watcher, last_line

EVERY = 30.0  # seconds between plain lines of a job


class PlainLines:
    """For a log file: a line when a job's step begins or ends, and every half minute what it said last."""

    def __init__(self, every: float = EVERY) -> None:
        self.every = every
        self._said: dict[str, tuple[str, float]] = {}  # job -> its step, when it was last spoken of

    def look(self, running: Sequence[Running], waiting: int) -> None:
        now = time.monotonic()
        for one in running:
            what, when = self._said.get(one.job.name, ("", 0.0))
            if what != one.what:
                self._say(f"{one.job.name}: {one.what}")
            elif now - when >= self.every:
                self._say(f"{one.job.name}: {one.what}, {clock(one.seconds)}: {last_line(one.job.log)}")
            else:
                continue
            self._said[one.job.name] = (one.what, now)

    def done(self, outcome: Outcome) -> None:
        self._say(ending(outcome))

    def stopping(self, running: Sequence[Running]) -> None:
        self._say(goodbye(running))

    def _say(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)


class LiveLines(PlainLines):
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

    def look(self, running: Sequence[Running], waiting: int) -> None:
        from rich.table import Table
        from rich.text import Text

        lines = Table.grid(padding=(0, 2))
        lines.add_column(no_wrap=True)
        lines.add_column(justify="right", no_wrap=True)
        lines.add_column(no_wrap=True, overflow="ellipsis")
        for one in running:
            said = last_line(one.job.log) or one.what
            lines.add_row(Text(one.job.name, style="bold"), clock(one.seconds), Text(said))
        if waiting:
            lines.add_row("", "", Text(f"{waiting} more to come", style="dim"))
        self._live.update(lines)

    def _say(self, line: str) -> None:
        from rich.text import Text

        self._live.console.print(Text(line))


@contextmanager
def watching() -> Iterator[Watcher]:
    """The watcher that fits stderr."""
    if not sys.stderr.isatty():
        yield PlainLines()
        return
    lines = LiveLines()
    lines.start()
    try:
        yield lines
    finally:
        lines.end()


def ending(outcome: Outcome) -> str:
    """One line on how a job ended, with the log where it failed."""
    if outcome.error is None:
        return f"{outcome.job.name}: done in {clock(outcome.seconds)}"
    return f"{outcome.job.name}: {outcome.error} (log: {outcome.job.log.as_posix()})"


def goodbye(running: Sequence[Running]) -> str:
    names = ", ".join(one.job.name for one in running)
    return f"stopping {names}: a moment for the checkpoints (Ctrl-C again gives them none)"


def clock(seconds: float) -> str:
    """Seconds as m:ss, or h:mm:ss."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
