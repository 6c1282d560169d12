"""The report's tables as grids of text: the same ones for the terminal, Markdown, LaTeX and the page; and as CSV."""

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from tabulate import tabulate

from nmt.evaluation.alignment_error import AlignmentEntry
from nmt.evaluation.by_length import MIN_SENTENCES, BinScore
from nmt.evaluation.metrics import METRICS
from nmt.files import visible
from nmt.progress import format_duration
from nmt.study.headline import Headline
from nmt.study.hypothesis_tests import WHOLE_SET, PairTest, Significance
from nmt.study.report import Report, SystemRow, View

MISSING = "–"
EXTRA_ROWS = "Other searches, and equal time"
HEADLINES, SIGNIFICANCE = "Lead on short and on long sentences", "Differences and their significance"
ALIGNMENT = "Attention read as alignment"
MAX_PAIRS = 40  # with more, the table has the whole test set only


@dataclass(frozen=True)
class Grid:
    """A header and rows of text cells; the first column is words, the others numbers. "\\n" breaks a cell's line."""

    title: str
    header: list[str]
    rows: list[list[str]]
    notes: list[str] = field(default_factory=list)
    main: bool = True  # shown on the terminal


EMPTY_GRID = Grid("", [], [])


def _further_metric(key: str) -> Callable[[SystemRow], str]:
    return lambda row: _number(row.metrics.get(key))


# The columns of the table of systems, in order; one that is missing for all is not shown, and those of the metrics that
# were asked for stand before BP.
SYSTEM_COLUMNS: dict[str, Callable[[SystemRow], str]] = {
    "seeds": lambda row: str(len(row.runs)),
    "parameters": lambda row: _number(row.parameters, 0),
    "state": lambda row: row.state or MISSING,
    "updates": lambda row: _number(row.updates, 0),
    "target pieces": lambda row: _piece_count(row.target_pieces),
    "CPU time": lambda row: MISSING if row.cpu_seconds is None else format_duration(row.cpu_seconds),
    "BLEU": lambda row: _bleu(row),
    "seeds' BLEU": lambda row: _seeds(row),
    "chrF2": lambda row: _number(row.chrf),
    **{METRICS[key].label: _further_metric(key) for key in METRICS if key != "chrf"},
    "BP": lambda row: _number(row.brevity_penalty, 3),
    "ratio": lambda row: _number(row.length_ratio, 3),
    "capped": lambda row: _number(row.capped, 0),
}  # fmt: skip


def grids(report: Report) -> list[Grid]:
    """All tables that have something to show, the main ones first."""
    words, *others = report.views
    more = report.variants
    main = [
        systems_grid("Systems", report.systems),
        headlines_grid(report.headlines, report.variant_headlines),
        length_grid(words, words.scores),
        significance_grid(report.significance),
        systems_grid(EXTRA_ROWS, more),
        replace(length_grid(words, words.variants), title=f"{EXTRA_ROWS}: {words.title}") if more else EMPTY_GRID,
        alignment_grid(report.alignment),
    ]
    further = [
        *(length_grid(view, view.scores) for view in others),
        *(detail_grid(label, words) for label in words.scores),
    ]
    return [grid for grid in (*main, *(replace(grid, main=False) for grid in further)) if grid.rows]


def systems_grid(title: str, systems: Sequence[SystemRow]) -> Grid:
    """One row a system: size, what reaches its decoder, budget spent, and the scores on the whole test set."""
    cells = {name: [column(system) for system in systems] for name, column in SYSTEM_COLUMNS.items()}
    if not any(len(system.runs) > 1 for system in systems):
        del cells["seeds"], cells["seeds' BLEU"]
    shown = {name: column for name, column in cells.items() if set(column) != {MISSING}}
    notes = ["state: real numbers of a source of n pieces that reach the decoder."] if "state" in shown else []
    notes += _bleu_notes({system.system: [system] for system in systems})
    rows = [list(row) for row in zip([system.system for system in systems], *shown.values(), strict=True)]
    return Grid(title, ["system", *shown], rows, notes)


def headlines_grid(headlines: Sequence[Headline], variants: Sequence[Headline]) -> Grid:
    """One row a pair: the lead on short sentences, on long ones, and the difference of the two."""
    rows = [
        [
            f"{row.system} - {row.baseline}",
            f"{row.gap_short:+.1f}\n{_ends(row.gap_short_interval)}",
            f"{row.gap_long:+.1f}\n{_ends(row.gap_long_interval)}",
            f"{row.estimate:+.1f}{' (few)' * row.descriptive}\n{_ends(row.interval)}",
            ", ".join(f"{seed:+.1f}" for seed in row.seeds) if len(row.seeds) > 1 else MISSING,
        ]
        for row in (*headlines, *variants)
    ]
    if not rows:
        return EMPTY_GRID
    first = (*headlines, *variants)[0]
    header = ["lead in BLEU", f"short: {first.short} words\nn={first.n_short:,}",
              f"long: {first.long} words\nn={first.n_long:,}", "long minus short", "by seed"]  # fmt: skip
    return Grid(HEADLINES, header, rows, ["[ ]: 95% interval over sentences and, where there are several, seeds."])


