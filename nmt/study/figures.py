"""The figures of the study: corpus BLEU by source length with intervals, and learning curves, one line a system.

Each is one Vega-Lite specification, made with Altair: saved beside the pictures as JSON, drawn from it as PNG, SVG and
PDF, and embedded in the page. Made to survive print: colours that colour-blind readers tell apart (Okabe and Ito),
another marker for each system, labels at the ends of the lines, BLEU from zero, and the number of sentences behind each
point.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from textwrap import wrap
from typing import Any

import altair as alt
import vl_convert

from nmt.evaluation.by_length import MIN_SENTENCES
from nmt.files import write_text, write_whole
from nmt.study.report import BinInfo, Report, View

COLOURS = ("#D55E00", "#0072B2", "#009E73", "#8C3F87", "#A0740A", "#2B8CBE", "#444444", "#999999")
DARK_COLOURS = ("#FF8F45", "#5FB4F2", "#3ECFA3", "#D78FD2", "#DDB04A", "#86CBEB", "#C4C9CF", "#8A9199")
INK, SOFT, FAINT, PAPER, BAR = "#222222", "#595959", "#DDDDDD", "#FFFFFF", "#C4C4C4"
DARK_MODE = dict(zip((*COLOURS, INK, SOFT, FAINT, PAPER, BAR),
                     (*DARK_COLOURS, "#E4E7EA", "#9AA4AF", "#333A42", "#14171B", "#4A525B"), strict=True))  # fmt: skip
X_SHAPE = "M-1-.6L-.6-1L0-.4L.6-1L1-.6L.4 0L1 .6L.6 1L0 .4L-.6 1L-1 .6L-.4 0Z"
HEXAGON = "M0-1L.87-.5V.5L0 1L-.87 .5V-.5Z"
MARKERS = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", X_SHAPE, HEXAGON)
DASHES = ([1, 0], [7, 3], [2, 3])
SYSTEM_OFFSET = 0.09  # of a bin, between systems, so that their intervals do not hide each other
MIN_BINS = 5  # bins that the width is made for, at least
WIDTH, HEIGHT, HISTOGRAM = 620, 320, 46  # pixels
TITLE_LETTERS = 84  # in a line
MAX_NAME = 22  # letters beside a line
TOOLTIP = ("system", "length", "BLEU", "n", "brevity penalty", "length ratio", "seeds", "note")
SUFFIXES = (".png", ".svg", ".pdf", ".json")
FONT = "DejaVu Sans, Noto Sans, Arial, sans-serif"
AXES = {"labelColor": INK, "titleColor": INK, "titleFontWeight": "normal", "labelFontSize": 11, "ticks": False,
        "titleFontSize": 12, "domainColor": FAINT, "gridColor": FAINT, "labelPadding": 6,
        "labelOverlap": False}  # fmt: skip
STYLE = {"font": FONT, "view": {"stroke": None, "clip": False}, "axis": AXES, "axisX": {"grid": False}}
VEGA_LITE = ".".join(alt.SCHEMA_VERSION.split(".")[:2])  # the version that Altair's specifications are of
Chart = Any  # of Altair, whose classes of charts have no common one


def system_encodings(labels: Sequence[str]) -> tuple[alt.Color, alt.Shape, alt.StrokeDash]:
    """How systems are told apart; from the ninth on, the combination of colour and marker is another one."""

    def encoding(channel: Any, values: Sequence[Any]) -> Any:
        scale = alt.Scale(domain=list(labels), range=[values[index % len(values)] for index in range(len(labels))])
        return channel("system:N", scale=scale, legend=None)

    shifted = [MARKERS[(index + index // len(MARKERS)) % len(MARKERS)] for index in range(len(labels))]
    dashes = [dash for dash in DASHES for _ in COLOURS]
    return encoding(alt.Color, COLOURS), encoding(alt.Shape, shifted), encoding(alt.StrokeDash, dashes)


def length_chart(report: Report, view: View) -> Chart:
    """One view of the test set: a line a system, and below it how long the training sentences are.

    A bin where a system has no BLEU is left out of its line; one of under 100 sentences has a hollow marker. With
    several seeds a point is their mean, its bar the bootstrap interval of that mean, and each seed a faint dash.
    """
    labels, n, points = list(view.scores), len(view.bins), _points(view)
    colour, shape, dash = system_encodings(labels)
    top = max(1.0, *(max(point["bleu"], point["high"]) for point in points)) * 1.04 if points else 100.0
    spare = max(0.0, (MIN_BINS - n) / 2)  # one bin alone does not fill the page
    domain = [-0.5 - spare, n - 0.5 + spare]
    names = json.dumps([[length_bin.label, f"n={length_bin.n:,}"] for length_bin in view.bins], ensure_ascii=False)
    axis = alt.Axis(values=list(range(n)), labelExpr=f"{names}[datum.value]", title=f"length in {view.axis}")
    x = alt.X("x:Q", scale=alt.Scale(domain=domain, nice=False), axis=axis)
    y = alt.Y("bleu:Q", scale=alt.Scale(domain=[0, top], nice=False), title="BLEU")
    tip = [alt.Tooltip(f"{name}:N") for name in TOOLTIP]
    seeds = [{**point, "bleu": seed} for point in points for seed in point["seed values"]]
    base, seed_base = (alt.Chart(alt.InlineData(rows)).encode(x=x, color=colour) for rows in (points, seeds))
    layers = [
        base.mark_line(strokeWidth=1.8).encode(y=y, strokeDash=dash),
        base.mark_rule(strokeWidth=1.4, opacity=0.8).encode(y=alt.Y("low:Q"), y2="high:Q"),
        seed_base.mark_tick(orient="horizontal", size=9, thickness=1, opacity=0.7).encode(y=y),
        base.transform_filter("!datum.descriptive")
        .mark_point(filled=True, size=62, opacity=1, stroke=PAPER, strokeWidth=0.8)
        .encode(y=y, shape=shape, tooltip=tip),
        base.transform_filter("datum.descriptive")
        .mark_point(fill=PAPER, size=56, opacity=1, strokeWidth=1.6)
        .encode(y=y, shape=shape, tooltip=tip),
        *_end_labels(labels, {point["system"]: point["bleu"] for point in points}, (domain[1], top), (x, y)),
        *_max_length(view, x),
    ]
    chart: Chart = alt.layer(*layers).properties(width=WIDTH, height=HEIGHT)
    if view.training is not None:
        chart = alt.vconcat(chart, _histogram(view.training, domain), spacing=72, bounds="flush")
    return _styled(chart, finding(report) if view.name == "words" else view.title, _details(report, view))


def _points(view: View) -> list[dict[str, Any]]:
    """The figure's data as JSON; the keys of TOOLTIP are shown as they are."""
    points = []
    for index, (label, scores) in enumerate(view.scores.items()):
        shift = (index - (len(view.scores) - 1) / 2) * min(SYSTEM_OFFSET, 0.8 / len(view.scores))
        for column, (length_bin, score) in enumerate(zip(view.bins, scores, strict=True)):
            if score.bleu is None:
                continue
            low, high = score.interval or (score.bleu, score.bleu)
            ends = f" [{low:.1f}, {high:.1f}]" if score.interval else ""
            seeds = [seed for seed in score.seeds if seed is not None]
            points.append({
                "x": column + shift, "bleu": score.bleu, "low": low, "high": high,
                "descriptive": length_bin.descriptive, "system": label,
                "length": f"{length_bin.label} {view.axis}", "BLEU": f"{score.bleu:.1f}{ends}",
                "n": f"{length_bin.n:,}{', descriptive only' * length_bin.descriptive}",
                "brevity penalty": f"{score.brevity_penalty:.3f}",
                "length ratio": "–" if score.length_ratio is None else f"{score.length_ratio:.3f}",
                "seeds": ", ".join(f"{seed:.1f}" for seed in seeds) if len(seeds) > 1 else "–",
                "note": score.note or "–", "seed values": seeds if len(seeds) > 1 else [],
            })  # fmt: skip
    return points


