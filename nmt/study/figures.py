"""The figures of the study: corpus BLEU by source length with intervals, and learning curves, one line a system.

Drawn to survive print: colours that colour-blind readers tell apart (Okabe and Ito), another marker for each
system, labels at the ends of the lines, BLEU from zero, and the number of sentences behind each point.
matplotlib is imported when a figure is drawn, and never opens a window.
"""

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nmt.evaluation.by_length import MIN_SENTENCES
from nmt.files import write_whole
from nmt.study.results import System, read_metrics

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Report = dict[str, Any]  # the comparison as plain values, or a part of it
Curve = list[tuple[int, float]]  # (target pieces, validation BLEU)

COLOURS = ("#D55E00", "#0072B2", "#009E73", "#8C3F87", "#A0740A", "#2B8CBE", "#444444", "#999999")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "h")
INK, FAINT = "#222222", "#DDDDDD"
SYSTEM_OFFSET = 0.09  # of a bin, between systems, so that their intervals do not hide each other
MIN_BINS = 5  # bins that the width is made for, at least
SUFFIXES = (".png", ".svg", ".pdf")
DPI, MAX_PIXELS = 200, 8_000  # a side


class Style(NamedTuple):
    colour: str
    marker: str
    shift: float  # in bins


def draw_view(report: Report, view: Report, stem: Path) -> Path:
    """Writes <stem>.png, .svg and .pdf: one cut of the test set; gives the PNG's path.

    A bin where a system has no BLEU is left out of its line; one of under 100 sentences has a hollow marker. With
    several seeds a point is their mean, its bar the bootstrap interval of that mean, and each seed a faint dash. Below
    it is a histogram of training lengths, where they are known.
    """
    import matplotlib
    from matplotlib.figure import Figure

    labels = list(view["scores"])
    with matplotlib.rc_context(plot_settings()):
        figure = Figure(figsize=(7.6, 4.9))
        axes = figure.add_axes((0.085, 0.245, 0.745, 0.605))
        for index, label in enumerate(labels):
            _draw_system(axes, view["scores"][label], view["bins"], style_of(index, len(labels)))
        _style_axes(axes, view)
        _label_lines(axes, view, labels)
        _draw_training(figure, axes, view)
        _title(figure, report, view)
        stem.parent.mkdir(parents=True, exist_ok=True)
        for suffix in SUFFIXES:
            save_figure(figure, stem.with_suffix(suffix))
    return stem.with_suffix(".png")


def save_figure(figure: "Figure", path: Path) -> None:
    """Writes the figure whole, as path's suffix says, without a time stamp; 200 dpi, fewer where it is huge."""
    stamp: dict[str, dict[str, str | None]] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    dpi = min(DPI, MAX_PIXELS / max(figure.get_size_inches()))
    with warnings.catch_warnings():  # letters that no installed font has are drawn as boxes
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        kind, metadata = path.suffix[1:], stamp.get(path.suffix)
        write_whole(path, lambda to: figure.savefig(to, format=kind, dpi=dpi, metadata=metadata))


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
    shift = (index - (count - 1) / 2) * min(SYSTEM_OFFSET, 0.8 / count)
    return Style(COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)], shift)


def _draw_system(axes: "Axes", scores: Sequence[Report], bins: Sequence[Report], style: Style) -> None:
    points = [(x + style.shift, row, length_bin) for x, (row, length_bin) in enumerate(zip(scores, bins, strict=True))]
    points = [(x, row, length_bin) for x, row, length_bin in points if row["bleu"] is not None]
    heights = [row["bleu"] for _, row, _ in points]
    axes.plot([x for x, _, _ in points], heights, color=style.colour, linewidth=1.6, zorder=3)
    for x, row, length_bin in points:
        if row["interval"] is not None:
            axes.vlines(x, *row["interval"], color=style.colour, linewidth=1.4, alpha=0.9, zorder=2)
        if len(row["seeds"]) > 1:
            axes.hlines(row["seeds"], x - 0.05, x + 0.05, color=style.colour, linewidth=0.8, alpha=0.6, zorder=2)
        filled = not length_bin["descriptive"]
        axes.plot(
            [x],
            [row["bleu"]],
            marker=style.marker,
            markersize=5.6,
            markerfacecolor=style.colour if filled else "white",
            markeredgecolor="white" if filled else style.colour,
            markeredgewidth=0.7 if filled else 1.4,
            linestyle="none",
            clip_on=False,
            zorder=4,
        )


