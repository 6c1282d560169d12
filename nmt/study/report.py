"""The comparison as files in one folder: comparison.md, comparison.json, the figure."""

import json
from pathlib import Path

from nmt.study.curves import curves_of, draw_curves
from nmt.study.figure import draw_bleu_by_length
from nmt.study.table import Comparison, as_json, markdown_page

FIGURE, CURVES = "bleu_by_length", "learning_curves"


def write_report(comparison: Comparison, folder: Path) -> Path:
    """Draws the figure, writes the page and the JSON beside it; gives the figure's path."""
    figure = draw_bleu_by_length(comparison.systems, folder / FIGURE)
    comparison = comparison._replace(figure=figure.name)
    if curves := curves_of(comparison.systems):
        comparison = comparison._replace(curves=draw_curves(curves, folder / CURVES).name)
    (folder / "comparison.md").write_text(markdown_page(comparison), encoding="utf-8")
    text = json.dumps(as_json(comparison), indent=2, ensure_ascii=False, allow_nan=False)
    (folder / "comparison.json").write_text(text + "\n", encoding="utf-8")
    return figure