def _end_labels(
    labels: Sequence[str], ends: Mapping[str, float], corner: tuple[float, float], axes: tuple[alt.X, alt.Y]
) -> list[Chart]:
    """Names with their markers beside the ends of the lines, pushed apart where lines meet.

    Of long names, what they all begin with is left out. The page leaves these layers out on a phone.
    """
    (right, top), (colour, shape, _) = corner, system_encodings(labels)
    order = sorted((height, label) for label, height in ends.items())
    heights = spread_apart([height for height, _ in order], min(0.058, 1 / max(1, len(order))) * top)
    lowest = min([0.0, *(top - height for height in heights)])  # a group that would leave the plot is moved into it
    same = ""
    if len(labels) > 1 and max(map(len, labels)) > MAX_NAME:
        alike = takewhile(lambda letters: len(set(letters)) == 1, zip(*labels, strict=False))
        same = "".join(letters[0] for letters in alike)
    rows = [
        {"system": label, "name": f"…{label.removeprefix(same)}" if len(same) > 2 else label, "x": right,
         "bleu": height + lowest}
        for height, (_, label) in zip(heights, order, strict=True)
    ]  # fmt: skip
    base = alt.Chart(alt.InlineData(rows)).encode(x=axes[0], y=axes[1], color=colour)
    return [
        base.mark_point(filled=True, size=55, opacity=1, xOffset=8, clip=False)
        .encode(shape=shape)
        .properties(name="labels_markers"),
        base.mark_text(align="left", dx=18, fontWeight="bold", fontSize=11.5, limit=170)
        .encode(text="name:N")
        .properties(name="labels_names"),
    ]


