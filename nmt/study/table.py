"""The report's tables as grids of text: the same ones for the terminal, Markdown, LaTeX and the page."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from nmt.evaluation.by_length import FEW
from nmt.study.progress import clock
from nmt.study.testing import EVERYTHING

NONE = "–"
OTHERS = "Other searches, and equal time"
SIGNIFICANCE, ALIGNMENT = "Differences and their significance", "Attention read as alignment"
Report = dict[str, Any]  # the comparison as plain values, or a part of it (protocol.py)


class Grid(NamedTuple):
    """A header and rows of text cells; the first column is words, the others numbers. "\\n" breaks a cell's line."""

    title: str
    header: list[str]
    rows: list[list[str]]
    notes: list[str] = []  # noqa: RUF012 (never changed)
    main: bool = True  # worth a place on the terminal


NO_GRID = Grid("", [], [])


def grids(report: Report) -> list[Grid]:
    """All tables that have something to show, the main ones first."""
    words, *others = report["views"]
    more = report["variants"]
    main = [
        systems_grid("Systems", report["systems"]),
        length_grid(words, words["scores"]),
        significance_grid(report),
        systems_grid(OTHERS, more),
        length_grid(words, words["variants"])._replace(title=f"{OTHERS}: {words['title']}") if more else NO_GRID,
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
        "seeds": lambda one: str(len(one["runs"])),
        "parameters": lambda one: _whole(one["parameters"]),
        "state": lambda one: one["state"] or NONE,
        "updates": lambda one: _whole(one["updates"]),
        "target pieces": lambda one: _pieces(one["target_pieces"]),
        "CPU time": lambda one: NONE if one["cpu_seconds"] is None else clock(one["cpu_seconds"]),
        "BLEU": lambda one: _bleu(one),
        "seeds' BLEU": _seeds,
        "chrF2": lambda one: _number(one["chrf"]),
        "TER": lambda one: _number(one["ter"]),
        "BP": lambda one: _number(one["brevity_penalty"], 3),
        "ratio": lambda one: _number(one["length_ratio"], 3),
        "capped": lambda one: _number(one["capped"], 0),
    }
    cells = {name: [column(one) for one in systems] for name, column in columns.items()}
    if not any(len(one["runs"]) > 1 for one in systems):
        del cells["seeds"], cells["seeds' BLEU"]
    shown = {name: column for name, column in cells.items() if set(column) != {NONE}}
    notes = ["state: real numbers of a source of n pieces that reach the decoder."] if "state" in shown else []
    notes += _said({one["system"]: [one] for one in systems})
    rows = [list(row) for row in zip([one["system"] for one in systems], *shown.values(), strict=True)]
    return Grid(title, ["system", *shown], rows, notes)


def length_grid(view: Report, scores: Report) -> Grid:
    """One row a system: corpus BLEU in each bin, its interval below; n stands in the header."""
    if not view["bins"]:
        return NO_GRID
    header = [f"{where['label']}\nn={where['n']:,}{'*' * where['descriptive']}" for where in view["bins"]]
    rows = [[label, *(_bleu(row, "\n") for row in rows)] for label, rows in scores.items()]
    few = [f"*: fewer than {FEW} sentences in the bin; descriptive only."]
    notes = [*(few if any(where["descriptive"] for where in view["bins"]) else []), *_said(scores)]
    return Grid(view["title"], [f"BLEU by {view['axis']}", *header], rows, notes)


def detail_grid(label: str, view: Report) -> Grid:
    """One row a bin of one system: everything that a curve hides."""
    header = ["source words", "n", "source tokens", "reference tokens", "BLEU", "seeds' BLEU", "BP", "ratio",
              "1-grams", "2-grams", "3-grams", "4-grams", "chrF2"]  # fmt: skip
    rows = []
    for where, row in zip(view["bins"], view["scores"][label], strict=True):
        counts = (where["n"], where["source_tokens"], row["reference_tokens"])
        rows.append([
            where["label"] + "*" * where["descriptive"],
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


MANY = 40  # pairs; of more, a table holds only the verdict on the whole test set


def significance_grid(report: Report) -> Grid:
    """One row a pair, one column a bin: the difference in BLEU, and a star where both tests say so after Holm."""
    found = report["significance"]
    if found is None:
        return NO_GRID
    pairs = dict.fromkeys((test["a"], test["b"]) for test in found["tests"])
    bins = list(dict.fromkeys(test["bin"] for test in found["tests"]))
    if len(pairs) > MANY:
        bins = [EVERYTHING]
    tests = {(test["a"], test["b"], test["bin"]): test for test in found["tests"]}
    rows = [[f"{b} - {a}", *(_difference(tests[a, b, name]) for name in bins)] for a, b in pairs]
    same = any(test["identical"] for test in found["tests"])
    notes = [
        f"Difference in BLEU and its 95% interval ({found['resamples']:,} paired bootstrap resamples).",
        f"A star: p < 0.05 by the paired bootstrap and by approximate randomisation ({found['trials']:,} trials), each "
        f"after Holm's correction ({found['holm']}).",
        *(["identical: the outputs match the references equally in every sentence; p = 1."] * same),
    ]
    return Grid(SIGNIFICANCE, ["difference", *bins], rows, notes)


def alignment_grid(alignment: Sequence[Report]) -> Grid:
    """One row a system and way of reading its attention as an alignment."""
    header = ["system", "attention", "shift", "sentences", "AER", "precision", "recall"]
    rows = [
        [one["system"], one["way"] or "all", str(one["shift"]), f"{one['n']:,}",
         *(_percent(one[key]) for key in ("aer", "precision", "recall"))]
        for one in alignment
    ]  # fmt: skip
    notes = ["AER against the true alignment, forced decoding of the reference; shift 1: the look at the step after."]
    return Grid(ALIGNMENT, header, rows, notes if rows else [])


def _difference(test: Report) -> str:
    if test["identical"]:
        return "identical"
    if test["difference"] is None:
        return NONE
    ends = test["interval"]
    return f"{test['difference']:+.1f}{'*' * test['significant']}" + (
        f"\n[{ends[0]:+.1f}, {ends[1]:+.1f}]" if ends else ""
    )


def _said(scores: dict[str, list[Report]]) -> list[str]:
    """Why a BLEU is 0 or not there, and whose."""
    owners: dict[str, list[str]] = {}
    for label, rows in scores.items():
        for note in dict.fromkeys(row["note"] for row in rows if row["note"]):
            owners.setdefault(note, []).append(label)
    return [f"{', '.join(labels)}: {note}." for note, labels in owners.items()]


def _bleu(scored: Report, separator: str = " ") -> str:
    if scored["bleu"] is None:
        return NONE
    ends = scored["interval"]
    return f"{scored['bleu']:.1f}" + (f"{separator}[{ends[0]:.1f}, {ends[1]:.1f}]" if ends else "")


def _seeds(scored: Report) -> str:
    """The lowest and the highest seed."""
    known = [value for value in (scored["seeds"] or []) if value is not None]
    return f"{min(known):.1f}–{max(known):.1f}" if len(known) > 1 else NONE


def _number(value: float | None, digits: int = 1) -> str:
    return NONE if value is None else f"{value:.{digits}f}"


def _percent(value: float | None) -> str:
    return NONE if value is None else f"{100 * value:.1f}%"


def _whole(value: float | None) -> str:
    return NONE if value is None else f"{value:,.0f}"


def _pieces(count: float | None) -> str:
    if count is None:
        return NONE
    return f"{count / 1e6:.2f} M" if count >= 1e6 else f"{count:,.0f}"
