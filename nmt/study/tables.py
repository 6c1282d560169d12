"""The report's tables as grids of text: the same ones for the terminal, Markdown, LaTeX and the page; and as CSV."""

import csv
import io
from collections import defaultdict
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


def _grid(title: str, rows: Sequence[Mapping[str, str]], notes: list[str]) -> Grid:
    """Rows of cells by their headers: a column is one line where its table is made."""
    return Grid(title, list(rows[0]) if rows else [], [list(row.values()) for row in rows], notes)


def _number(value: float | None, digits: int = 1) -> str:
    return MISSING if value is None else f"{value:,.{digits}f}"


def _millions(value: float | None) -> str:
    return _number(value, 0) if value is None or value < 1e6 else f"{value / 1e6:.2f} M"


def _ends(interval: Sequence[float] | None, sign: str = "+") -> str:
    return MISSING if interval is None else f"[{interval[0]:{sign}.1f}, {interval[1]:{sign}.1f}]"


def _bleu(score: BinScore, separator: str = " ") -> str:
    return _number(score.bleu) + (f"{separator}{_ends(score.interval, '-')}" if score.interval else "")


def _seeds(score: BinScore) -> str:
    """The lowest and the highest seed."""
    seeds = [value for value in score.seeds if value is not None]
    return f"{min(seeds):.1f}–{max(seeds):.1f}" if len(seeds) > 1 else MISSING


def _further_metric(key: str) -> Callable[[BinScore], str]:
    return lambda row: _number(row.metrics.get(key))


# The columns of the table of systems, in order; one that is missing for all is not shown.
SYSTEM_COLUMNS: dict[str, Callable[[SystemRow], str]] = {
    "seeds": lambda row: str(len(row.runs)),
    "parameters": lambda row: _number(row.parameters, 0),
    "state": lambda row: row.state or MISSING,
    "updates": lambda row: _number(row.updates, 0),
    "target pieces": lambda row: _millions(row.target_pieces),
    "CPU time": lambda row: MISSING if row.cpu_seconds is None else format_duration(row.cpu_seconds),
    "BLEU": _bleu,
    "seeds' BLEU": _seeds,
    "chrF2": lambda row: _number(row.chrf),
    **{metric.label: _further_metric(key) for key, metric in METRICS.items() if key != "chrf"},
    "BP": lambda row: _number(row.brevity_penalty, 3),
    "ratio": lambda row: _number(row.length_ratio, 3),
    "capped": lambda row: _number(row.capped, 0),
}  # fmt: skip


def grids(report: Report) -> list[Grid]:
    """All tables that have something to show, the main ones first."""
    words, *others = report.views
    main = [
        systems_grid("Systems", report.systems),
        headlines_grid([*report.headlines, *report.variant_headlines]),
        length_grid(words, words.scores),
        *([significance_grid(report.significance)] if report.significance else []),
        systems_grid(EXTRA_ROWS, report.variants),
        replace(length_grid(words, words.variants), title=f"{EXTRA_ROWS}: {words.title}"),
        alignment_grid(report.alignment),
    ]
    further = [length_grid(view, view.scores) for view in others]
    further += [detail_grid(label, words) for label in words.scores]
    return [grid for grid in (*main, *(replace(grid, main=False) for grid in further)) if grid.rows]


def systems_grid(title: str, systems: Sequence[SystemRow]) -> Grid:
    """One row a system: size, what reaches its decoder, budget spent, and the scores on the whole test set."""
    cells = {name: [column(system) for system in systems] for name, column in SYSTEM_COLUMNS.items()}
    if all(len(system.runs) == 1 for system in systems):
        del cells["seeds"]
    shown = {name: column for name, column in cells.items() if set(column) != {MISSING}}
    notes = ["state: real numbers of a source of n pieces that reach the decoder."] if "state" in shown else []
    notes += _bleu_notes({system.system: [system] for system in systems})
    rows = [list(row) for row in zip([system.system for system in systems], *shown.values(), strict=True)]
    return Grid(title, ["system", *shown], rows, notes)


