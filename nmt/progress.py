"""How far it is: a bar on a terminal, a line now and then elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Advance = Callable[[int], None]


def say(message: str) -> None:
    """One line to a person; results go to stdout, everything else here."""
    print(message, file=sys.stderr, flush=True)


@contextmanager
def progress(what: str, total: int | None, shown: bool = True, line_every: float | None = None) -> Iterator[Advance]:
    """A bar with rate and time left on stderr, for `total` things or an unknown number of them.

    Call what comes out with how many more are done. With `line_every`, where stderr is no terminal, a line after so
    many seconds, and anywhere one at the end; without it, nothing but the bar.
    """
    if not shown:
        yield lambda done: None
        return
    lines = _Lines(what, total, line_every)
    if sys.stderr.isatty():
        with _bar(what, total, lines) as advance:
            yield advance
    else:
        yield lines.show
    if line_every is not None:
        lines.end()


class _Lines:
    """For a log file."""

    def __init__(self, what: str, total: int | None, every: float | None) -> None:
        self._what, self._total, self._every = what, total, every
        self._done = 0
        self._started = self._said = time.monotonic()

    def add(self, done: int) -> None:
        self._done += done

    def show(self, done: int) -> None:
        self.add(done)
        now = time.monotonic()
        if self._every is None or now - self._said < self._every:
            return
        self._said = now
        rate = self._done / (now - self._started)
        line = f"{self._what}: {self._done:,} done, {rate:,.0f}/s"
        if self._total is not None and rate:
            seconds = round(max(0, self._total - self._done) / rate)
            line += f", about {seconds // 3600}:{seconds % 3600 // 60:02}:{seconds % 60:02} left"
        say(line)

    def end(self) -> None:
        seconds = max(time.monotonic() - self._started, 1e-9)
        say(f"{self._what}: {self._done:,} in {seconds:.2f} s, {self._done / seconds:,.0f}/s")


@contextmanager
def _bar(what: str, total: int | None, lines: _Lines) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text(f"{speed:,.0f}/s" if speed else "")

    count = "{task.completed:,}" if total is None else "{task.completed:,}/{task.total:,}"
    columns = (TextColumn(what), BarColumn(), TextColumn(count), Rate(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(what, total=total)

        def advance(done: int) -> None:
            lines.add(done)
            bars.advance(task, done)

        yield advance
