"""The report's tables as grids of text: the same ones for the terminal, Markdown, LaTeX and the page; and as CSV."""

import csv
import io
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from nmt.evaluation.by_length import MIN_SENTENCES
from nmt.study.hypothesis_tests import WHOLE_SET
from nmt.study.job_progress import duration

MISSING = "–"
EXTRA_ROWS = "Other searches, and equal time"
SIGNIFICANCE, ALIGNMENT = "Differences and their significance", "Attention read as alignment"
Report = dict[str, Any]  # the comparison as plain values, or a part of it (report.py)


class Grid(NamedTuple):
    """A header and rows of text cells; the first column is words, the others numbers. "\\n" breaks a cell's line."""

    title: str
    header: list[str]
    rows: list[list[str]]
    notes: list[str] = []  # noqa: RUF012 (never changed)
    main: bool = True  # shown on the terminal


EMPTY_GRID = Grid("", [], [])
MAX_PAIRS = 40  # with more, the table has the whole test set only
LATEX = {"\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
         "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--", "*": r"$^{*}$"}  # fmt: skip


def grids(report: Report) -> list[Grid]:
    """All tables that have something to show, the main ones first."""
    words, *others = report["views"]
    more = report["variants"]
    main = [
        systems_grid("Systems", report["systems"]),
        length_grid(words, words["scores"]),
        significance_grid(report),
        systems_grid(EXTRA_ROWS, more),
        length_grid(words, words["variants"])._replace(title=f"{EXTRA_ROWS}: {words['title']}") if more else EMPTY_GRID,
        alignment_grid(report["alignment"]),
    ]
    further = [
        *(length_grid(view, view["scores"]) for view in others),
        *(detail_grid(label, words) for label in words["scores"]),
    ]
    return [grid for grid in (*main, *(grid._replace(main=False) for grid in further)) if grid.rows]


def systems_grid(title: str, systems: Sequence[Report]) -> Grid:
    """One row a system: size, what reaches its decoder, budget spent, and the scores on the whole test set."""
    columns: dict[str, Callable[[Report], str]] = {
        "seeds": lambda system: str(len(system["runs"])),
        "parameters": lambda system: _integer(system["parameters"]),
        "state": lambda system: system["state"] or MISSING,
        "updates": lambda system: _integer(system["updates"]),
        "target pieces": lambda system: _piece_count(system["target_pieces"]),
        "CPU time": lambda system: MISSING if system["cpu_seconds"] is None else duration(system["cpu_seconds"]),
        "BLEU": _bleu,
        "seeds' BLEU": _seeds,
        "chrF2": lambda system: _number(system["chrf"]),
        "TER": lambda system: _number(system["ter"]),
        "BP": lambda system: _number(system["brevity_penalty"], 3),
        "ratio": lambda system: _number(system["length_ratio"], 3),
        "capped": lambda system: _number(system["capped"], 0),
    }
    cells = {name: [column(system) for system in systems] for name, column in columns.items()}
    if not any(len(system["runs"]) > 1 for system in systems):
        del cells["seeds"], cells["seeds' BLEU"]
    shown = {name: column for name, column in cells.items() if set(column) != {MISSING}}
    notes = ["state: real numbers of a source of n pieces that reach the decoder."] if "state" in shown else []
    notes += _bleu_notes({system["system"]: [system] for system in systems})
    rows = [list(row) for row in zip([system["system"] for system in systems], *shown.values(), strict=True)]
    return Grid(title, ["system", *shown], rows, notes)


def length_grid(view: Report, scores: Report) -> Grid:
    """One row a system: corpus BLEU in each bin, its interval below; n is in the header."""
    if not view["bins"]:
        return EMPTY_GRID
    header = [
        f"{length_bin['label']}\nn={length_bin['n']:,}{'*' * length_bin['descriptive']}" for length_bin in view["bins"]
    ]
    rows = [[label, *(_bleu(row, "\n") for row in rows)] for label, rows in scores.items()]
    few = [f"*: fewer than {MIN_SENTENCES} sentences in the bin; descriptive only."]
    notes = [*(few if any(length_bin["descriptive"] for length_bin in view["bins"]) else []), *_bleu_notes(scores)]
    return Grid(view["title"], [f"BLEU by {view['axis']}", *header], rows, notes)


