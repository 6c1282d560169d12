"""The figures of the study: corpus BLEU by source length with intervals, and learning curves, one line a system.

Each is one Vega-Lite specification, made with Altair: saved beside the pictures as JSON, drawn from it as PNG, SVG and
PDF, and embedded in the page. Made to survive print: colours that colour-blind readers tell apart (Okabe and Ito),
another marker for each system, labels at the ends of the lines, BLEU from zero, and the number of sentences behind each
point. Altair is imported when a figure is made.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from textwrap import wrap
from typing import Any

from nmt.evaluation.by_length import MIN_SENTENCES, BinScore
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
Chart = Any  # of Altair, whose classes of charts have no common one
SUFFIXES = (".png", ".svg", ".pdf", ".json")
FONT = "DejaVu Sans, Noto Sans, Arial, sans-serif"
LABELS = "labels"  # begins the names of the layers that the page leaves out on a phone


def length_chart(report: Report, view: View) -> Chart:
    """One cut of the test set: a line a system, and below it how long the training sentences are.

    A bin where a system has no BLEU is left out of its line; one of under 100 sentences has a hollow marker. With
    several seeds a point is their mean, its bar the bootstrap interval of that mean, and each seed a faint dash.
    """
    import altair as alt

    labels = list(view.scores)
    points = [point for index, label in enumerate(labels) for point in _points(view, label, index, len(labels))]
    tops = [max(score.bleu or 0.0, *(score.interval or [0.0])) for score in _defined(view)]
    top = max(1.0, *tops) * 1.04 if tops else 100.0
    n, spare = len(view.bins), max(0.0, (MIN_BINS - len(view.bins)) / 2)  # one bin alone does not fill the page
    domain = [-0.5 - spare, n - 0.5 + spare]
    names = json.dumps([[length_bin.label, f"n={length_bin.n:,}"] for length_bin in view.bins], ensure_ascii=False)
    axis = alt.Axis(values=list(range(n)), labelExpr=f"{names}[datum.value]", title=f"length in {view.axis}")
    x = alt.X("x:Q", scale=alt.Scale(domain=domain, nice=False), axis=axis)
    y = alt.Y("bleu:Q", scale=alt.Scale(domain=[0, top], nice=False), title="BLEU")
    tip = [alt.Tooltip(f"{name}:N") for name in TOOLTIP]
    base = alt.Chart(alt.InlineData(points)).encode(x=x, color=_by_system(alt.Color, labels, _palette(labels)))
    shape = _by_system(alt.Shape, labels, _markers(labels))
    seeds = [{**point, "bleu": seed} for point in points for seed in point["seed values"]]
    ends = {label: rows[-1].bleu for label, rows in _defined_rows(view).items()}
    layers = [
        base.mark_line(strokeWidth=1.8).encode(y=y, strokeDash=_by_system(alt.StrokeDash, labels, _dashes(labels))),
        base.mark_rule(strokeWidth=1.4, opacity=0.8).encode(y=alt.Y("low:Q"), y2="high:Q"),
        alt.Chart(alt.InlineData(seeds))
        .mark_tick(orient="horizontal", size=9, thickness=1, opacity=0.7)
        .encode(x=x, y=y, color=_by_system(alt.Color, labels, _palette(labels))),
        base.transform_filter("!datum.descriptive")
        .mark_point(filled=True, size=62, opacity=1, stroke=PAPER, strokeWidth=0.8)
        .encode(y=y, shape=shape, tooltip=tip),
        base.transform_filter("datum.descriptive")
        .mark_point(fill=PAPER, size=56, opacity=1, strokeWidth=1.6)
        .encode(y=y, shape=shape, tooltip=tip),
        *_end_labels(labels, ends, domain[1], top, x, y),
        *_max_length(view, x),
    ]
    chart: Chart = alt.layer(*layers).properties(width=WIDTH, height=HEIGHT)
    if view.training is not None:
        chart = alt.vconcat(chart, _histogram(view, view.training, domain), spacing=72, bounds="flush")
    return _styled(chart, chart_title(report, view), _details(report, view))


Point = dict[str, Any]  # a row of a figure's data, as JSON
TOOLTIP = ("system", "length", "BLEU", "n", "brevity penalty", "length ratio", "seeds", "note")


def _points(view: View, label: str, index: int, count: int) -> list[Point]:
    """A system's points; the keys of TOOLTIP are shown as they are."""
    shift = (index - (count - 1) / 2) * min(SYSTEM_OFFSET, 0.8 / count)
    points: list[Point] = []
    for column, (length_bin, score) in enumerate(zip(view.bins, view.scores[label], strict=True)):
        if score.bleu is None:
            continue
        low, high = score.interval or (score.bleu, score.bleu)
        ends = f" [{low:.1f}, {high:.1f}]" if score.interval else ""
        seeds = [f"{seed:.1f}" for seed in score.seeds if seed is not None]
        points.append({
            "x": column + shift, "bleu": score.bleu, "low": low, "high": high, "descriptive": length_bin.descriptive,
            "system": label, "length": f"{length_bin.label} {view.axis}", "BLEU": f"{score.bleu:.1f}{ends}",
            "n": f"{length_bin.n:,}{', descriptive only' * length_bin.descriptive}",
            "brevity penalty": f"{score.brevity_penalty:.3f}",
            "length ratio": "–" if score.length_ratio is None else f"{score.length_ratio:.3f}",
            "seeds": ", ".join(seeds) if len(seeds) > 1 else "–", "note": score.note or "–",
            "seed values": [seed for seed in score.seeds if seed is not None] if len(seeds) > 1 else [],
        })  # fmt: skip
    return points


