"""The page's charts as inline SVG: BLEU by source length, and validation BLEU during training."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from nmt.study.figures import position_on_bins, spread_apart
from nmt.study.html.markup import colour_class, dash, escape, format_interval, format_number, legend, marker

MAX_LABEL = 22  # letters at the end of a line; the legend has the whole name
ABOVE = 12.0  # pixels: y of text above the plot
TOP = 30.0  # pixels above the plot
DENSE = 30  # points: with more, only the active point has a marker
BIN_OFFSET, MAX_SPREAD = 0.09, 0.6  # parts of a bin: between two systems, between all
HISTOGRAM = 44.0  # pixels
MIN_BINS = 4  # the plot has room for at least as many


@dataclass(frozen=True)
class ChartFrame:
    """Pixels of a drawing and of the margins around its plot."""

    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float
    named: bool  # names at the ends of the lines; else a legend above

    @property
    def end(self) -> float:
        return self.width - self.right

    @property
    def floor(self) -> float:
        return self.height - self.bottom

    def y(self, value: float, ceiling: float) -> float:
        return self.floor - (self.floor - self.top) * value / ceiling


class ChartPoint(NamedTuple):
    x: float  # pixels
    y: float
    text: str  # of the tooltip, one fact a line
    interval: tuple[float, float] | None = None  # y of its two ends
    hollow: bool = False


class ChartLine(NamedTuple):
    system_index: int  # for colour and marker
    name: str
    points: list[ChartPoint]


def frames(names: Sequence[str], tall: float, below: float) -> tuple[ChartFrame, ChartFrame]:
    """The drawing for wide screens and the one for phones: a plot `tall` pixels high with `below` under it."""
    longest = min(MAX_LABEL, max(map(len, names), default=0))
    tall = max(tall, 15.0 * len(names))
    wide = ChartFrame(960, TOP + tall + below, 44, 48 + 8.0 * longest, TOP, below, True)
    return wide, ChartFrame(360, TOP + tall + below, 34, 10, TOP, below, False)


def responsive_chart(wide: str, narrow: str, legend: str) -> str:
    """Two drawings of the same numbers, of which the style sheet shows the one that fits the screen."""
    return f'<div class="wide">{wide}</div><div class="narrow">{legend}{narrow}</div>'


def drawing(frame: ChartFrame, label: str, *content: str) -> str:
    return (
        f'<svg class="chart" viewBox="0 0 {frame.width:g} {frame.height:g}" role="group" '
        f'aria-label="{escape(label)}">{"".join(content)}</svg>'
    )


def ceiling_of(values: Sequence[float]) -> float:
    """A little above the highest value."""
    return max([1.0, *values]) * 1.05


def axis_ticks(top: float, most: int = 6) -> list[float]:
    """Round numbers from 0 to top, at most `most` above zero.

    >>> steps(95.0)
    [0, 20, 40, 60, 80]
    """
    size = 10.0 ** math.floor(math.log10(top / most))
    step = next(size * factor for factor in (1, 2, 5, 10) if top / (size * factor) <= most)
    return [n * step if step < 1 else round(n * step) for n in range(math.floor(top / step) + 1)]


def height_axis(frame: ChartFrame, ceiling: float, title: str) -> str:
    """Lines across at round values, and what they measure."""
    parts = [svg_text(0, ABOVE, title, "axis", anchor="start")]
    for value in axis_ticks(ceiling):
        y = frame.y(value, ceiling)
        parts.append(f'<path class="grid" d="M{frame.left} {y:.1f}H{frame.end:g}"/>')
        parts.append(svg_text(frame.left - 8, y + 4, f"{value:g}", "tick", anchor="end"))
    return "".join(parts)


def svg_text(x: float, y: float, content: object, classes: str = "tick", anchor: str = "middle") -> str:
    return f'<text class="{classes}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(content)}</text>'


def draw_lines(frame: ChartFrame, lines: Sequence[ChartLine]) -> str:
    """Every line with its intervals, points and name."""
    labels = end_labels(frame, lines) if frame.named else {}
    return "".join(_line(line) + labels.get(line.system_index, "") + "</g>" for line in lines if line.points)


def _line(line: ChartLine) -> str:
    path = "L".join(f"{point.x:.1f} {point.y:.1f}" for point in line.points)
    dense = " dense" if len(line.points) > DENSE else ""
    parts = [f'<g class="series{dense} {colour_class(line.system_index)}" data-s="{line.system_index}">']
    parts.append(f'<path class="line" d="M{path}" stroke-dasharray="{dash(line.system_index)}"/>')
    for point in line.points:
        if point.interval:
            low, high = point.interval
            parts.append(f'<path class="whisker" d="M{point.x:.1f} {low:.1f}V{high:.1f}"/>')
    for column, point in enumerate(line.points):
        parts.append(
            f'<g class="point" tabindex="0" role="img" data-b="{column}"><title>{escape(point.text)}</title>'
            f'<circle class="reach" cx="{point.x:.1f}" cy="{point.y:.1f}" r="11"/>'
            f"{marker(line.system_index, point.x, point.y, 'marker hollow' if point.hollow else 'marker')}</g>"
        )
    return "".join(parts)


def end_labels(frame: ChartFrame, lines: Sequence[ChartLine]) -> dict[int, str]:
    """Names beside the ends of the lines, pushed apart where lines meet, within the height of the drawing."""
    ends = sorted((line.points[-1].y, line.points[-1].x, line.system_index, line.name) for line in lines if line.points)
    gap = min(17.0, (frame.floor - frame.top) / max(1, len(ends)))
    heights = shift_into(spread_apart([end[0] for end in ends], gap), gap, frame.top, frame.floor)
    labels = {}
    for label_y, (y, x, index, name) in zip(heights, ends, strict=True):
        shown = name if len(name) <= MAX_LABEL else name[: MAX_LABEL - 1] + "…"
        lead = f'<path class="lead" d="M{x + 7:.1f} {y:.1f}L{frame.end + 6:.1f} {label_y:.1f}"/>'
        mark = marker(index, frame.end + 14, label_y)
        labels[index] = lead + mark + svg_text(frame.end + 25, label_y + 4, shown, "name", anchor="start")
    return labels


def shift_into(heights: Sequence[float], gap: float, top: float, floor: float) -> list[float]:
    """Rising heights, a gap apart, moved into [top, floor] where they reach out of it.

    >>> within([-20.0, 0.0, 20.0], gap=20.0, top=0.0, floor=100.0)
    [0.0, 20.0, 40.0]
    """
    placed: list[float] = []
    for height in heights:
        placed.append(max(height, placed[-1] + gap if placed else top))
    for index in range(len(placed) - 1, -1, -1):
        placed[index] = min(placed[index], placed[index + 1] - gap if index + 1 < len(placed) else floor)
    return placed


def length_chart(view: Mapping[str, Any], systems: Sequence[str]) -> str:
    """BLEU against length with 95% intervals; under it n, and how long the training sentences are."""
    drawings = []
    histogram = HISTOGRAM + 54 if view.get("training") else 0
    for size, frame in enumerate(frames(systems, 320, 0)):
        below = 64.0 + 24 * _labels_overlap(view, _bin_width(view, frame)) + histogram
        drawings.append(_length_drawing(view, systems, frames(systems, 320, below)[size]))
    return responsive_chart(drawings[0], drawings[1], legend(systems, systems))


def _bin_width(view: Mapping[str, Any], frame: ChartFrame) -> float:
    """Pixels of a bin."""
    return (frame.end - frame.left) / max(MIN_BINS, len(view["bins"]))


def _labels_overlap(view: Mapping[str, Any], slot: float) -> bool:
    """Whether the bins' names would touch side by side."""
    return max(len(bin["label"]) for bin in view["bins"]) * 7.0 > slot