def _style_axes(axes: "Axes", view: Report) -> None:
    """Axes: bins by name with n below, BLEU from zero, quiet lines."""
    bins = view["bins"]
    axes.set_xticks(range(len(bins)), [f"{length_bin['label']}\nn={length_bin['n']:,}" for length_bin in bins])
    spare = max(0.0, (MIN_BINS - len(bins)) / 2)  # one bin alone does not fill the page
    axes.set_xlim(-0.5 - spare, len(bins) - 0.5 + spare)
    axes.set_ylim(0, _ceiling(view))
    axes.set_ylabel("BLEU")
    axes.grid(axis="y", color=FAINT, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(length=0, pad=5)


def _ceiling(view: Report) -> float:
    """A little above the highest point or interval."""
    tops = [max([row["bleu"], *(row["interval"] or [])]) for row in _defined_scores(view)]
    return max(1.0, *tops) * 1.04 if tops else 100.0


def _defined_scores(view: Report) -> list[Report]:
    return [row for rows in view["scores"].values() for row in rows if row["bleu"] is not None]


def bin_centre_position(length: float, bins: Sequence[Report]) -> float:
    """The position of a length on an axis of bins with centres 0, 1, 2, ...; one without an end is 20 wide."""
    return position_on_bins(bins, length, 20) - 0.5


def position_on_bins(bins: Sequence[Mapping[str, Any]], at: float, unbounded: float | None = None) -> float:
    """A length's position on an axis where every bin is one wide: 1.5 is the middle of the second.

    A bin without an upper end counts as `unbounded` wide, or as wide as the one before it.
    """
    width = 10.0
    for column, bin in enumerate(bins):
        width = (unbounded or width) if bin["high"] is None else bin["high"] - bin["low"]
        if at < bin["low"] + width:
            return column + max(0.0, (at - bin["low"]) / width)
    return float(len(bins))


def _draw_training(figure: "Figure", axes: "Axes", view: Report) -> None:
    """The share of the training text in each bin, below the axis, and a line where training ends."""
    if view["cap"] is not None:
        x = bin_centre_position(view["cap"]["at"], view["bins"])
        axes.axvline(x, color="#777777", linewidth=1.0, linestyle=(0, (4, 3)), zorder=1)
        right = x < len(view["bins"]) / 2 - 0.5  # where there is room for the words
        words = axes.text(
            x + (0.05 if right else -0.05), axes.get_ylim()[1], view["cap"]["label"], va="top", fontsize=8
        )
        words.set(horizontalalignment="left" if right else "right", color="#555555")
    if view["training"] is None:
        axes.set_xlabel(f"length in {view['axis']}", labelpad=7)
        return
    below = figure.add_axes((0.085, 0.075, 0.745, 0.075))
    below.bar(range(len(view["bins"])), view["training"], width=0.92, color="#BBBBBB")
    below.set_xlim(axes.get_xlim())
    below.set_ylim(0, max(view["training"], default=0) * 1.05 or 1)
    below.set_yticks([])
    below.set_xticks([])
    below.spines[["top", "right", "left"]].set_visible(False)
    for x, share in enumerate(view["training"]):
        below.text(
            x, 0, f"{share:.0%}" if share >= 0.005 or not share else "<1%", ha="center", va="bottom", fontsize=7.5
        )
    below.set_xlabel(f"length in {view['axis']}; grey: share of the training text", labelpad=5)


def _label_lines(axes: "Axes", view: Report, labels: Sequence[str]) -> None:
    """Names at the right end of the lines, pushed apart where the lines meet, with their markers."""
    ends = []
    for index, label in enumerate(labels):
        scores = [row["bleu"] for row in view["scores"][label] if row["bleu"] is not None]
        if scores:
            ends.append((scores[-1], index))
    label_ends(axes, ends, labels)


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
    return [_bottom(group, gap) + rank * gap for group in groups for rank in range(len(group))]


def _bottom(group: Sequence[float], gap: float) -> float:
    return sum(group) / len(group) - gap * (len(group) - 1) / 2


def _top(group: Sequence[float], gap: float) -> float:
    return sum(group) / len(group) + gap * (len(group) - 1) / 2


def _title(figure: "Figure", report: Report, view: Report) -> None:
    test = report["test"]
    languages = [test["source_language"], test["target_language"]]
    pair = f" {'→'.join(map(str, languages))}" if all(languages) else ""
    seeds = max(len(system["runs"]) for system in report["systems"])
    bars = "95% bootstrap intervals" if seeds == 1 else f"95% bootstrap intervals of the mean of {seeds} seeds (dashes)"
    details = f"{test['data']}{pair}, {test['sentences']:,} {test['name']} sentences · bars: {bars}"
    if any(length_bin["descriptive"] for length_bin in view["bins"]):
        details += f" · hollow: n < {MIN_SENTENCES}"
    figure.text(0.02, 0.945, view["title"], fontsize=13, fontweight="bold", va="center")
    figure.text(0.02, 0.893, details, fontsize=8.5, color="#555555", va="center")


def validation_curves(systems: Sequence[System]) -> dict[str, Curve]:
    """Each system's curve (its first run's), where the run directory has one."""
    curves = {system.label: read_validation_curve(system.results[0].run_dir) for system in systems}
    return {label: curve for label, curve in curves.items() if curve}


def read_validation_curve(run_dir: Path | None) -> Curve:
    """The validations of a run; none where there is no run directory, or nothing in it."""
    lines = read_metrics(run_dir) if run_dir else []
    return [(line["target_pieces"], line["valid/bleu"]) for line in lines if line.get("valid/bleu") is not None]


def draw_validation_curves(curves: Mapping[str, Curve], stem: Path) -> Path:
    """Writes <stem>.png, .svg and .pdf; gives the PNG's path."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(plot_settings()):
        figure = Figure(figsize=(7.6, 4.0))
        axes = figure.add_axes((0.085, 0.14, 0.745, 0.73))
        for index, curve in enumerate(curves.values()):
            style = style_of(index, len(curves))
            pieces, bleu = zip(*curve, strict=True)
            axes.plot([n / 1e6 for n in pieces], bleu, color=style.colour, marker=style.marker, markersize=4)
        axes.set_ylim(bottom=0)
        axes.set_xlim(left=0)
        axes.set_xlabel("target pieces seen in training, millions")
        axes.set_ylabel("BLEU on the validation text, greedy")
        axes.grid(axis="y", color=FAINT, linewidth=0.8)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(length=0, pad=5)
        label_ends(axes, [(curve[-1][1], index) for index, curve in enumerate(curves.values())], list(curves))
        figure.text(0.02, 0.94, "Learning curves", fontsize=13, fontweight="bold", va="center")
        stem.parent.mkdir(parents=True, exist_ok=True)
        for suffix in SUFFIXES:
            save_figure(figure, stem.with_suffix(suffix))
    return stem.with_suffix(".png")
