"""What a suite is given, and what it gives."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from nmt.data.batching import Batches, BatchingSettings
from nmt.data.prepared import Prepared
from nmt.training.loop import Job, TrainingSettings


@dataclass(frozen=True)
class Bench:
    """The things to measure, made from the configuration when a suite asks for them."""

    prepare: Callable[[], Prepared]
    job: Callable[[Prepared, Batches], Job]  # with a new model and its optimizer
    batching: BatchingSettings
    training: TrainingSettings
    device: str
    precision: str
    say: Callable[[str], None]  # one line of progress


class Report(NamedTuple):
    """What was measured: for people and for programs."""

    table: str
    notes: list[str]
    results: dict[str, Any]
    draw: Callable[[Path], None] | None = None  # a picture, for those that have one

    def page(self) -> str:
        """Markdown: the table, and a list of what it means."""
        return self.table + "\n\n" + "".join(f"- {note}\n" for note in self.notes)


class Suite(Protocol):
    """One class a suite; its settings are its fields."""

    def run(self, bench: Bench) -> Report: ...


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns of cells, numbers to the right; Markdown, which a terminal shows as well."""
    widths = [max(3, *map(len, column)) for column in zip(header, *rows, strict=True)]
    rule = ["-" * (width - 1) + ":" for width in widths]
    lines = (
        " | ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in (header, rule, *rows)
    )
    return "\n".join(f"| {line} |" for line in lines)
