"""The comparison as files in one folder: comparison.html, .md and .json, figures, and tables in LaTeX and CSV.

The HTML page needs nothing but itself; it and the Markdown page are made from the templates beside this file.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import vl_convert
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from nmt.files import file_names, visible, write_text
from nmt.study import figures as drawing
from nmt.study.explorer import Explorer
from nmt.study.figures import Chart, curves_chart, length_chart, write_chart
from nmt.study.report import Report
from nmt.study.results import json_object
from nmt.study.samples import Sample, marked_words
from nmt.study.tables import Grid, as_csv, as_latex, as_markdown, as_text, escape_markdown, grids, tests_grid

FOLDER = Path(__file__).parent
STEMS = {
    "words": "bleu_by_length",
    "deciles": "bleu_by_length_deciles",
    "pieces": "bleu_by_length_pieces",
    "curves": "learning_curves",
}
CONTROLS = {code: "\ufffd" for code in (*range(32), 127, *range(0xD800, 0xE000)) if code not in (9, 10)}
MAX_HEADLINES = 6  # on the Markdown page and the terminal; all of them are in comparison.json


class ReportTexts(NamedTuple):
    """What the page shows of the test set's text; None: it is left out."""

    samples: Sequence[Sample] | None
    explorer: Explorer | None


def write_report(report: Report, texts: ReportTexts, pictures: Sequence[tuple[str, str]], folder: Path) -> Path:
    """Writes everything; gives the main figure's path. Pictures are (system, file name in the folder).

    What a comparison there before had and this one lacks is removed.
    """
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
    write_text(folder / "comparison.html", html_page(report, tables, charts, texts))
    for stale in _written_files(previous) - _written_files(values):
        (folder / stale).unlink(missing_ok=True)
    return folder / figures["words"]


def _written_files(comparison: Mapping[str, Any]) -> set[str]:
    """The tables and pictures of a comparison.json, in its folder."""
    tables = file_names([grid["title"].lower() for grid in comparison.get("tables") or ()])
    figures, pictures = ((comparison.get(key) or {}).values() for key in ("figures", "attention"))
    return {
        *(f"tables/{name}.tex" for name in tables),
        *(f"{Path(name).stem}{suffix}" for name in figures for suffix in drawing.SUFFIXES),
        *(Path(name).name for name in pictures),
    }


def _write_tables(report: Report, tables: Sequence[Grid], folder: Path) -> None:
    """LaTeX as shown, CSV with every number."""
    folder.mkdir(exist_ok=True)
    for grid, name in zip(tables, file_names([grid.title.lower() for grid in tables]), strict=True):
        write_text(folder / f"{name}.tex", as_latex(grid))
    systems = [{"system": system.system, **asdict(system)} for system in (*report.systems, *report.variants)]
    bins = [
        {"view": view.name, "system": label, **asdict(length_bin), **asdict(score)}
        for view in report.views
        for label, scores in {**view.scores, **view.variants}.items()
        for length_bin, score in zip(view.bins, scores, strict=True)
    ]
    for row in (*systems, *bins):
        row |= row.pop("metrics")  # a column each
        for key in ("runs", "warnings", "search"):
            row.pop(key, None)
    write_text(folder / "systems.csv", as_csv(systems))
    write_text(folder / "bins.csv", as_csv(bins))
    if report.significance:
        write_text(folder / "significance.csv", as_csv(map(asdict, report.significance.tests)))


def terminal_report(report: Report) -> str:
    """The headline, the main tables, and how they were made."""
    lines = [f"* {headline.sentence}" for headline in report.headlines[:MAX_HEADLINES]]
    blocks = ["\n".join([*lines, *(f"  {line}" for line in report.limits)])]
    for grid in grids(report):
        if grid.main:
            blocks.append("\n".join([grid.title, "", as_text(grid), *(f"  {note}" for note in grid.notes)]))
    text = "\n\n".join([*blocks, "\n".join(report.notes)])
    return "\n".join(visible(line) for line in text.split("\n"))


def html_page(report: Report, tables: Sequence[Grid], charts: Mapping[str, Chart], texts: ReportTexts) -> str:
    """A self-contained file. What is there but empty (no sample, no sentence to explore) has no section."""
    environment = _environment(lambda value: value.translate(CONTROLS) if type(value) is str else value, True)
    environment.filters |= {"lines": _lines, "marked": marked_words, "json": _json}
    # Vega, Vega-Lite and Vega-Embed with the interpreter of expressions, which needs no eval
    vega = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed", drawing.VEGA_LITE)
    explorer = texts.explorer
    return environment.get_template("page.html.j2").render(
        report=report,
        tables={grid.title: grid for grid in tables},
        tests=tests_grid(report.significance) if report.significance else None,
        figures=charts,
        drawing=drawing,
        samples=texts.samples,
        explorer=explorer,
        explorer_data=explorer
        and {
            "languages": [report.test.source_language, report.test.target_language],
            "systems": list(explorer.maps),
            "states": {system.system: system.state for system in report.systems},
            **asdict(explorer),
        },
        asset=lambda name: Markup((FOLDER / name).read_text(encoding="utf-8")),
        vega=Markup(vega.replace("</script", "<\\/script")),
    )


def markdown_page(
    report: Report, tables: Sequence[Grid], figures: Mapping[str, str], pictures: Sequence[tuple[str, str]]
) -> str:
    """The comparison as a page that links the figures beside it. All values are escaped but what is Markdown."""
    environment = _environment(
        lambda value: value if isinstance(value, Markup) else escape_markdown(str(value)), autoescape=False
    )
    environment.filters["table"] = lambda grid: Markup(as_markdown(grid))
    return environment.get_template("page.md.j2").render(
        report=report,
        headlines=report.headlines[:MAX_HEADLINES],
        tables=tables,
        figures={name: Markup(file) for name, file in figures.items()},
        pictures=[(label, Markup(file)) for label, file in pictures],
    )


def _environment(finalize: Callable[[Any], Any], autoescape: bool) -> Environment:
    """`finalize` makes what the page can hold of every value."""
    return Environment(
        loader=FileSystemLoader(FOLDER), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        autoescape=autoescape, finalize=finalize,
    )  # fmt: skip


def _lines(text: str) -> Markup:
    """Text with its line breaks."""
    return Markup("<br>").join(escape(line.translate(CONTROLS)) for line in text.split("\n"))


def _json(value: object) -> Markup:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))