def _max_length(view: View, x: alt.X) -> list[Chart]:
    """A line where training ends; none inside a bin without an end, where no place on the axis means that length."""
    place = position_on_bins(view.bins, view.cap.at) if view.cap else None
    if view.cap is None or place is None:
        return []
    side: Any = "left" if place < len(view.bins) / 2 else "right"  # where there is room for the words
    base = alt.Chart(alt.InlineData([{"x": place - 0.5, "label": view.cap.label}])).encode(x=x)
    words = base.mark_text(align=side, baseline="bottom", fontSize=10.5, color=SOFT)
    return [base.mark_rule(strokeDash=[4, 3], color=SOFT), words.encode(y=alt.value(-5), text="label:N")]


def position_on_bins(bins: Sequence[BinInfo], at: float) -> float | None:
    """A length's position on an axis where every bin is one wide: 1.5 is the middle of the second.

    None inside a bin without an end.
    """
    for column, (low, high) in enumerate((length_bin.low, length_bin.high) for length_bin in bins):
        if high is None:
            return float(column) if at <= low else None
        if at < high:
            return column + max(0.0, (at - low) / (high - low))
    return float(len(bins))


def _histogram(shares: Sequence[float], domain: Sequence[float]) -> Chart:
    """Bars below the bins: the share of the training pairs that is as long, with its percentage above."""
    rows = [
        {"x": column, "left": column - 0.44, "right": column + 0.44, "share": share, "foot": 0,
         "percent": percent(share)}
        for column, share in enumerate(shares)
    ]  # fmt: skip
    height = alt.Scale(domain=[0, max([*shares, 1e-9])], nice=False)
    base = alt.Chart(alt.InlineData(rows)).encode(y=alt.Y("share:Q", axis=None, scale=height))
    scale = alt.Scale(domain=list(domain), nice=False)
    axis = alt.Axis(labels=False, title="share of the training text")
    bars = base.mark_bar(color=BAR).encode(x=alt.X("left:Q", scale=scale, axis=axis), x2="right:Q", y2="foot:Q")
    text = base.mark_text(dy=-7, fontSize=10, color=SOFT).encode(x=alt.X("x:Q", scale=scale), text="percent:N")
    return alt.layer(bars, text).properties(width=WIDTH, height=HISTOGRAM)


def percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.0095 or not share else f"{share:.1%}" if share >= 0.0005 else "<0.1%"


def spread_apart(heights: Sequence[float], gap: float) -> list[float]:
    """Rising heights moved as little as keeps neighbours a gap apart; groups stay centred where they were.

    >>> spread_apart([1.0, 1.0, 9.0], gap=2.0)
    [0.0, 2.0, 9.0]
    """

    def bottom(group: Sequence[float]) -> float:
        return sum(group) / len(group) - gap * (len(group) - 1) / 2

    groups: list[list[float]] = []
    for height in heights:
        groups.append([height])
        while len(groups) > 1 and bottom(groups[-1]) - bottom(groups[-2]) < gap * len(groups[-2]):
            last = groups.pop()
            groups[-1] += last
    return [bottom(group) + rank * gap for group in groups for rank in range(len(group))]


