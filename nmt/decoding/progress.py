"""How far it is, on the terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Advance = Callable[[int], None]


@contextmanager
def progress(what: str, total: int | None, shown: bool = True) -> Iterator[Advance]:
    """A bar with rate and time left on stderr, for `total` things or an unknown number of them.

    Call what comes out with how many more are done. Nothing is shown where stderr is no terminal.
    """
    if not (shown and sys.stderr.isatty()):
        yield lambda done: None
        return
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
        yield lambda done: bars.advance(task, done)
