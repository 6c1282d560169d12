"""The report as one HTML file that needs nothing else, and as a Markdown page: both from templates beside this file."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from nmt.files import write_text
from nmt.study.explorer import Explorer
from nmt.study.figures import COLOURS, DARK_COLOURS, DARK_MODE, Chart, as_svg, percent, vega_lite_version
from nmt.study.report import Report
from nmt.study.samples import Sample, marked_words
from nmt.study.tables import ALIGNMENT, HEADLINES, SIGNIFICANCE, Grid, as_markdown, escape_markdown, tests_grid

FOLDER = Path(__file__).parent
SNIPPET = "window.vegaEmbed = vegaEmbed"
OPEN_SAMPLES = 3  # short ones and as many long ones; the rest is folded
CONTROLS = {code: "\ufffd" for code in (*range(32), 127, *range(0xD800, 0xE000)) if code not in (9, 10)}
MAX_HEADLINES = 6  # all of them are in comparison.json


class ReportTexts(NamedTuple):
    """What the page shows of the test set's text; None: it is left out."""

    samples: Sequence[Sample] | None
    explorer: Explorer | None


def write_page(
    report: Report,
    tables: Sequence[Grid],
    charts: Mapping[str, Chart],
    texts: ReportTexts,
    path: Path,
) -> None:
    """One self-contained HTML file. UserError where it cannot be written.

    What is there but empty (no sample, no sentence to explore) has no section.
    """
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_holdable,
    )
    environment.filters |= {"lines": _lines, "marked": marked_words, "json": _json, "percent": percent}
    page = environment.get_template("page.html.j2").render(
        report=report,
        tables={name: _tables(tables, name) for name in ("Systems", HEADLINES, SIGNIFICANCE, ALIGNMENT)},
        further=[grid for grid in tables if grid.title not in ("Systems", HEADLINES, SIGNIFICANCE, ALIGNMENT)],
        tests=tests_grid(report.significance) if report.significance else None,
        figures={name: (chart.to_dict(), Markup(as_svg(chart))) for name, chart in charts.items()},
        samples=texts.samples,
        open_samples=OPEN_SAMPLES,
        explorer=texts.explorer,
        explorer_data=_explorer_data(texts.explorer, report) if texts.explorer else None,
        colours=COLOURS,
        dark_colours=DARK_COLOURS,
        dark_mode=DARK_MODE,
        asset=_asset,
        vega=_vega(),
    )
    write_text(path, page)


def markdown_page(
    report: Report, tables: Sequence[Grid], figures: Mapping[str, str], pictures: Sequence[tuple[str, str]]
) -> str:
    """The comparison as a page that links the figures beside it. All values are escaped but what is Markdown."""
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=False,  # the finalizer escapes, for Markdown
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if isinstance(value, Markup) else escape_markdown(str(value)),
    )
    environment.filters["table"] = lambda grid: Markup(as_markdown(grid))
    return environment.get_template("page.md.j2").render(
        report=report,
        headlines=report.headlines[:MAX_HEADLINES],
        tables=tables,
        figures={name: Markup(file) for name, file in figures.items()},
        pictures=[(label, Markup(file)) for label, file in pictures],
    )


def _tables(tables: Sequence[Grid], title: str) -> list[Grid]:
    return [grid for grid in tables if grid.title == title]


def _holdable(value: object) -> object:
    """What HTML cannot hold becomes U+FFFD."""
    return value.translate(CONTROLS) if type(value) is str else value


def _lines(text: str) -> Markup:
    """Text with its line breaks."""
    return Markup("<br>").join(escape(line.translate(CONTROLS)) for line in text.split("\n"))


def _json(value: object) -> Markup:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))


def _explorer_data(explorer: Explorer, report: Report) -> dict[str, object]:
    return {
        "languages": [report.test.source_language, report.test.target_language],
        "states": {system.system: system.state for system in report.systems},
        **asdict(explorer),
    }


def _asset(name: str) -> Markup:
    return Markup((FOLDER / name).read_text(encoding="utf-8"))


@cache
def _vega() -> Markup:
    """Vega, Vega-Lite and Vega-Embed with the interpreter of expressions, which needs no eval: from vl-convert."""
    import vl_convert

    return Markup(
        vl_convert.javascript_bundle(snippet=SNIPPET, vl_version=vega_lite_version()).replace("</script", "<\\/script")
    )
