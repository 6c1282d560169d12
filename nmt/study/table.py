"""The comparison as a table: rows of plain values, then as text for a terminal, as Markdown, as JSON."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from nmt.study.fairness import fairness, parameter_ratio
from nmt.study.progress import clock
from nmt.study.results import DESCRIPTIVE, Bin, Result, System

NONE = "–"


class Comparison(NamedTuple):
    """Everything the table, the Markdown page and the JSON are made from."""

    systems: list[System]
    record: dict[str, Any]  # command, commit, date, machine, versions
    figure: str | None = None  # names of pictures in the same folder
    curves: str | None = None
    attention: tuple[tuple[str, str], ...] = ()  # (system, picture)
    sentence: str | None = None
    failures: tuple[str, ...] = ()

    @property
    def first(self) -> Result:
        return self.systems[0].results[0]


class Grid(NamedTuple):
    """A header and rows of text cells; the first column is words, the others numbers."""

    header: list[str]
    rows: list[list[str]]


def summary_grid(systems: Sequence[System], *, markdown: bool = False) -> Grid:
    """One row a system: size, budget spent, and the scores on the whole test set."""
    header = ["system", "parameters", "updates", "target pieces", "CPU time", "BLEU", "chrF2", "TER", "capped"]
    if several := any(len(system.results) > 1 for system in systems):
        header.insert(1, "seeds")
    rows = []
    for system in systems:
        row = [
            _words(system.label, markdown),
            NONE if system.parameters is None else f"{system.parameters:,}",
            _spread(system, lambda result: result.updates),
            _pieces(system.mean(lambda result: result.training.target_pieces)),
            _time(system.mean(lambda result: result.training.cpu_seconds)),
            _bleu(system),
            _spread(system, lambda result: result.score("chrf"), digits=1),
            _spread(system, lambda result: result.score("ter"), digits=1),
            _spread(system, lambda result: result.evaluation["capped"]),
        ]
        if several:
            row.insert(1, str(len(system.results)))
        rows.append(row)
    return Grid(header, rows)


def length_grid(systems: Sequence[System], *, markdown: bool = False) -> Grid:
    """One row a system: corpus BLEU in each bin of source words; n stands in the header."""
    bins = [row for row in systems[0].bins if row.n > 0]
    separator = "<br>" if markdown else "\n"
    header = ["BLEU by source words", *(f"{row.label}{separator}n={row.n:,}{_mark(row)}" for row in bins)]
    rows = []
    for system in systems:
        cells = [_bin_cell(row, markdown) for row in system.bins if row.n > 0]
        rows.append([_words(system.label, markdown), *cells])
    return Grid(header, rows)


def text_table(comparison: Comparison) -> str:
    """The comparison for a terminal: two blocks of aligned columns and the lines that say how it was made."""
    systems = comparison.systems
    blocks = [_aligned(summary_grid(systems)), _aligned(length_grid(systems)), "\n".join(notes(comparison))]
    return "\n\n".join(blocks)


def markdown_page(comparison: Comparison) -> str:
    """The comparison as a page that stands beside its pictures."""
    test = comparison.first.evaluation["test"]
    parts = [f"# {', '.join(system.label for system in comparison.systems)} on {_escape(test['data'])}"]
    if comparison.figure:
        parts.append(f"![BLEU by source length]({comparison.figure})")
    parts.append(_markdown(summary_grid(comparison.systems, markdown=True)))
    parts.append(_markdown(length_grid(comparison.systems, markdown=True)))
    parts.append("\n".join(f"- {_escape(line)}" for line in notes(comparison)))
    if comparison.curves:
        parts += ["## Learning curves", f"![validation BLEU while training]({comparison.curves})"]
    if comparison.attention:
        parts.append("## Attention")
        if comparison.sentence:
            parts.append(f"> {_escape(comparison.sentence)}")
        for label, picture in comparison.attention:
            parts += [f"**{_escape(label)}**", f"![attention of {_escape(label)}]({picture})"]
    return "\n\n".join(parts) + "\n"


def as_json(comparison: Comparison) -> dict[str, Any]:
    """The comparison as plain values: no NaN, no absolute path."""
    first = comparison.first.evaluation
    return {
        "systems": [_system_json(system) for system in comparison.systems],
        "parameter_ratio": parameter_ratio(comparison.systems),
        "fairness": fairness(comparison.systems),
        "notes": notes(comparison),
        "test": first["test"],
        "search": first["search"],
        "signatures": {name: metric["signature"] for name, metric in first["metrics"].items()},
        "figure": comparison.figure,
        "curves": comparison.curves,
        "attention": dict(comparison.attention),
        "sentence": comparison.sentence,
        "failures": list(comparison.failures),
        "record": comparison.record,
    }


def notes(comparison: Comparison) -> list[str]:
    """Fairness, test set, search, signature, warnings, and what made the table."""
    evaluation = comparison.first.evaluation
    test = evaluation["test"]
    lines = list(fairness(comparison.systems))
    lines.append(
        f"Test set: {test['data']}/{test['name']}, {test['sentences']:,} sentences, "
        f"source sha256 {test['source_sha256'][:12]}, "
        f"{len(test['references_sha256'])} reference{'s' * (len(test['references_sha256']) > 1)}."
    )
    lines.append(_search(comparison.systems))
    lines.append(f"BLEU: {evaluation['metrics']['bleu']['signature']}; [ ]: 95% bootstrap interval.")
    lines += _seed_note(comparison.systems)
    if any(0 < row.n < DESCRIPTIVE for row in comparison.systems[0].bins):
        lines.append(f"*: fewer than {DESCRIPTIVE} sentences in the bin; descriptive only.")
    lines += [f"Warning ({label}): {text}" for label, text in _warnings(comparison.systems)]
    lines += [f"Missing: {failure}" for failure in comparison.failures]
    made = comparison.record
    lines.append(
        f"Made {made.get('date') or 'at an unknown date'} at commit {made.get('commit') or 'unknown'} "
        f"on {made.get('machine') or 'an unknown machine'}."
    )
    return lines


def _seed_note(systems: Sequence[System]) -> list[str]:
    if all(len(system.results) == 1 for system in systems):
        return []
    return [
        "Several seeds: the mean, and in brackets the lowest and the highest seed; "
        "the intervals in the figure reach from the lowest to the highest end of the seeds' 95% intervals."
    ]


def _search(systems: Sequence[System]) -> str:
    settings = [result.evaluation["search"] for system in systems for result in system.results]
    known = [search for search in settings if search is not None]
    if not known:
        return "Search: not known."
    first = known[0]
    words = f"beam {first['beam']}, length penalty {first['length_penalty']:g}"
    words += f", at most {first['max_ratio']:g} x source + {first['max_extra']} pieces"
    if len(known) < len(settings):
        return f"Search: not known for every system; the first known: {words}."
    same = all(search == first for search in known)
    return f"{'Same search for all' if same else 'SEARCH SETTINGS DIFFER; the first'}: {words}."


def _warnings(systems: Sequence[System]) -> list[tuple[str, str]]:
    """Warnings of the evaluations; one that all systems share is said once."""
    owners: dict[str, list[str]] = {}
    for system in systems:
        for result in system.results:
            for warning in result.evaluation["warnings"]:
                owners.setdefault(str(warning), []).append(system.label)
    every = {system.label for system in systems}
    return [
        ("all" if set(labels) == every else ", ".join(dict.fromkeys(labels)), text) for text, labels in owners.items()
    ]


def _system_json(system: System) -> dict[str, Any]:
    return {
        "system": system.label,
        "parameters": system.parameters,
        "bleu": system.mean(lambda result: result.score("bleu")),
        "chrf": system.mean(lambda result: result.score("chrf")),
        "ter": system.mean(lambda result: result.score("ter")),
        "by_length": [row._asdict() | {"descriptive": row.n < DESCRIPTIVE} for row in system.bins],
        "runs": [
            {
                "run": result.evaluation["run"],
                "seed": result.evaluation["seed"],
                "updates": result.updates,
                "evaluated_at_update": result.evaluation["updates"],
                "target_pieces": result.training.target_pieces,
                "seconds": result.training.seconds,
                "cpu_seconds": result.training.cpu_seconds,
                "metrics": result.evaluation["metrics"],
                "by_length": result.evaluation["by_length"],
                "capped": result.evaluation["capped"],
            }
            for result in system.results
        ],
    }


def _bleu(system: System) -> str:
    mean = system.mean(lambda result: result.score("bleu"))
    if mean is None:
        return NONE
    if len(system.results) > 1:
        return _spread(system, lambda result: result.score("bleu"), digits=1)
    interval = system.results[0].evaluation["metrics"]["bleu"]["interval"]
    return f"{mean:.1f}" if interval is None else f"{mean:.1f} [{interval[0]:.1f}, {interval[1]:.1f}]"


def _spread(system: System, value: Callable[[Result], float | None], digits: int = 0) -> str:
    """The value; over several seeds that differ, the mean and (lowest–highest)."""
    mean = system.mean(value)
    if mean is None:
        return NONE
    values = [number for result in system.results if (number := value(result)) is not None]
    if min(values) == max(values):
        return f"{mean:,.{digits}f}"
    return f"{mean:,.{digits}f} ({min(values):,.{digits}f}–{max(values):,.{digits}f})"


def _bin_cell(row: Bin, markdown: bool) -> str:
    if row.bleu is None:
        return NONE
    if markdown and row.interval is not None:
        return f"{row.bleu:.1f}<br>[{row.interval[0]:.1f}, {row.interval[1]:.1f}]"
    return f"{row.bleu:.1f}"


def _mark(row: Bin) -> str:
    return "*" if row.n < DESCRIPTIVE else ""


def _pieces(count: float | None) -> str:
    if count is None:
        return NONE
    return f"{count / 1e6:.2f} M" if count >= 1e6 else f"{count:,.0f}"


def _time(seconds: float | None) -> str:
    return NONE if seconds is None else clock(seconds)


def _words(label: str, markdown: bool) -> str:
    return _escape(label) if markdown else label


def _escape(text: str) -> str:
    """Text as itself in Markdown."""
    for character in "\\|*_<>[]`":
        text = text.replace(character, f"\\{character}")
    return " ".join(text.split())


def _aligned(grid: Grid) -> str:
    """Columns padded to their widest cell: words left, numbers right; "\\n" in a header splits it."""
    depth = max(cell.count("\n") for cell in grid.header) + 1
    header = [[""] * (depth - 1 - cell.count("\n")) + cell.split("\n") for cell in grid.header]
    lines = [[cells[level] for cells in header] for level in range(depth)]
    table = [*lines, *grid.rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(grid.header))]
    padded = [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]
    padded.insert(depth, "-" * (sum(widths) + 2 * (len(widths) - 1)))
    return "\n".join(padded)


def _markdown(grid: Grid) -> str:
    rule = ["---", *["---:"] * (len(grid.header) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in [grid.header, rule, *grid.rows])
