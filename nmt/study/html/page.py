"""The whole page: style, sections and scripts in one file that asks nothing of any network."""

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from nmt.files import write_text
from nmt.study.html.charts import length_chart, training_chart
from nmt.study.html.markup import colour_rules, escape, html_section, note_list
from nmt.study.html.sections import (
    LEFT_OUT,
    alignment_section,
    grid_table,
    page_header,
    provenance_section,
    samples_section,
    significance_section,
    systems_section,
)

# Nothing may be fetched, sent, embedded or submitted, whatever a text in the page tries.
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)


def write_page(
    report: Mapping[str, Any],
    samples: Sequence[Mapping[str, Any]] | None,
    explorer: Mapping[str, Any] | None,
    path: Path,
) -> None:
    """Writes one self-contained HTML file.

    report is what comparison.json holds. samples are {"source", "reference", "words", "outputs": {system: text},
    "group"}; explorer is what nmt.study.explorer.explorer_data gives. None says that texts are left out; what is
    there but empty (no sample, no sentence to explore) has no section. UserError where the file cannot be written.
    """
    write_text(path, page_html(report, samples, explorer))


def page_html(
    report: Mapping[str, Any], samples: Sequence[Mapping[str, Any]] | None, explorer: Mapping[str, Any] | None
) -> str:
    systems = [system["system"] for system in report["systems"]]
    views = len(report["views"])
    parts = [
        page_header(report),
        systems_section(report, systems),
        _length_section(report, systems),
        significance_section(report, systems),
        samples_section(samples, report, systems),
        _training_section(report, systems),
        alignment_section(report, systems),
        _explorer_section(explorer, report, systems),
        provenance_section(report),
    ]
    scripts = [_asset("chart.js")]
    if explorer and explorer["sentences"]:
        scripts.append(_asset("explorer.js"))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">'
        f"<title>{escape(report['title'])}</title>\n"
        f"<style>{colour_rules()}{_view_rules(views)}\n{_asset('page.css')}</style></head>\n<body><main>\n"
        f"{''.join(parts)}</main>\n"
        f"{''.join(f'<script>{script}</script>' for script in scripts)}</body></html>\n"
    )


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _view_rules(views: int) -> str:
    """Shows the panel whose radio button is chosen: no script is needed."""
    return "".join(
        f".views>input:nth-of-type({n}):checked~.panel:nth-of-type({n}){{display:block}}" for n in range(1, views + 1)
    )


def _length_section(report: Mapping[str, Any], systems: Sequence[str]) -> str:
    """The curve in every view, then the grids behind it."""
    views = [view for view in report["views"] if view["bins"]]
    buttons = "".join(
        f'<input type="radio" name="view" id="view-{n}"{" checked" * (n == 0)}>'
        f'<label for="view-{n}">{escape(view["name"])}</label>'
        for n, view in enumerate(views)
    )
    panels = "".join(
        f'<div class="panel"><h3>{escape(view["title"])}</h3>{length_chart(view, systems)}</div>' for view in views
    )
    notes = note_list(_reading_notes(views))
    chosen = f'<div class="views{" single" if len(views) == 1 else ""}">{buttons}{panels}</div>{notes}' if views else ""
    tables = "".join(
        f"<details><summary>{escape(content['title'])}</summary>{grid_table(content, systems)}</details>"
        for content in report["tables"][1:]
    )
    return html_section("length", "BLEU by source length", chosen, tables) if chosen or tables else ""


def _reading_notes(views: Sequence[Mapping[str, Any]]) -> list[str]:
    """How the curve is read."""
    scores = [score for view in views for row in view["scores"].values() for score in row if score]
    notes = []
    if any(score.get("interval") for score in scores):
        notes.append("Corpus BLEU inside each bin; bars are 95% bootstrap intervals over sentences.")
    if max((len(score.get("seeds") or []) for score in scores), default=0) > 1:
        notes.append("A system's BLEU is the mean over its seeds.")
    if any(bin.get("descriptive") for view in views for bin in view["bins"]):
        notes.append("Hollow markers and *: fewer than 100 sentences in the bin, descriptive only.")
    return notes


def _training_section(report: Mapping[str, Any], systems: Sequence[str]) -> str:
    curves = report.get("curves") or {}
    if not any(curves.get(name) for name in systems):
        return ""
    return html_section("training", "While training", training_chart(curves, systems))


def _explorer_section(explorer: Mapping[str, Any] | None, report: Mapping[str, Any], systems: Sequence[str]) -> str:
    """The element that explorer.js fills, and its data."""
    title = "Attention explorer"
    if explorer is None:
        return html_section("explorer", title, LEFT_OUT)
    if not explorer["sentences"]:
        return ""
    test = report["test"]
    data = {
        "languages": [test.get("source_language") or "", test.get("target_language") or ""],
        "colours": {name: index for index, name in enumerate(systems)},
        **explorer,
    }
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return html_section(
        "explorer",
        title,
        "<noscript><p>The explorer is the one part of this page that needs scripts.</p></noscript>",
        '<div id="explore" hidden></div>',
        f'<script type="application/json" id="attention">{text}</script>\n',
    )
