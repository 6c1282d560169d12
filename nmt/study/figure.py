"""The figure of the study: corpus BLEU by source length, one line a system, with intervals.

Drawn to survive print: colours that colour-blind readers tell apart (Okabe and Ito), another marker for each
system, labels at the ends of the lines, BLEU from zero, and the number of sentences behind each point.
matplotlib is imported when a figure is drawn, and never opens a window.
"""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nmt.study.results import DESCRIPTIVE, System

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#D55E00", "#0072B2", "#009E73", "#8C3F87", "#A0740A", "#2B8CBE", "#444444", "#999999")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "h")
INK, FAINT = "#222222", "#DDDDDD"
APART = 0.09  # how far the systems stand apart within a bin, so that their intervals do not hide each other
FEWEST = 5  # bins that the width is made for, at least
SUFFIXES = (".png", ".svg", ".pdf")
DPI, MOST_PIXELS = 200, 8_000  # a side


class Style(NamedTuple):
    colour: str
    marker: str
    shift: float  # in bins


def draw_bleu_by_length(systems: Sequence[System], stem: Path) -> Path:
    """Writes <stem>.png, .svg and .pdf; gives the PNG's path.

    A bin where a system has no BLEU is left out of its line; one of under 100 sentences has a hollow marker.
    """
    import matplotlib
    from matplotlib.figure import Figure

    columns = [column for column, row in enumerate(systems[0].bins) if row.n > 0]
    with matplotlib.rc_context(plot_settings()):
        figure = Figure(figsize=(7.6, 4.5))
        axes = figure.add_axes((0.085, 0.165, 0.745, 0.675))
        for index, system in enumerate(systems):
            _draw_system(axes, system, columns, style_of(index, len(systems)))
        _dress(axes, systems, columns)
        _label_lines(axes, systems, columns)
        _title(figure, systems)
        stem.parent.mkdir(parents=True, exist_ok=True)
        for suffix in SUFFIXES:
            save(figure, stem.with_suffix(suffix))
    return stem.with_suffix(".png")


def save(figure: "Figure", path: Path) -> None:
    """Writes the figure as path's suffix says, without a time stamp; 200 dpi, fewer where it is huge."""
    stamp: dict[str, dict[str, str | None]] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    dpi = min(DPI, MOST_PIXELS / max(figure.get_size_inches()))
    with warnings.catch_warnings():  # letters that no installed font has are drawn as boxes
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(path, dpi=dpi, metadata=stamp.get(path.suffix))


def plot_settings() -> Any:  # matplotlib types the keys as 300 literals
    return {
        "font.size": 9.5,
        "text.color": INK,
        "axes.labelcolor": INK,
        "axes.edgecolor": "#888888",
        "xtick.color": INK,
        "ytick.color": INK,
        "text.parse_math": False,  # a name is text, whatever signs it holds
        "svg.hashsalt": "nmt",  # the same figure, the same bytes
        "svg.fonttype": "none",
        "pdf.fonttype": 42,
    }


def style_of(index: int, count: int) -> Style:
    shift = (index - (count - 1) / 2) * APART
    return Style(COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)], shift)


def _draw_system(axes: "Axes", system: System, columns: Sequence[int], style: Style) -> None:
    points = [
        (place + style.shift, row.bleu, row)
        for place, row in enumerate(system.bins[column] for column in columns)
        if row.bleu is not None
    ]
    axes.plot([x for x, _, _ in points], [y for _, y, _ in points], color=style.colour, linewidth=1.6, zorder=3)
    for x, y, row in points:
        if row.interval is not None:
            axes.vlines(x, *row.interval, color=style.colour, linewidth=1.4, alpha=0.9, zorder=2)
        filled = row.n >= DESCRIPTIVE
        axes.plot(
            [x],
            [y],
            marker=style.marker,
            markersize=5.6,
            markerfacecolor=style.colour if filled else "white",
            markeredgecolor="white" if filled else style.colour,
            markeredgewidth=0.7 if filled else 1.4,
            linestyle="none",
            clip_on=False,
            zorder=4,
        )