def detail_grid(label: str, view: Report) -> Grid:
    """One row a bin of one system: all the numbers behind a curve."""
    header = ["source words", "n", "source tokens", "reference tokens", "BLEU", "seeds' BLEU", "BP", "ratio",
              "1-grams", "2-grams", "3-grams", "4-grams", "chrF2"]  # fmt: skip
    rows = []
    for length_bin, row in zip(view["bins"], view["scores"][label], strict=True):
        counts = (length_bin["n"], length_bin["source_tokens"], row["reference_tokens"])
        rows.append([
            length_bin["label"] + "*" * length_bin["descriptive"],
            *(f"{count:,}" for count in counts),
            _bleu(row),
            _seeds(row),
            _number(row["brevity_penalty"], 3),
            _number(row["length_ratio"], 3),
            *(_number(precision) for precision in row["precisions"]),
            _number(row["chrf"]),
        ])  # fmt: skip
    notes = dict.fromkeys(row["note"] for row in view["scores"][label] if row["note"])
    return Grid(f"{label} by {view['axis']}", header, rows, list(notes))


def significance_grid(report: Report) -> Grid:
    """One row a pair, one column a bin: the difference in BLEU, and a star where both tests say so after Holm."""
    values = report["significance"]
    if values is None:
        return EMPTY_GRID
    pairs = dict.fromkeys((test["a"], test["b"]) for test in values["tests"])
    bins = list(dict.fromkeys(test["bin"] for test in values["tests"]))
    if len(pairs) > MAX_PAIRS:
        bins = [WHOLE_SET]
    tests = {(test["a"], test["b"], test["bin"]): test for test in values["tests"]}
    rows = [[f"{b} - {a}", *(_difference(tests[a, b, name]) for name in bins)] for a, b in pairs]
    same = any(test["identical"] for test in values["tests"])
    notes = [
        f"Difference in BLEU and its 95% interval ({values['resamples']:,} paired bootstrap resamples).",
        f"A star: p < 0.05 by the paired bootstrap and by approximate randomisation ({values['trials']:,} trials), "
        f"each after Holm's correction ({values['holm']}).",
        *(["identical: the outputs match the references equally in every sentence; p = 1."] * same),
    ]
    return Grid(SIGNIFICANCE, ["difference", *bins], rows, notes)


def alignment_grid(alignment: Sequence[Report]) -> Grid:
    """One row for each system, layer and shift."""
    header = ["system", "attention", "shift", "sentences", "AER", "precision", "recall"]
    rows = [
        [entry["system"], entry["way"] or "all", str(entry["shift"]), f"{entry['n']:,}",
         *(_percent(entry[key]) for key in ("aer", "precision", "recall"))]
        for entry in alignment
    ]  # fmt: skip
    notes = ["AER against the true alignment, forced decoding of the reference; shift 1: the look at the step after."]
    return Grid(ALIGNMENT, header, rows, notes if rows else [])


def _difference(test: Report) -> str:
    if test["identical"]:
        return "identical"
    if test["difference"] is None:
        return MISSING
    ends = test["interval"]
    return f"{test['difference']:+.1f}{'*' * test['significant']}" + (
        f"\n[{ends[0]:+.1f}, {ends[1]:+.1f}]" if ends else ""
    )


def _bleu_notes(scores: dict[str, list[Report]]) -> list[str]:
    """Why a BLEU is 0 or missing, and whose."""
    owners: dict[str, list[str]] = {}
    for label, rows in scores.items():
        for note in dict.fromkeys(row["note"] for row in rows if row["note"]):
            owners.setdefault(note, []).append(label)
    return [f"{', '.join(labels)}: {note}." for note, labels in owners.items()]


