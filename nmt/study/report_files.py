"""The comparison as files in one folder: comparison.html, .md and .json, figures, and tables in LaTeX and CSV."""

import json
import re
from collections.abc import Sequence
from itertools import chain, count
from pathlib import Path
from typing import Any, NamedTuple

from nmt.files import write_text
from nmt.study.figures import SUFFIXES, draw_validation_curves, draw_view
from nmt.study.html import write_page
from nmt.study.results import json_object
from nmt.study.tables import (
    ALIGNMENT,
    SIGNIFICANCE,
    Grid,
    Report,
    as_csv,
    as_latex,
    as_markdown,
    as_text,
    escape_markdown,
    grids,
)

FIGURE, CURVES = "bleu_by_length", "learning_curves"
STEMS = {"words": FIGURE, "deciles": f"{FIGURE}_deciles", "pieces": f"{FIGURE}_pieces"}
PAGE_SECTIONS = (SIGNIFICANCE, ALIGNMENT)  # which makes tables of its own of these
MAX_NAME_BYTES = 120  # of a label in a file name
MAX_HEADLINES = 6  # results on the terminal; all are in comparison.json


class ReportTexts(NamedTuple):
    """What the page shows of the test set's text; None: it is left out."""

    samples: list[dict[str, Any]] | None
    explorer: dict[str, Any] | None


def write_report(report: Report, texts: ReportTexts, pictures: Sequence[tuple[str, str]], folder: Path) -> Path:
    """Writes everything; gives the main figure's path. Pictures are (system, file name in the folder)."""
    folder.mkdir(parents=True, exist_ok=True)
    figures = {view["name"]: draw_view(report, view, folder / STEMS[view["name"]]) for view in report["views"]}
    curves = {label: [(int(x), y) for x, y in curve] for label, curve in report["curves"].items()}
    if curves:
        figures["curves"] = draw_validation_curves(curves, folder / CURVES)
    tables = grids(report)
    named = {name: path.name for name, path in figures.items()}
    values = {**report, "tables": [grid._asdict() for grid in tables], "figures": named, "attention": dict(pictures)}
    previous = json_object(folder / "comparison.json")
    write_text(folder / "comparison.json", json.dumps(values, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    write_text(folder / "comparison.md", _markdown_page(report, tables, named, pictures))
    _write_tables(report, tables, folder / "tables")
    shown = [grid._asdict() for grid in tables if grid.title not in PAGE_SECTIONS]
    write_page({**values, "tables": shown}, texts.samples, texts.explorer, folder / "comparison.html")
    for stale in _written_files(previous) - _written_files(values):
        (folder / stale).unlink(missing_ok=True)
    return figures["words"]


def _written_files(values: Report) -> set[str]:
    """The tables and pictures of a comparison, in its folder; a later one of other systems removes what it lacks."""
    tables = file_names([grid["title"].lower() for grid in values.get("tables", [])])
    figures = [Path(name).stem for name in values.get("figures", {}).values()]
    return {
        *(f"tables/{name}.tex" for name in tables),
        *(f"{stem}{suffix}" for stem in figures for suffix in SUFFIXES),
        *values.get("attention", {}).values(),
    }


def terminal_report(report: Report) -> str:
    """The headline, the main tables, and how they were made."""
    lines = [f"* {headline['sentence']}" for headline in report["headlines"][:MAX_HEADLINES]]
    lines += [f"  {line}" for line in report["limits"]]
    blocks = ["\n".join(lines)]
    for grid in grids(report):
        if grid.main:
            blocks.append("\n".join([grid.title, "", as_text(grid), *(f"  {note}" for note in grid.notes)]))
    return "\n\n".join([*blocks, "\n".join(report["notes"])])


def _markdown_page(
    report: Report, tables: Sequence[Grid], figures: dict[str, str], pictures: Sequence[tuple[str, str]]
) -> str:
    """The comparison as a page that links the figures beside it."""
    parts = [f"# {escape_markdown(report['title'])}"]
    parts += [f"**{escape_markdown(headline['sentence'])}**" for headline in report["headlines"][:MAX_HEADLINES]]
    parts.append("\n".join(f"- {escape_markdown(line)}" for line in report["limits"]))
    parts.append(f"![BLEU by source length]({figures['words']})")
    main, further = ([grid for grid in tables if grid.main is is_main] for is_main in (True, False))
    parts += [part for grid in main for part in _section(grid)]
    parts += ["## How it was made", "\n".join(f"- {escape_markdown(line)}" for line in report["notes"])]
    parts += [part for grid in further for part in _section(grid)]
    if "curves" in figures:
        parts += ["## Learning curves", f"![validation BLEU while training]({figures['curves']})"]
    for label, picture in pictures:
        parts += [f"## Attention of {escape_markdown(label)}", f"![attention of {escape_markdown(label)}]({picture})"]
    return "\n\n".join(parts) + "\n"


def _section(grid: Grid) -> list[str]:
    return [f"## {escape_markdown(grid.title)}", as_markdown(grid), *(escape_markdown(note) for note in grid.notes)]


def _write_tables(report: Report, tables: Sequence[Grid], folder: Path) -> None:
    """LaTeX as shown, CSV with every number."""
    folder.mkdir(exist_ok=True)
    for grid, name in zip(tables, file_names([grid.title.lower() for grid in tables]), strict=True):
        write_text(folder / f"{name}.tex", as_latex(grid))
    bins = [
        {"view": view["name"], "system": label, **length_bin, **row}
        for view in report["views"]
        for label, rows in {**view["scores"], **view["variants"]}.items()
        for length_bin, row in zip(view["bins"], rows, strict=True)
    ]
    plain = [
        {key: value for key, value in system.items() if not isinstance(value, dict) and key not in ("runs", "warnings")}
        for system in [*report["systems"], *report["variants"]]
    ]
    write_text(folder / "systems.csv", as_csv(plain))
    write_text(folder / "bins.csv", as_csv(bins))
    if report["significance"]:
        write_text(folder / "significance.csv", as_csv(report["significance"]["tests"]))


def file_name(label: str) -> str:
    """A label without the characters that file names may not hold, short enough for any file system with a suffix."""
    return re.sub(r"[^\w.-]+", "-", label).encode()[:MAX_NAME_BYTES].decode(errors="ignore")


def file_names(labels: Sequence[str]) -> list[str]:
    """A name for each label, no two alike, also where file names ignore case."""
    names: list[str] = []
    for label in labels:
        stem = file_name(label)
        numbered = (f"{stem}-{n}" for n in count(2))
        taken = {name.lower() for name in names}
        names.append(next(name for name in chain([stem], numbered) if name.lower() not in taken))
    return names