def _defined(view: View) -> list[BinScore]:
    return [score for rows in _defined_rows(view).values() for score in rows]


def _defined_rows(view: View) -> dict[str, list[BinScore]]:
    rows = {label: [score for score in scores if score.bleu is not None] for label, scores in view.scores.items()}
    return {label: scores for label, scores in rows.items() if scores}


def _palette(labels: Sequence[str]) -> list[str]:
    return [COLOURS[index % len(COLOURS)] for index in range(len(labels))]


def _markers(labels: Sequence[str]) -> list[str]:
    """From the ninth system on the combination with the colour differs."""
    return [MARKERS[(index + index // len(COLOURS)) % len(MARKERS)] for index in range(len(labels))]


def _dashes(labels: Sequence[str]) -> list[list[int]]:
    return [DASHES[index // len(COLOURS) % len(DASHES)] for index in range(len(labels))]


def _by_system(channel: Any, labels: Sequence[str], values: Sequence[Any]) -> Any:
    import altair as alt

    scale = alt.Scale(domain=list(labels), range=list(values))
    return channel("system:N", scale=scale, legend=None)


def _end_labels(
    labels: Sequence[str], ends: Mapping[str, float | None], right: float, top: float, x: Any, y: Any
) -> list[Chart]:
    """Names with their markers beside the ends of the lines, pushed apart where lines meet."""
    import altair as alt

    order = sorted(((height, label) for label, height in ends.items() if height is not None))
    gap = min(0.058, 1 / max(1, len(order))) * top
    heights = spread_apart([height for height, _ in order], gap)
    lowest = min([0.0, *(top - height for height in heights)])  # a group that would leave the plot is moved into it
    names = _end_names(labels)
    rows = [
        {"system": label, "name": names[label], "x": right, "bleu": height + lowest}
        for height, (_, label) in zip(heights, order, strict=True)
    ]
    base = alt.Chart(alt.InlineData(rows)).encode(x=x, y=y, color=_by_system(alt.Color, labels, _palette(labels)))
    return [
        base.mark_point(filled=True, size=55, opacity=1, xOffset=8, clip=False)
        .encode(shape=_by_system(alt.Shape, labels, _markers(labels)))
        .properties(name=f"{LABELS}_markers"),
        base.mark_text(align="left", dx=18, fontWeight="bold", fontSize=11.5, limit=170)
        .encode(text="name:N")
        .properties(name=f"{LABELS}_names"),
    ]


def _end_names(labels: Sequence[str]) -> dict[str, str]:
    """Names as they stand beside the lines: of long ones, what they all begin with is left out."""
    same = ""
    if len(labels) > 1 and max(map(len, labels)) > MAX_NAME:
        same = "".join(
            first for first, *_ in takewhile(lambda letters: len(set(letters)) == 1, zip(*labels, strict=False))
        )
    return {label: f"…{label.removeprefix(same)}" if len(same) > 2 else label for label in labels}


def _max_length(view: View, x: Any) -> list[Chart]:
    """A line where training ends; none inside a bin without an end, where no place on the axis means that length."""
    import altair as alt

    if view.cap is None or in_open_bin(view.bins, view.cap.at):
        return []
    place = position_on_bins(view.bins, view.cap.at) - 0.5
    right = place < len(view.bins) / 2 - 0.5  # where there is room for the words
    base = alt.Chart(alt.InlineData([{"x": place, "label": view.cap.label}])).encode(x=x)
    return [
        base.mark_rule(strokeDash=[4, 3], color=SOFT),
        base.mark_text(align="left" if right else "right", baseline="bottom", fontSize=10.5, color=SOFT).encode(
            y=alt.value(-5), text="label:N"
        ),
    ]


def in_open_bin(bins: Sequence[BinInfo], at: float) -> bool:
    return bool(bins) and bins[-1].high is None and at > bins[-1].low


def position_on_bins(bins: Sequence[BinInfo], at: float) -> float:
    """A length's position on an axis where every bin is one wide: 1.5 is the middle of the second."""
    for column, length_bin in enumerate(bins):
        if length_bin.high is None or at < length_bin.high:
            width = 1 if length_bin.high is None else length_bin.high - length_bin.low
            return column + min(1.0, max(0.0, (at - length_bin.low) / width))
    return float(len(bins))


def _histogram(view: View, shares: Sequence[float], domain: Sequence[float]) -> Chart:
    """Bars below the bins: the share of the training pairs that is as long, with its percentage above."""
    import altair as alt

    rows = [
        {
            "x": column,
            "left": column - 0.44,
            "right": column + 0.44,
            "share": share,
            "foot": 0,
            "percent": percent(share),
        }
        for column, share in enumerate(shares)
    ]
    base = alt.Chart(alt.InlineData(rows)).encode(
        y=alt.Y("share:Q", axis=None, scale=alt.Scale(domain=[0, max([*shares, 1e-9])], nice=False)),
    )
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
    low, high = row.interval
    if low <= 0 <= high:
        return f"No change of the gap between {row.system} and {row.baseline} with source length is shown"
    return (
        f"{row.system} minus {row.baseline}: {row.gap_short:+.1f} BLEU on sources of {row.short} words, "
        f"{row.gap_long:+.1f} on sources of {row.long}"
    )


def chart_title(report: Report, view: View) -> str:
    return finding(report) if view.name == "words" else view.title


def _details(report: Report, view: View) -> list[str]:
    test, seeds = report.test, max(len(system.runs) for system in report.systems)
    facts = [
        f"{test.data} {test.pair}, {test.sentences:,} {test.name} sentences".replace(" ,", ","),
        "bars: 95% bootstrap intervals" + (f" of the mean of {seeds} seeds (dashes)" if seeds > 1 else ""),
    ]
    if any(length_bin.descriptive for length_bin in view.bins):
        facts.append(f"hollow: n < {MIN_SENTENCES}")
    if view.cap and in_open_bin(view.bins, view.cap.at):
        facts.append(view.cap.label)
    return [" · ".join(facts[:2]), *([" · ".join(facts[2:])] if facts[2:] else [])]


def curves_chart(report: Report) -> Chart:
    """BLEU on the validation text against the target pieces seen."""
    import altair as alt

    labels, systems = list(report.curves), report.labels
    most = max(pieces for curve in report.curves.values() for pieces, _ in curve)
    unit, word = (1e6, "millions") if most >= 1e6 else (1e3, "thousands")
    points = [
        {"system": label, "x": pieces / unit, "bleu": bleu, "BLEU": f"{bleu:.1f}", "target pieces": f"{pieces:,}"}
        for label, curve in report.curves.items()
        for pieces, bleu in curve
    ]
    top = max([1.0, *(bleu for curve in report.curves.values() for _, bleu in curve)]) * 1.05
    right = most / unit * 1.02
    title = f"target pieces seen in training, {word}"
    x = alt.X("x:Q", title=title, scale=alt.Scale(domain=[0, right], nice=False), axis=alt.Axis(tickCount=8))
    y = alt.Y("bleu:Q", scale=alt.Scale(domain=[0, top], nice=False), title="BLEU on the validation text, greedy")
    base = alt.Chart(alt.InlineData(points)).encode(x=x, y=y, color=_by_system(alt.Color, systems, _palette(systems)))
    tip = [alt.Tooltip(f"{name}:N") for name in ("system", "BLEU", "target pieces")]
    ends = {label: report.curves[label][-1][1] for label in labels}
    layers = [
        base.mark_line(strokeWidth=1.6).encode(strokeDash=_by_system(alt.StrokeDash, systems, _dashes(systems))),
        base.mark_point(filled=True, size=30, opacity=1).encode(
            shape=_by_system(alt.Shape, systems, _markers(systems)), tooltip=tip
        ),
        *_end_labels(systems, ends, right, top, x, y),
    ]
    chart = alt.layer(*layers).properties(width=WIDTH, height=HEIGHT * 0.85)
    details = [f"{report.test.data} {report.test.pair}, validation text".replace(" ,", ",")]
    heights = ", ".join(f"{label} {bleu:.1f}" for label, bleu in ends.items())
    return _styled(chart, f"BLEU at the end of training: {heights}", details)


def _styled(chart: Chart, title: str, details: list[str]) -> Chart:
    import altair as alt

    head = alt.Title(
        wrap(title, TITLE_LETTERS),
        subtitle=details,
        anchor="start",
        offset=22,
        fontSize=14,
        subtitleFontSize=11,
        subtitleColor=SOFT,
        subtitlePadding=5,
        color=INK,
    )
    axis = {"labelColor": INK, "titleColor": INK, "titleFontWeight": "normal", "labelFontSize": 11,
            "ticks": False, "titleFontSize": 12, "domainColor": FAINT, "gridColor": FAINT, "labelPadding": 6,
            "labelOverlap": False}  # fmt: skip
    return (
        chart.properties(title=head, background=PAPER, padding=12)
        .configure(font=FONT)
        .configure_view(stroke=None, clip=False)
        .configure_axis(**axis)
        .configure_axisX(grid=False)
    )


def write_chart(chart: Chart, stem: Path) -> Path:
    """Writes <stem>.png, .svg, .pdf and .json; gives the PNG's path."""
    for suffix in SUFFIXES:
        save_chart(chart, stem.with_suffix(suffix))
    return stem.with_suffix(".png")


def save_chart(chart: Chart, path: Path) -> None:
    """Writes the chart as path's suffix says; the JSON is its specification."""
    import vl_convert

    specification, version = chart.to_dict(), vega_lite_version()
    if path.suffix == ".json":
        write_text(path, json.dumps(specification, indent=1, ensure_ascii=False) + "\n")
    elif path.suffix == ".svg":
        write_text(path, as_svg(chart))
    elif path.suffix == ".pdf":
        pdf = vl_convert.vegalite_to_pdf(specification, vl_version=version)
        write_whole(path, lambda to: to.write_bytes(pdf))
    else:
        png = vl_convert.vegalite_to_png(specification, vl_version=version, scale=2)
        write_whole(path, lambda to: to.write_bytes(png))


def as_svg(chart: Chart) -> str:
    import vl_convert

    return vl_convert.vegalite_to_svg(chart.to_dict(), vl_version=vega_lite_version())


def vega_lite_version() -> str:
    """The version that Altair's specifications are of: v6.1."""
    import altair

    return ".".join(altair.SCHEMA_VERSION.split(".")[:2])
