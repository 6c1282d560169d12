"""Progress of long work: a bar on a terminal, a line now and then elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

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
    done = 0
    started = last_line = time.monotonic()
    with _bar(description, total) if shown and sys.stderr.isatty() else nullcontext() as bar:

        def advance(items: int) -> None:
            nonlocal done, last_line
            done += items
            now = time.monotonic()
            if bar:
                bar(items)
            elif shown and line_every is not None and now - last_line >= line_every:
                last_line, rate = now, done / (now - started)
                left = f", about {format_duration((total - done) / rate)} left" if total is not None and rate else ""
                say(f"{description}: {done:,} done, {rate:,.0f}/s{left}")

        yield advance
    if shown and line_every is not None:
        seconds = max(time.monotonic() - started, 1e-9)
        say(f"{description}: {done:,} in {seconds:.2f} s, {done / seconds:,.0f}/s")


@contextmanager
def _bar(description: str, total: int | None) -> Iterator[Advance]:
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
        yield lambda items: bars.advance(task, items)
