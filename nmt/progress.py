"""Progress of long work: a bar on a terminal, a line now and then elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from nmt.files import printable

Advance = Callable[[int], None]


def say(message: str) -> None:
    """One line to a person, whatever names it holds; results go to stdout, everything else here."""
    print(printable(message), file=sys.stderr, flush=True)


def format_duration(seconds: float) -> str:
    """5.4 -> 0:05, 3661.2 -> 1:01:01"""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@contextmanager
def progress(
    description: str, total: int | None, shown: bool = True, line_every: float | None = None
) -> Iterator[Advance]:
    """A bar with rate and time left on stderr, for `total` items or an unknown number of them.

    Call what it yields with the number of items done since the last call. `line_every`: seconds between lines where
    stderr is no terminal, and one more line at the end anywhere; without it, nothing but the bar.
    """
    if not shown:
        yield lambda done: None
        return
    lines = _Lines(description, total, line_every)
    if sys.stderr.isatty():
        with _bar(description, total, lines) as advance:
            yield advance
    else:
        yield lines.update
    if line_every is not None:
        lines.end()


class _Lines:
    """Lines for a log file."""

    def __init__(self, description: str, total: int | None, line_every: float | None) -> None:
        self._description, self._total, self._line_every = description, total, line_every
        self._done = 0
        self._started = self._last_line = time.monotonic()

    def add(self, done: int) -> None:
        self._done += done

    def update(self, done: int) -> None:
        self.add(done)
        now = time.monotonic()
        if self._line_every is None or now - self._last_line < self._line_every:
            return
        self._last_line = now
        rate = self._done / (now - self._started)
        line = f"{self._description}: {self._done:,} done, {rate:,.0f}/s"
        if self._total is not None and rate:
            line += f", about {format_duration((self._total - self._done) / rate)} left"
        say(line)

    def end(self) -> None:
        seconds = max(time.monotonic() - self._started, 1e-9)
        say(f"{self._description}: {self._done:,} in {seconds:.2f} s, {self._done / seconds:,.0f}/s")


@contextmanager
def _bar(description: str, total: int | None, lines: _Lines) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text(f"{speed:,.0f}/s" if speed else "")

    count = "{task.completed:,}" if total is None else "{task.completed:,}/{task.total:,}"
    columns = (TextColumn(description), BarColumn(), TextColumn(count), Rate(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(description, total=total)

        def advance(done: int) -> None:
            lines.add(done)
            bars.advance(task, done)

        yield advance
