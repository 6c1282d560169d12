"""Grids as text for a terminal, as Markdown and as LaTeX; the report's values as CSV."""

import csv
import io
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from nmt.study.table import Grid

LATEX = {"\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
         "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--", "*": r"$^{*}$"}  # fmt: skip


def as_text(grid: Grid) -> str:
    """Columns padded to their widest cell: words left, numbers right; a cell may have several lines."""
    lines = [line for row in [grid.header, *grid.rows] for line in _lines(row)]
    depth = len(list(_lines(grid.header)))
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


def _lines(row: Sequence[str]) -> list[list[str]]:
    """A row of cells as lines of text."""
    return [list(line) for line in zip_longest(*(cell.split("\n") for cell in row), fillvalue="")]


def as_markdown(grid: Grid) -> str:
    rule = ["---", *["---:"] * (len(grid.header) - 1)]
    table = [[markdown(cell).replace("\n", "<br>") for cell in row] for row in [grid.header, *grid.rows]]
    table.insert(1, rule)
    return "\n".join("| " + " | ".join(row) + " |" for row in table)


def markdown(text: str) -> str:
    """Text as itself in Markdown; line breaks stay."""
    for character in "\\|*_<>[]`":
        text = text.replace(character, f"\\{character}")
    return "\n".join(" ".join(line.split()) for line in text.split("\n"))


def as_latex(grid: Grid) -> str:
    """A tabular for the package booktabs; a cell's further lines become further rows."""
    rows = [" & ".join(_latex(cell) for cell in line) + r" \\" for line in _lines(grid.header)] + [r"\midrule"]
    for row in grid.rows:
        rows += [" & ".join(_latex(cell) for cell in line) + r" \\" for line in _lines(row)]
    columns = "l" + "r" * (len(grid.header) - 1)
    body = "\n".join([r"\toprule", *rows, r"\bottomrule"])
    return f"% {grid.title}\n\\begin{{tabular}}{{{columns}}}\n{body}\n\\end{{tabular}}\n"


def _latex(text: str) -> str:
    return "".join(LATEX.get(character, character) for character in text)


def as_csv(rows: Sequence[dict[str, Any]]) -> str:
    """One line a row, all numbers as they are; lists become columns of their own (interval_1, interval_2)."""
    lists = {key for row in rows for key, value in row.items() if isinstance(value, list)}
    flat = [_flat({key: value for key, value in row.items() if value is not None or key not in lists}) for row in rows]
    file = io.StringIO()
    writer = csv.DictWriter(file, list(dict.fromkeys(key for row in flat for key in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return file.getvalue()


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, list):
            flat |= {f"{key}_{place}": item for place, item in enumerate(value, start=1)}
        else:
            flat[key] = value
    return flat
