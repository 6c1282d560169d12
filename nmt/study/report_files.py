"""The comparison as files in one folder: comparison.html, .md and .json, figures, and tables in LaTeX and CSV."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from nmt.files import file_names, visible, write_text
from nmt.study.figures import SUFFIXES, curves_chart, length_chart, write_chart
from nmt.study.page import ReportTexts, markdown_page, write_page
from nmt.study.report import Report
from nmt.study.results import json_object
from nmt.study.tables import Grid, as_csv, as_latex, as_text, grids

FIGURE, CURVES = "bleu_by_length", "learning_curves"
STEMS = {"words": FIGURE, "deciles": f"{FIGURE}_deciles", "pieces": f"{FIGURE}_pieces", "curves": CURVES}
MAX_HEADLINES = 6  # results on the terminal; all are in comparison.json


def write_report(report: Report, texts: ReportTexts, pictures: Sequence[tuple[str, str]], folder: Path) -> Path:
    """Writes everything; gives the main figure's path. Pictures are (system, file name in the folder)."""
    folder.mkdir(parents=True, exist_ok=True)
    charts = {view.name: length_chart(report, view) for view in report.views}
    if report.curves:
        charts["curves"] = curves_chart(report)
    figures = {name: write_chart(chart, folder / STEMS[name]).name for name, chart in charts.items()}
    tables = grids(report)
    values = {
        **asdict(report),
        "tables": [asdict(grid) for grid in tables],
        "figures": figures,
        "attention": dict(pictures),
    }
    previous = json_object(folder / "comparison.json")
    write_text(folder / "comparison.json", json.dumps(values, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    write_text(folder / "comparison.md", markdown_page(report, tables, figures, pictures))
    _write_tables(report, tables, folder / "tables")
    write_page(report, tables, charts, texts, folder / "comparison.html")
    for stale in _written_files(previous) - _written_files(values):
        (folder / stale).unlink(missing_ok=True)
    return folder / figures["words"]


def _written_files(comparison: Mapping[str, object]) -> set[str]:
    """The tables and pictures of a comparison.json, in its folder; a later one removes what it lacks."""
    parts = {key: comparison.get(key) or {} for key in ("tables", "figures", "attention")}
    tables, figures, pictures = json.loads(json.dumps(list(parts.values())))
    names = file_names([grid["title"].lower() for grid in tables])
    stems = [Path(name).stem for name in dict(figures).values()]
    return {
        *(f"tables/{name}.tex" for name in names),
        *(f"{stem}{suffix}" for stem in stems for suffix in SUFFIXES),
        *dict(pictures).values(),
    }


def terminal_report(report: Report) -> str:
    """The headline, the main tables, and how they were made."""
    lines = [f"* {headline.sentence}" for headline in report.headlines[:MAX_HEADLINES]]
    lines += [f"  {line}" for line in report.limits]
    blocks = ["\n".join(lines)]
    for grid in grids(report):
        if grid.main:
            blocks.append("\n".join([grid.title, "", as_text(grid), *(f"  {note}" for note in grid.notes)]))
    text = "\n\n".join([*blocks, "\n".join(report.notes)])
    return "\n".join(visible(line) for line in text.split("\n"))


def _write_tables(report: Report, tables: Sequence[Grid], folder: Path) -> None:
    """LaTeX as shown, CSV with every number."""
    folder.mkdir(exist_ok=True)
    for grid, name in zip(tables, file_names([grid.title.lower() for grid in tables]), strict=True):
        write_text(folder / f"{name}.tex", as_latex(grid))
    write_text(folder / "systems.csv", as_csv(_system_rows(report)))
    write_text(folder / "bins.csv", as_csv(_bin_rows(report)))
    if report.significance:
        write_text(folder / "significance.csv", as_csv(asdict(test) for test in report.significance.tests))


def _system_rows(report: Report) -> Iterator[dict[str, object]]:
    for system in (*report.systems, *report.variants):
        values = {"system": system.system, **asdict(system)}
        left_out = ("runs", "warnings", "search", "metrics")
        yield {key: value for key, value in values.items() if key not in left_out} | system.metrics


def _bin_rows(report: Report) -> Iterator[dict[str, object]]:
    for view in report.views:
        for label, rows in {**view.scores, **view.variants}.items():
            for length_bin, row in zip(view.bins, rows, strict=True):
                values = {"view": view.name, "system": label, **asdict(length_bin), **asdict(row)}
                del values["metrics"]
                yield values | row.metrics