def _bleu(scored: Report, separator: str = " ") -> str:
    if scored["bleu"] is None:
        return MISSING
    ends = scored["interval"]
    return f"{scored['bleu']:.1f}" + (f"{separator}[{ends[0]:.1f}, {ends[1]:.1f}]" if ends else "")


def _seeds(scored: Report) -> str:
    """The lowest and the highest seed."""
    seeds = [value for value in (scored["seeds"] or []) if value is not None]
    return f"{min(seeds):.1f}–{max(seeds):.1f}" if len(seeds) > 1 else MISSING


def _number(value: float | None, digits: int = 1) -> str:
    return MISSING if value is None else f"{value:.{digits}f}"


def _percent(value: float | None) -> str:
    return MISSING if value is None else f"{100 * value:.1f}%"


def _integer(value: float | None) -> str:
    return MISSING if value is None else f"{value:,.0f}"


def _piece_count(count: float | None) -> str:
    if count is None:
        return MISSING
    return f"{count / 1e6:.2f} M" if count >= 1e6 else f"{count:,.0f}"


def as_text(grid: Grid) -> str:
    """Columns padded to their widest cell: words left, numbers right; a cell may have several lines."""
    lines = [line for row in [grid.header, *grid.rows] for line in _cell_lines(row)]
    depth = len(list(_cell_lines(grid.header)))
    widths = [max(len(line[column]) for line in lines) for column in range(len(grid.header))]
    padded = [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
    padded.insert(depth, "-" * (sum(widths) + 2 * (len(widths) - 1)))
    return "\n".join(padded)


def _cell_lines(row: Sequence[str]) -> list[list[str]]:
    """A row of cells as lines of text."""
    return [list(line) for line in zip_longest(*(cell.split("\n") for cell in row), fillvalue="")]


def as_markdown(grid: Grid) -> str:
    rule = ["---", *["---:"] * (len(grid.header) - 1)]
    table = [[escape_markdown(cell).replace("\n", "<br>") for cell in row] for row in [grid.header, *grid.rows]]
    table.insert(1, rule)
    return "\n".join("| " + " | ".join(row) + " |" for row in table)


def escape_markdown(text: str) -> str:
    """Text that Markdown shows literally; line breaks are kept."""
    for character in "\\|*_<>[]`":
        text = text.replace(character, f"\\{character}")
    return "\n".join(" ".join(line.split()) for line in text.split("\n"))


def as_latex(grid: Grid) -> str:
    """A tabular for the package booktabs; a cell's further lines become further rows."""
    rows = [" & ".join(_latex(cell) for cell in line) + r" \\" for line in _cell_lines(grid.header)] + [r"\midrule"]
    for row in grid.rows:
        rows += [" & ".join(_latex(cell) for cell in line) + r" \\" for line in _cell_lines(row)]
    columns = "l" + "r" * (len(grid.header) - 1)
    body = "\n".join([r"\toprule", *rows, r"\bottomrule"])
    return f"% {grid.title}\n\\begin{{tabular}}{{{columns}}}\n{body}\n\\end{{tabular}}\n"


def _latex(text: str) -> str:
    return "".join(LATEX.get(character, character) for character in text)


def as_csv(rows: Sequence[dict[str, Any]]) -> str:
    """One line a row, all numbers as they are; lists become columns of their own (interval_1, interval_2)."""
    lists = {key for row in rows for key, value in row.items() if isinstance(value, list)}
    flat = [
        _flat_row({key: value for key, value in row.items() if value is not None or key not in lists}) for row in rows
    ]
    file = io.StringIO()
    writer = csv.DictWriter(file, list(dict.fromkeys(key for row in flat for key in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return file.getvalue()


def _flat_row(row: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, list):
            flat |= {f"{key}_{number}": item for number, item in enumerate(value, start=1)}
        else:
            flat[key] = value
    return flat