def _length_drawing(view: Mapping[str, Any], systems: Sequence[str], frame: ChartFrame) -> str:
    scores = {name: view["scores"].get(name) or [None] * len(view["bins"]) for name in systems}
    defined = [score for row in scores.values() for score in row if score and score.get("bleu") is not None]
    ceiling = ceiling_of([max(score["bleu"], (score.get("interval") or [0])[-1]) for score in defined])
    slot = _bin_width(view, frame)
    start = (frame.left + frame.end - slot * len(view["bins"])) / 2
    apart = min(BIN_OFFSET, MAX_SPREAD / max(1, len(systems) - 1)) * slot
    lines = []
    for index, name in enumerate(systems):
        shift = (index - (len(systems) - 1) / 2) * apart
        points = [
            _point(name, score, view, column, start + (column + 0.5) * slot + shift, frame, ceiling)
            for column, score in enumerate(scores[name])
            if score and score.get("bleu") is not None
        ]
        lines.append(ChartLine(index, name, points))
    return drawing(
        frame,
        view["title"],
        height_axis(frame, ceiling, "BLEU"),
        _bin_labels(view, frame, start, slot),
        _histogram(view, frame, start, slot) if view.get("training") else "",
        _max_length_line(view, frame, start, slot),
        draw_lines(frame, lines),
    )


def _point(
    name: str,
    score: Mapping[str, Any],
    view: Mapping[str, Any],
    column: int,
    x: float,
    frame: ChartFrame,
    ceiling: float,
) -> ChartPoint:
    bin = view["bins"][column]
    facts = [
        f"{name}: {bin['label']} {view['axis']}",
        f"BLEU {format_number(score['bleu'])} {format_interval(score.get('interval'))}".rstrip(),
        f"n = {bin['n']:,}" + (", descriptive only" if bin.get("descriptive") else ""),
        f"brevity penalty {format_number(score.get('brevity_penalty'), 3)}, "
        f"length ratio {format_number(score.get('length_ratio'), 3)}",
    ]
    seeds = [seed for seed in score.get("seeds") or [] if seed is not None]
    if len(seeds) > 1:
        facts.append(f"seeds: {', '.join(map(format_number, seeds))}")
    facts += [score["note"]] if score.get("note") else []
    ends = score.get("interval")
    return ChartPoint(
        x,
        frame.y(score["bleu"], ceiling),
        "\n".join(facts),
        (frame.y(ends[0], ceiling), frame.y(ends[1], ceiling)) if ends else None,
        bool(bin.get("descriptive")),
    )