def _dress(axes: "Axes", systems: Sequence[System], columns: Sequence[int]) -> None:
    """Axes: bins by name with n below, BLEU from zero, quiet lines."""
    bins = [systems[0].bins[column] for column in columns]
    axes.set_xticks(range(len(bins)), [f"{row.label}\nn={row.n:,}" for row in bins])
    spare = max(0.0, (FEWEST - len(bins)) / 2)  # one bin alone does not fill the page
    axes.set_xlim(-0.4 - spare, len(bins) - 0.6 + spare)
    axes.set_ylim(0, _ceiling(systems))
    axes.set_ylabel("BLEU")
    axes.set_xlabel("length of the source in words", labelpad=7)
    axes.grid(axis="y", color=FAINT, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(length=0, pad=5)


def _ceiling(systems: Sequence[System]) -> float:
    """A little above the highest point or interval."""
    tops = [
        max(row.bleu, row.interval[1] if row.interval else row.bleu)
        for system in systems
        for row in system.bins
        if row.bleu is not None
    ]
    return max(1.0, *tops) * 1.04 if tops else 100.0


def _label_lines(axes: "Axes", systems: Sequence[System], columns: Sequence[int]) -> None:
    """Names at the right end of the lines, pushed apart where the lines meet, with their markers."""
    ends = []
    for index, system in enumerate(systems):
        known = [row.bleu for row in (system.bins[column] for column in columns) if row.bleu is not None]
        if known:
            ends.append((known[-1], index))
    label_ends(axes, ends, [system.label for system in systems])


def label_ends(axes: "Axes", ends: Sequence[tuple[float, int]], labels: Sequence[str]) -> None:
    """Each line's name beside its last height: ends are (height, index of the label)."""
    ends = sorted(ends)
    heights = spread_apart([height for height, _ in ends], gap=axes.get_ylim()[1] * 0.058)
    beside = axes.get_yaxis_transform()  # across in parts of the axes, up in the data's unit
    for height, (_, index) in zip(heights, ends, strict=True):
        style = style_of(index, len(labels))
        line = axes.plot([1.018], [height], transform=beside, color=style.colour, clip_on=False)[0]
        line.set(marker=style.marker, markersize=6)
        label = axes.text(1.038, height, labels[index], transform=beside, color=style.colour)
        label.set(fontweight="bold", verticalalignment="center")


def spread_apart(heights: Sequence[float], gap: float) -> list[float]:
    """Rising heights moved as little as keeps neighbours a gap apart; groups stay centred where they were.

    >>> spread_apart([1.0, 1.0, 9.0], gap=2.0)
    [0.0, 2.0, 9.0]
    """
    groups: list[list[float]] = []
    for height in heights:
        groups.append([height])
        while len(groups) > 1 and _bottom(groups[-1], gap) - _top(groups[-2], gap) < gap:
            last = groups.pop()
            groups[-1] += last
    return [_bottom(group, gap) + place * gap for group in groups for place in range(len(group))]


def _bottom(group: Sequence[float], gap: float) -> float:
    return sum(group) / len(group) - gap * (len(group) - 1) / 2


def _top(group: Sequence[float], gap: float) -> float:
    return sum(group) / len(group) + gap * (len(group) - 1) / 2


def _title(figure: "Figure", systems: Sequence[System]) -> None:
    test = systems[0].results[0].evaluation["test"]
    languages = [test.get("source_language"), test.get("target_language")]
    pair = f" {'→'.join(map(str, languages))}" if all(languages) else ""
    seeds = max(len(system.results) for system in systems)
    bars = "95% bootstrap intervals" if seeds == 1 else f"mean of {seeds} seeds, their 95% intervals joined"
    details = f"{test['data']}{pair}, {test['sentences']:,} {test['name']} sentences · bars: {bars}"
    if any(0 < row.n < DESCRIPTIVE for system in systems for row in system.bins):
        details += f" · hollow: n < {DESCRIPTIVE}"
    figure.text(0.02, 0.94, "BLEU by source length", fontsize=13, fontweight="bold", va="center")
    figure.text(0.02, 0.882, details, fontsize=8.5, color="#555555", va="center")