def length_grid(view: View, scores: Mapping[str, Sequence[BinScore]]) -> Grid:
    """One row a system: corpus BLEU in each bin, its interval below; n is in the header."""
    if not view.bins:
        return EMPTY_GRID
    header = [f"{length_bin.label}\nn={length_bin.n:,}{'*' * length_bin.descriptive}" for length_bin in view.bins]
    rows = [[label, *(_bleu(row, "\n") for row in rows)] for label, rows in scores.items()]
    few = [f"*: fewer than {MIN_SENTENCES} sentences in the bin; descriptive only."]
    notes = [*(few if any(length_bin.descriptive for length_bin in view.bins) else []), *_bleu_notes(scores)]
    return Grid(view.title, [f"BLEU by {view.axis}", *header], rows, notes)


def detail_grid(label: str, view: View) -> Grid:
    """One row a bin of one system: all the numbers behind a curve."""
    scores = view.scores[label]
    further = {key: METRICS[key].label for row in scores for key in row.metrics}
    header = ["source words", "n", "source tokens", "reference tokens", "BLEU", "seeds' BLEU", "BP", "ratio",
              "1-grams", "2-grams", "3-grams", "4-grams", "chrF2", *further.values()]  # fmt: skip
    rows = [
        [
            length_bin.label + "*" * length_bin.descriptive,
            *(f"{count:,}" for count in (length_bin.n, length_bin.source_tokens, row.reference_tokens)),
            _bleu(row),
            _seeds(row),
            _number(row.brevity_penalty, 3),
            _number(row.length_ratio, 3),
            *(_number(value) for value in (*row.precisions, row.chrf, *(row.metrics[key] for key in further))),
        ]
        for length_bin, row in zip(view.bins, scores, strict=True)
    ]
    return Grid(f"{label} by {view.axis}", header, rows, list(dict.fromkeys(row.note for row in scores if row.note)))


def significance_grid(values: Significance | None) -> Grid:
    """One row a pair, one column a bin: the difference in BLEU, and a star where both tests say so after Holm."""
    if values is None:
        return EMPTY_GRID
    pairs = dict.fromkeys((test.a, test.b) for test in values.tests)
    bins = list(dict.fromkeys(test.bin for test in values.tests)) if len(pairs) <= MAX_PAIRS else [WHOLE_SET]
    tests = {(test.a, test.b, test.bin): test for test in values.tests}
    rows = [[f"{b} - {a}", *(_difference(tests[a, b, name]) for name in bins)] for a, b in pairs]
    same = any(test.identical for test in values.tests)
    notes = [
        f"Difference in BLEU and its 95% interval ({values.resamples:,} paired bootstrap resamples).",
        f"A star: p < 0.05 by the paired bootstrap and by approximate randomisation ({values.trials:,} trials), "
        f"each after Holm's correction ({values.holm}).",
        *(["identical: the outputs match the references equally in every sentence; p = 1."] * same),
    ]
    return Grid(SIGNIFICANCE, ["difference", *bins], rows, notes)


def tests_grid(values: Significance) -> Grid:
    """Every test with its p values; for the page, which folds it."""
    header = ["pair", "bin", "n", "difference", "95% interval",
              "p bootstrap", "Holm", "p randomisation", "Holm"]  # fmt: skip
    rows = [
        [
            f"{test.b} - {test.a}",
            test.bin,
            f"{test.n:,}",
            MISSING if test.difference is None else f"{test.difference:+.1f}{'*' * test.significant}",
            "identical" if test.identical else _ends(test.interval),
            *map(_p_value, (test.p_bootstrap, test.holm_bootstrap, test.p_randomisation, test.holm_randomisation)),
        ]
        for test in values.tests
    ]
    return Grid(f"All {len(rows):,} tests with their p values", header, rows)


def alignment_grid(alignment: Sequence[AlignmentEntry]) -> Grid:
    """One row for each system, layer and shift."""
    lengths = [row.label for row in alignment[0].by_length if row.n] if alignment else []
    header = ["system", "attention", "shift", "sentences", "AER", "precision", "recall", *lengths]
    rows = []
    for entry in alignment:
        by_length = {row.label: row.aer for row in entry.by_length}
        shares = (entry.aer, entry.precision, entry.recall, *map(by_length.get, lengths))
        rows.append(
            [entry.system, entry.attention or "all", str(entry.shift), f"{entry.n:,}",
             *(MISSING if share is None else f"{100 * share:.1f}%" for share in shares)]
        )  # fmt: skip
    notes = ["AER against the true alignment, forced decoding of the reference, and by source words; shift 1: the look "
             "at the step after."]  # fmt: skip
    return Grid(ALIGNMENT, header, rows, notes if rows else [])


