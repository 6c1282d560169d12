"""Line charts as inline SVG: axes from zero, points that say their numbers, names at the ends of the lines."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from nmt.study.figure import spread_apart
from nmt.study.html.marks import colour_class, dash, marker
from nmt.study.html.text import escape

LONGEST_NAME = 22  # letters at the end of a line; the legend has the whole name
ABOVE = 12.0  # pixels: where words above the plot stand
TOP = 30.0  # pixels above the plot
DENSE = 30  # points: beyond it only the one that is looked at has a marker


@dataclass(frozen=True)
class Frame:
    """Pixels of a drawing and of the margins around its plot."""

    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float
    named: bool  # names stand at the ends of the lines; else a legend stands above

    @property
    def end(self) -> float:
        return self.width - self.right

    @property
    def floor(self) -> float:
        return self.height - self.bottom

    def y(self, value: float, ceiling: float) -> float:
        return self.floor - (self.floor - self.top) * value / ceiling


class Point(NamedTuple):
    x: float  # pixels
    y: float
    text: str  # what it says when it is looked at, one fact a line
    interval: tuple[float, float] | None = None  # y of its two ends
    hollow: bool = False


class Line(NamedTuple):
    place: int  # of the system, for colour and marker
    name: str
    points: list[Point]


def frames(names: Sequence[str], tall: float, below: float) -> tuple[Frame, Frame]:
    """The drawing for wide screens and the one for phones: a plot `tall` pixels high with `below` under it."""
    longest = min(LONGEST_NAME, max(map(len, names), default=0))
    tall = max(tall, 15.0 * len(names))
    wide = Frame(960, TOP + tall + below, 44, 48 + 8.0 * longest, TOP, below, True)
    return wide, Frame(360, TOP + tall + below, 34, 10, TOP, below, False)


def chart(wide: str, narrow: str, legend: str) -> str:
    """Two drawings of the same numbers, of which the style sheet shows the one that fits the screen."""
    return f'<div class="wide">{wide}</div><div class="narrow">{legend}{narrow}</div>'


def drawing(frame: Frame, label: str, *content: str) -> str:
    return (
        f'<svg class="chart" viewBox="0 0 {frame.width:g} {frame.height:g}" role="group" '
        f'aria-label="{escape(label)}">{"".join(content)}</svg>'
    )


def ceiling_of(values: Sequence[float]) -> float:
    """A little above the highest value."""
    return max([1.0, *values]) * 1.05


def steps(top: float, most: int = 6) -> list[float]:
    """Round numbers from 0 to top, at most `most` above zero.

    >>> steps(95.0)
    [0, 20, 40, 60, 80]
    """
    size = 10.0 ** math.floor(math.log10(top / most))
    step = next(size * factor for factor in (1, 2, 5, 10) if top / (size * factor) <= most)
    return [place * step if step < 1 else round(place * step) for place in range(math.floor(top / step) + 1)]


def height_axis(frame: Frame, ceiling: float, title: str) -> str:
    """Lines across at round values, and what they measure."""
    parts = [text(0, ABOVE, title, "axis", anchor="start")]
    for value in steps(ceiling):
        y = frame.y(value, ceiling)
        parts.append(f'<path class="grid" d="M{frame.left} {y:.1f}H{frame.end:g}"/>')
        parts.append(text(frame.left - 8, y + 4, f"{value:g}", "tick", anchor="end"))
    return "".join(parts)


def text(x: float, y: float, content: object, classes: str = "tick", anchor: str = "middle") -> str:
    return f'<text class="{classes}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(content)}</text>'


def draw_lines(frame: Frame, lines: Sequence[Line]) -> str:
    """Every line with its intervals, points and name."""
    labels = end_labels(frame, lines) if frame.named else {}
    return "".join(_line(line) + labels.get(line.place, "") + "</g>" for line in lines if line.points)


def _line(line: Line) -> str:
    path = "L".join(f"{point.x:.1f} {point.y:.1f}" for point in line.points)
    dense = " dense" if len(line.points) > DENSE else ""
    parts = [f'<g class="series{dense} {colour_class(line.place)}" data-s="{line.place}">']
    parts.append(f'<path class="line" d="M{path}" stroke-dasharray="{dash(line.place)}"/>')
    for point in line.points:
        if point.interval:
            low, high = point.interval
            parts.append(f'<path class="whisker" d="M{point.x:.1f} {low:.1f}V{high:.1f}"/>')
    for place, point in enumerate(line.points):
        parts.append(
            f'<g class="point" tabindex="0" role="img" data-b="{place}"><title>{escape(point.text)}</title>'
            f'<circle class="reach" cx="{point.x:.1f}" cy="{point.y:.1f}" r="11"/>'
            f"{marker(line.place, point.x, point.y, 'marker hollow' if point.hollow else 'marker')}</g>"
        )
    return "".join(parts)


def end_labels(frame: Frame, lines: Sequence[Line]) -> dict[int, str]:
    """Names beside the ends of the lines, pushed apart where lines meet, within the height of the drawing."""
    ends = sorted((line.points[-1].y, line.points[-1].x, line.place, line.name) for line in lines if line.points)
    gap = min(17.0, (frame.floor - frame.top) / max(1, len(ends)))
    heights = within(spread_apart([end[0] for end in ends], gap), gap, frame.top, frame.floor)
    labels = {}
    for place, (y, x, index, name) in zip(heights, ends, strict=True):
        shown = name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
        lead = f'<path class="lead" d="M{x + 7:.1f} {y:.1f}L{frame.end + 6:.1f} {place:.1f}"/>'
        mark = marker(index, frame.end + 14, place)
        labels[index] = lead + mark + text(frame.end + 25, place + 4, shown, "name", anchor="start")
    return labels


def within(heights: Sequence[float], gap: float, top: float, floor: float) -> list[float]:
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