def finding(report: Report) -> str:
    """The largest change of a gap with length, in one sentence; what is drawn where there is none."""
    shown = [row for row in report.headlines if not row.descriptive]
    if not shown:
        names = ", ".join(report.labels)
        return f"BLEU by source length: {names if len(names) <= TITLE_LETTERS else f'{len(report.labels)} systems'}"
    row = max(shown, key=lambda row: abs(row.estimate))
    if row.interval[0] <= 0 <= row.interval[1]:
        return f"No change of the gap between {row.system} and {row.baseline} with source length is shown"
    return (
        f"{row.system} minus {row.baseline}: {row.gap_short:+.1f} BLEU on sources of {row.short} words, "
        f"{row.gap_long:+.1f} on sources of {row.long}"
    )


def _details(report: Report, view: View) -> list[str]:
    """The lines under the title."""
    test, seeds = report.test, max(len(system.runs) for system in report.systems)
    text = f"{test.data} {test.pair}, {test.sentences:,} {test.name} sentences".replace(" ,", ",")
    mean = f" of the mean of {seeds} seeds (dashes)" if seeds > 1 else ""
    more = [f"hollow: n < {MIN_SENTENCES}"] if any(length_bin.descriptive for length_bin in view.bins) else []
    if view.cap and position_on_bins(view.bins, view.cap.at) is None:
        more.append(view.cap.label)
    return [f"{text} · bars: 95% bootstrap intervals{mean}", *([" · ".join(more)] if more else [])]


def curves_chart(report: Report) -> Chart:
    """BLEU on the validation text against the target pieces seen."""
    colour, shape, dash = system_encodings(report.labels)
    most = max(pieces for curve in report.curves.values() for pieces, _ in curve)
    unit, word = (1e6, "millions") if most >= 1e6 else (1e3, "thousands")
    points = [
        {"system": label, "x": pieces / unit, "bleu": bleu, "BLEU": f"{bleu:.1f}", "target pieces": f"{pieces:,}"}
        for label, curve in report.curves.items()
        for pieces, bleu in curve
    ]
    right = most / unit * 1.02
    top = max([1.0, *(bleu for curve in report.curves.values() for _, bleu in curve)]) * 1.05
    title = f"target pieces seen in training, {word}"
    x = alt.X("x:Q", title=title, scale=alt.Scale(domain=[0, right], nice=False), axis=alt.Axis(tickCount=8))
    y = alt.Y("bleu:Q", scale=alt.Scale(domain=[0, top], nice=False), title="BLEU on the validation text, greedy")
    base = alt.Chart(alt.InlineData(points)).encode(x=x, y=y, color=colour)
    tip = [alt.Tooltip(f"{name}:N") for name in ("system", "BLEU", "target pieces")]
    ends = {label: curve[-1][1] for label, curve in report.curves.items()}
    layers = [
        base.mark_line(strokeWidth=1.6).encode(strokeDash=dash),
        base.mark_point(filled=True, size=30, opacity=1).encode(shape=shape, tooltip=tip),
        *_end_labels(report.labels, ends, (right, top), (x, y)),
    ]
    chart = alt.layer(*layers).properties(width=WIDTH, height=HEIGHT * 0.85)
    heights = ", ".join(f"{label} {bleu:.1f}" for label, bleu in ends.items())
    text = f"{report.test.data} {report.test.pair}, validation text".replace(" ,", ",")
    return _styled(chart, f"BLEU at the end of training: {heights}", [text])


def _styled(chart: Chart, title: str, details: Sequence[str]) -> Chart:
    head = alt.Title(wrap(title, TITLE_LETTERS), subtitle=details, anchor="start", offset=22, fontSize=14, color=INK,
                     subtitleFontSize=11, subtitleColor=SOFT, subtitlePadding=5)  # fmt: skip
    return chart.properties(title=head, background=PAPER, padding=12, config=STYLE)


def write_chart(chart: Chart, stem: Path) -> Path:
    """Writes <stem>.png, .svg, .pdf and .json; gives the PNG's path."""
    for suffix in SUFFIXES:
        save_chart(chart, stem.with_suffix(suffix))
    return stem.with_suffix(".png")


def save_chart(chart: Chart, path: Path) -> None:
    """Writes the chart as path's suffix says; the JSON is its specification. UserError where it cannot be written."""
    if path.suffix == ".json":
        write_text(path, json.dumps(chart.to_dict(), indent=1, ensure_ascii=False) + "\n")
    else:
        scale = 2 if path.suffix == ".png" else 1
        write_whole(path, lambda to: chart.save(to, format=path.suffix[1:], scale_factor=scale))


def as_svg(chart: Chart) -> str:
    return vl_convert.vegalite_to_svg(chart.to_dict(), vl_version=VEGA_LITE)