def _difference(test: PairTest) -> str:
    if test.identical:
        return "identical"
    if test.difference is None:
        return MISSING
    return f"{test.difference:+.1f}{'*' * test.significant}" + (f"\n{_ends(test.interval)}" if test.interval else "")


def _bleu_notes(scores: Mapping[str, Sequence[BinScore]]) -> list[str]:
    """Why a BLEU is 0 or missing, and whose."""
    owners: dict[str, list[str]] = {}
    for label, rows in scores.items():
        for note in dict.fromkeys(row.note for row in rows if row.note):
            owners.setdefault(note, []).append(label)
    return [f"{', '.join(labels)}: {note}." for note, labels in owners.items()]


def _bleu(score: BinScore, separator: str = " ") -> str:
    if score.bleu is None:
        return MISSING
    ends = score.interval
    return f"{score.bleu:.1f}" + (f"{separator}[{ends[0]:.1f}, {ends[1]:.1f}]" if ends else "")


def _seeds(score: BinScore) -> str:
    """The lowest and the highest seed."""
    seeds = [value for value in score.seeds if value is not None]
    return f"{min(seeds):.1f}–{max(seeds):.1f}" if len(seeds) > 1 else MISSING


def _ends(interval: Sequence[float] | None) -> str:
    return MISSING if interval is None else f"[{interval[0]:+.1f}, {interval[1]:+.1f}]"


def _number(value: float | None, digits: int = 1) -> str:
    return MISSING if value is None else f"{value:,.{digits}f}"


def _p_value(value: float | None) -> str:
    return MISSING if value is None else "< 0.001" if value < 0.001 else f"{value:.3f}"


def _piece_count(count: float | None) -> str:
    if count is None:
        return MISSING
    return f"{count / 1e6:.2f} M" if count >= 1e6 else f"{count:,.0f}"


def as_text(grid: Grid) -> str:
    """Words left, numbers right; a cell may have several lines."""
    return "\n".join(line.rstrip() for line in _tabulated(grid.rows, grid.header, "simple").split("\n"))


def as_markdown(grid: Grid) -> str:
    cells = [[escape_markdown(cell).replace("\n", "<br>") for cell in row] for row in [grid.header, *grid.rows]]
    rule = ["---", *["---:"] * (len(grid.header) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in [cells[0], rule, *cells[1:]])


def as_latex(grid: Grid) -> str:
    """A tabular for the package booktabs; a cell's further lines become further rows."""
    header, *more = _lines_of_cells(grid.header)
    body = [line for row in grid.rows for line in _lines_of_cells(row)]
    lines = _tabulated([*more, *body], header, "latex_booktabs").split("\n")
    lines.insert(3 + len(more), lines.pop(3))  # the rule, below all of the header
    return f"% {visible(grid.title)}\n" + "\n".join(lines).replace("–", "--") + "\n"


def _tabulated(rows: Sequence[Sequence[str]], header: Sequence[str], style: str) -> str:
    align = ("left", *["right"] * (len(header) - 1))
    # with numbers parsed, "1e5" or a system called "3.10" would be rewritten
    return tabulate(rows, header, style, colalign=align, headersalign=align, disable_numparse=True)


def _lines_of_cells(row: Sequence[str]) -> list[list[str]]:
    """A row of cells as lines of text."""
    return [list(line) for line in zip_longest(*(cell.split("\n") for cell in row), fillvalue="")]


def escape_markdown(text: str) -> str:
    """Text that Markdown shows literally; line breaks are kept."""
    for character in "\\|*_<>[]`":
        text = text.replace(character, f"\\{character}")
    return "\n".join(" ".join(line.split()) for line in text.split("\n"))


def as_csv(rows: Iterable[Mapping[str, object]]) -> str:
    """One line a row, all numbers as they are; lists become columns of their own (interval_1, interval_2)."""
    rows = list(rows)
    lists = {key for row in rows for key, value in row.items() if isinstance(value, list | tuple)}
    flat = [_flat_row({key: own for key, own in row.items() if own is not None or key not in lists}) for row in rows]
    file = io.StringIO()
    writer = csv.DictWriter(file, list(dict.fromkeys(key for row in flat for key in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return file.getvalue()


def _flat_row(row: Mapping[str, object]) -> dict[str, object]:
    flat: dict[str, object] = {}
    for key, value in row.items():
        if isinstance(value, list | tuple):
            flat |= {f"{key}_{number}": item for number, item in enumerate(value, start=1)}
        elif isinstance(value, str) and value.startswith(("=", "+", "-", "@")):
            flat[key] = f"'{value}"  # a spreadsheet would compute it
        else:
            flat[key] = value
    return flat