def _bin_labels(view: Mapping[str, Any], frame: ChartFrame, start: float, slot: float) -> str:
    """The bins' names and sizes, on two levels where they would touch."""
    tight = _labels_overlap(view, slot)
    parts = []
    for column, bin in enumerate(view["bins"]):
        x, down = start + (column + 0.5) * slot, 12.0 * (tight and column % 2)
        parts.append(svg_text(x, frame.floor + 20 + down, bin["label"]))
        size = f"{bin['n']:,}" + ("*" if bin.get("descriptive") else "")
        count = f"n={size}" if slot > 60 else size
        parts.append(svg_text(x, frame.floor + 36 + 12 * tight + down, count, "tick soft"))
    return "".join(parts) + svg_text((frame.left + frame.end) / 2, frame.floor + 57 + 24 * tight, view["axis"], "axis")


def _histogram(view: Mapping[str, Any], frame: ChartFrame, start: float, slot: float) -> str:
    """Bars below the bins: the share of the training pairs that is as long."""
    floor, highest = frame.height - 20, max([*view["training"], 1e-9])
    parts = []
    for column, share in enumerate(view["training"]):
        tall = HISTOGRAM * share / highest
        x = start + (column + 0.14) * slot
        percent = f"{100 * share:.{0 if share >= 0.0995 or share == 0 else 1}f}%"
        parts.append(
            f'<g class="bar"><title>{escape(view["bins"][column]["label"])}: {percent} of the training pairs</title>'
            f'<rect x="{x:.1f}" y="{floor - tall:.1f}" width="{0.72 * slot:.1f}" height="{tall:.1f}"/></g>'
        )
        parts.append(svg_text(start + (column + 0.5) * slot, floor - tall - 4, percent, "tick soft"))
    parts.append(f'<path class="base" d="M{frame.left:g} {floor:g}H{frame.end:g}"/>')
    parts.append(svg_text((frame.left + frame.end) / 2, frame.height - 5, "share of the training pairs", "axis"))
    return "".join(parts)


def _max_length_line(view: Mapping[str, Any], frame: ChartFrame, start: float, slot: float) -> str:
    """A vertical line where training stopped, with its words above."""
    cap = view.get("cap")
    if not cap:
        return ""
    x = start + slot * position_on_bins(view["bins"], cap["at"])
    half = 3.4 * len(cap["label"])  # pixels
    label = svg_text(min(max(x, frame.left + half), frame.width - half), ABOVE, cap["label"], "cap-label")
    return f'<path class="cap" d="M{x:.1f} {ABOVE + 5:g}V{frame.floor:g}"/>{label}'


def training_chart(curves: Mapping[str, Sequence[Sequence[float]]], systems: Sequence[str]) -> str:
    """BLEU on the validation text against the target pieces seen."""
    drawn = {name: curves[name] for name in systems if curves.get(name)}
    wide, narrow = (_training_drawing(drawn, systems, frame) for frame in frames(list(drawn), 300, 50))
    return responsive_chart(wide, narrow, legend(systems, drawn))


def _training_drawing(curves: Mapping[str, Any], systems: Sequence[str], frame: ChartFrame) -> str:
    ceiling = ceiling_of([bleu for curve in curves.values() for _, bleu in curve])
    most = max(pieces for curve in curves.values() for pieces, _ in curve)
    unit, word = (1e6, "millions") if most >= 1e6 else (1e3, "thousands")
    scale = (frame.end - frame.left) / (max(most, 1) * 1.02)
    ticks = [
        svg_text(frame.left + value * unit * scale, frame.floor + 20, f"{value:g}")
        for value in axis_ticks(most / unit, 10 if frame.named else 5)
    ]
    lines = []
    for name, curve in curves.items():
        points = [
            ChartPoint(
                frame.left + pieces * scale,
                frame.y(bleu, ceiling),
                f"{name}\nBLEU {format_number(bleu)} on the validation text\nafter {pieces:,.0f} target pieces",
            )
            for pieces, bleu in curve
        ]
        lines.append(ChartLine(systems.index(name), name, points))
    title = f"target pieces seen in training, {word}"
    return drawing(
        frame,
        "BLEU on the validation text while training",
        height_axis(frame, ceiling, "BLEU"),
        "".join(ticks),
        svg_text((frame.left + frame.end) / 2, frame.floor + 41, title, "axis"),
        draw_lines(frame, lines),
    )
