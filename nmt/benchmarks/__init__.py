"""The suites of `python -m nmt.benchmark`, one a module, and the types they share.

A suite is a dataclass of its settings; `run(setup)` measures and returns a `BenchmarkReport`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tabulate import tabulate

from nmt.data.batching import Batches
from nmt.data.preparation.prepared_corpus import PreparedCorpus
from nmt.evaluation.stored import to_json
from nmt.files import write_text
from nmt.progress import say
from nmt.provenance import provenance
from nmt.training.loop import TrainState
from nmt.training_settings import BatchingSettings, TrainingSettings


@dataclass(frozen=True)
class BenchmarkSetup:
    """What a suite measures, built from the configuration when the suite asks for it."""

    prepare: Callable[[], PreparedCorpus]
    make_state: Callable[[PreparedCorpus, Batches], TrainState]  # with a new model and its optimizer
    batching: BatchingSettings
    training: TrainingSettings
    device: str
    precision: str


class BenchmarkReport(NamedTuple):
    """Results, for people and for programs."""

    table: str
    notes: list[str]
    results: dict[str, Any]
    draw: Callable[[Path], None] | None = None  # a figure, for suites that have one

    def markdown(self) -> str:
        """Markdown: the table, and a list of what it means."""
        return self.table + "\n\n" + "".join(f"- {note}\n" for note in self.notes)

    def write(self, output: Path, facts: dict[str, Any]) -> None:
        """`output` as JSON, `facts` first; Markdown and a figure beside it."""
        origin = provenance()
        write_text(output, to_json({**facts, **self.results, "provenance": origin}) + "\n")
        made = f"- Made {origin['date']} at commit {str(origin['commit'])[:18]} on {origin['machine']}.\n"
        write_text(output.with_suffix(".md"), self.markdown() + made)
        say(f"written: {output} and {output.with_suffix('.md')}")
        if self.draw is not None:
            self.draw(output.with_suffix(".png"))
            say(f"written: {output.with_suffix('.png')}")


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns of cells, numbers to the right; Markdown, which a terminal shows as well."""
    return tabulate(rows, header, "pipe", colalign=["right"] * len(header), disable_numparse=True)