def headlines_grid(headlines: Sequence[Headline]) -> Grid:
    """One row a pair: the lead on short sentences, on long ones, and the difference of the two."""
    rows = [
        {
            "lead in BLEU": f"{row.system} - {row.baseline}",
            f"short: {row.short} words\nn={row.n_short:,}": f"{row.gap_short:+.1f}\n{_ends(row.gap_short_interval)}",
            f"long: {row.long} words\nn={row.n_long:,}": f"{row.gap_long:+.1f}\n{_ends(row.gap_long_interval)}",
            "long minus short": f"{row.estimate:+.1f}{' (few)' * row.descriptive}\n{_ends(row.interval)}",
            "by seed": ", ".join(f"{seed:+.1f}" for seed in row.seeds) if len(row.seeds) > 1 else MISSING,
        }
        for row in headlines
    ]
    return _grid(HEADLINES, rows, ["[ ]: 95% interval over sentences and, where there are several, seeds."])


def length_grid(view: View, scores: Mapping[str, Sequence[BinScore]]) -> Grid:
    """One row a system: corpus BLEU in each bin, its interval below; n is in the header."""
    headers = [f"{length_bin.label}\nn={length_bin.n:,}{'*' * length_bin.descriptive}" for length_bin in view.bins]
    rows = [
        {f"BLEU by {view.axis}": label, **dict(zip(headers, (_bleu(score, "\n") for score in row), strict=False))}
        for label, row in scores.items()
        if headers
    ]
    few = [f"*: fewer than {MIN_SENTENCES} sentences in the bin; descriptive only."]
    notes = few * any(length_bin.descriptive for length_bin in view.bins) + _bleu_notes(scores)
    return _grid(view.title, rows, notes)


def detail_grid(label: str, view: View) -> Grid:
    """One row a bin of one system: all the numbers behind a curve."""
    rows = [
        {
            "source words": length_bin.label + "*" * length_bin.descriptive,
            "n": f"{length_bin.n:,}",
            "source tokens": f"{length_bin.source_tokens:,}",
            "reference tokens": f"{row.reference_tokens:,}",
            "BLEU": _bleu(row),
            "seeds' BLEU": _seeds(row),
            "BP": _number(row.brevity_penalty, 3),
            "ratio": _number(row.length_ratio, 3),
            **{f"{n}-grams": _number(precision) for n, precision in enumerate(row.precisions, start=1)},
            "chrF2": _number(row.chrf),
            **{METRICS[key].label: _number(value) for key, value in row.metrics.items()},
        }
        for length_bin, row in zip(view.bins, view.scores[label], strict=True)
    ]
    return _grid(
        f"{label} by {view.axis}", rows, list(dict.fromkeys(row.note for row in view.scores[label] if row.note))
    )


def significance_grid(values: Significance) -> Grid:
    """One row a pair, one column a bin: the difference in BLEU, and a star where both tests say so after Holm."""
    tests = {(test.a, test.b, test.bin): test for test in values.tests}
    pairs = dict.fromkeys((a, b) for a, b, _ in tests)
    bins = list(dict.fromkeys(name for *_, name in tests)) if len(pairs) <= MAX_PAIRS else [WHOLE_SET]

    def cell(test: PairTest) -> str:
        ends = f"\n{_ends(test.interval)}" if test.interval else ""
        return "identical" if test.identical else _difference(test) + ends

    rows = [[f"{b} - {a}", *(cell(tests[a, b, name]) for name in bins)] for a, b in pairs]
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
    rows = []
    for test in values.tests:
        p_values = (test.p_bootstrap, test.holm_bootstrap, test.p_randomisation, test.holm_randomisation)
        cells = ["< 0.001" if p is not None and p < 0.001 else _number(p, 3) for p in p_values]
        ends = "identical" if test.identical else _ends(test.interval)
        rows.append([f"{test.b} - {test.a}", test.bin, f"{test.n:,}", _difference(test), ends, *cells])
    return Grid(f"All {len(rows):,} tests with their p values", header, rows)


def _difference(test: PairTest) -> str:
    return MISSING if test.difference is None else f"{test.difference:+.1f}{'*' * test.significant}"


def alignment_grid(alignment: Sequence[AlignmentEntry]) -> Grid:
    """One row for each system, layer and shift."""
    rows = []
    for entry in alignment:
        by_length = {row.label: row.aer for row in entry.by_length}
        shares = {"AER": entry.aer, "precision": entry.precision, "recall": entry.recall}
        shares |= {row.label: by_length.get(row.label) for row in alignment[0].by_length if row.n}
        cells = {header: MISSING if share is None else f"{100 * share:.1f}%" for header, share in shares.items()}
        facts = {"system": entry.system, "attention": entry.attention or "all", "shift": str(entry.shift)}
        rows.append({**facts, "sentences": f"{entry.n:,}", **cells})
    note = "AER against the true alignment, forced decoding of the reference, and by source words; shift 1: the look "
    return _grid(ALIGNMENT, rows, [f"{note}at the step after."])


def _bleu_notes(scores: Mapping[str, Sequence[BinScore]]) -> list[str]:
    """Why a BLEU is 0 or missing, and whose."""
    owners: dict[str, dict[str, None]] = defaultdict(dict)
    for label, row in ((label, row) for label, rows in scores.items() for row in rows if row.note):
        owners[row.note][label] = None
    return [f"{', '.join(labels)}: {note}." for note, labels in owners.items()]


def as_text(grid: Grid) -> str:
    """Words left, numbers right; a cell may have several lines."""
    return "\n".join(line.rstrip() for line in _tabulated(grid.rows, grid.header, "simple").split("\n"))


def as_markdown(grid: Grid) -> str:
    cells = [[escape_markdown(cell).replace("\n", "<br>") for cell in row] for row in [grid.header, *grid.rows]]
    rule = ["---", *["---:"] * (len(grid.header) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in [cells[0], rule, *cells[1:]])


def as_latex(grid: Grid) -> str:
    """A tabular for the package booktabs; a cell's further lines become further rows."""
    split_rows = ([cell.split("\n") for cell in row] for row in (grid.header, *grid.rows))
    (header, *more), *body = ([list(line) for line in zip_longest(*row, fillvalue="")] for row in split_rows)
    lines = _tabulated([*more, *(line for row in body for line in row)], header, "latex_booktabs").split("\n")
    lines.insert(3 + len(more), lines.pop(3))  # the rule, below all of the header
    return f"% {visible(grid.title)}\n" + "\n".join(lines).replace("–", "--") + "\n"


def _tabulated(rows: Sequence[Sequence[str]], header: Sequence[str], style: str) -> str:
    align = ("left", *["right"] * (len(header) - 1))
    # with numbers parsed, "1e5" or a system called "3.10" would be rewritten
    return tabulate(rows, header, style, colalign=align, headersalign=align, disable_numparse=True)


def escape_markdown(text: str) -> str:
    """Text that Markdown shows literally; line breaks are kept."""
    for character in "\\|*_<>[]`":
        text = text.replace(character, f"\\{character}")
    return "\n".join(" ".join(line.split()) for line in text.split("\n"))


def as_csv(rows: Iterable[Mapping[str, object]]) -> str:
    """One line a row, all numbers as they are; lists become columns of their own (interval_1, interval_2)."""
    rows = list(rows)
    lists = {key for row in rows for key, value in row.items() if isinstance(value, list | tuple)}
    flat: list[dict[str, object]] = []
    for row in rows:
        flat.append({})
        for key, value in row.items():
            if isinstance(value, list | tuple):
                flat[-1] |= {f"{key}_{number}": item for number, item in enumerate(value, start=1)}
            elif isinstance(value, str) and value.startswith(("=", "+", "-", "@")):
                flat[-1][key] = f"'{value}"  # a spreadsheet would compute it
            elif value is not None or key not in lists:
                flat[-1][key] = value
    file = io.StringIO()
    writer = csv.DictWriter(file, list(dict.fromkeys(key for row in flat for key in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return file.getvalue()
