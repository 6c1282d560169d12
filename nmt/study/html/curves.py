"""The page's two charts: BLEU by source length, and BLEU while training."""

from collections.abc import Mapping, Sequence
from typing import Any

from nmt.study.figure import place_on_bins
from nmt.study.html.chart import (
    ABOVE,
    Frame,
    Line,
    Point,
    ceiling_of,
    chart,
    draw_lines,
    drawing,
    frames,
    height_axis,
    steps,
    text,
)
from nmt.study.html.marks import legend
from nmt.study.html.text import bounds, escape, fixed

APART, SPREAD = 0.09, 0.6  # systems stand apart within a bin by APART of it, all of them within SPREAD of it
HISTOGRAM = 44.0  # pixels
FEWEST = 4  # bins that the width is made for, at least


def length_chart(view: Mapping[str, Any], systems: Sequence[str]) -> str:
    """BLEU against length with 95% intervals; under it n, and how long the training sentences are."""
    drawings = []
    for place, frame in enumerate(frames(systems, 320, 0)):
        below = 64.0 + 24 * _tight(view, _slot(view, frame)) + (HISTOGRAM + 54 if view.get("training") else 0)
        drawings.append(_length_drawing(view, systems, frames(systems, 320, below)[place]))
    return chart(drawings[0], drawings[1], legend(systems, systems))


def _slot(view: Mapping[str, Any], frame: Frame) -> float:
    """Pixels of a bin."""
    return (frame.end - frame.left) / max(FEWEST, len(view["bins"]))


def _tight(view: Mapping[str, Any], slot: float) -> bool:
    """Whether the bins' names would touch side by side."""
    return max(len(bin["label"]) for bin in view["bins"]) * 7.0 > slot


def _length_drawing(view: Mapping[str, Any], systems: Sequence[str], frame: Frame) -> str:
    scores = {name: view["scores"].get(name) or [None] * len(view["bins"]) for name in systems}
    known = [score for row in scores.values() for score in row if score and score.get("bleu") is not None]
    ceiling = ceiling_of([max(score["bleu"], (score.get("interval") or [0])[-1]) for score in known])
    slot = _slot(view, frame)
    start = (frame.left + frame.end - slot * len(view["bins"])) / 2
    apart = min(APART, SPREAD / max(1, len(systems) - 1)) * slot
    lines = []
    for index, name in enumerate(systems):
        shift = (index - (len(systems) - 1) / 2) * apart
        points = [
            _point(name, score, view, column, start + (column + 0.5) * slot + shift, frame, ceiling)
            for column, score in enumerate(scores[name])
            if score and score.get("bleu") is not None
        ]
        lines.append(Line(index, name, points))
    return drawing(
        frame,
        view["title"],
        height_axis(frame, ceiling, "BLEU"),
        _bins(view, frame, start, slot),
        _histogram(view, frame, start, slot) if view.get("training") else "",
        _cap(view, frame, start, slot),
        draw_lines(frame, lines),
    )


def _point(
    name: str, score: Mapping[str, Any], view: Mapping[str, Any], column: int, x: float, frame: Frame, ceiling: float
) -> Point:
    bin = view["bins"][column]
    facts = [
        f"{name}: {bin['label']} {view['axis']}",
        f"BLEU {fixed(score['bleu'])} {bounds(score.get('interval'))}".rstrip(),
        f"n = {bin['n']:,}" + (", descriptive only" if bin.get("descriptive") else ""),
        f"brevity penalty {fixed(score.get('brevity_penalty'), 3)}, length ratio {fixed(score.get('length_ratio'), 3)}",
    ]
    seeds = [seed for seed in score.get("seeds") or [] if seed is not None]
    if len(seeds) > 1:
        facts.append(f"seeds: {', '.join(map(fixed, seeds))}")
    facts += [score["note"]] if score.get("note") else []
    ends = score.get("interval")
    return Point(
        x,
        frame.y(score["bleu"], ceiling),
        "\n".join(facts),
        (frame.y(ends[0], ceiling), frame.y(ends[1], ceiling)) if ends else None,
        bool(bin.get("descriptive")),
    )


def _bins(view: Mapping[str, Any], frame: Frame, start: float, slot: float) -> str:
    """The bins' names and sizes, on two levels where they would touch."""
    tight = _tight(view, slot)
    parts = []
    for column, bin in enumerate(view["bins"]):
        x, down = start + (column + 0.5) * slot, 12.0 * (tight and column % 2)
        parts.append(text(x, frame.floor + 20 + down, bin["label"]))
        size = f"{bin['n']:,}" + ("*" if bin.get("descriptive") else "")
        count = f"n={size}" if slot > 60 else size
        parts.append(text(x, frame.floor + 36 + 12 * tight + down, count, "tick soft"))
    return "".join(parts) + text((frame.left + frame.end) / 2, frame.floor + 57 + 24 * tight, view["axis"], "axis")


def _histogram(view: Mapping[str, Any], frame: Frame, start: float, slot: float) -> str:
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
        parts.append(text(start + (column + 0.5) * slot, floor - tall - 4, percent, "tick soft"))
    parts.append(f'<path class="base" d="M{frame.left:g} {floor:g}H{frame.end:g}"/>')
    parts.append(text((frame.left + frame.end) / 2, frame.height - 5, "share of the training pairs", "axis"))
    return "".join(parts)


def _cap(view: Mapping[str, Any], frame: Frame, start: float, slot: float) -> str:
    """A vertical line where training stopped, with its words above."""
    cap = view.get("cap")
    if not cap:
        return ""
    x = start + slot * place_on_bins(view["bins"], cap["at"])
    half = 3.4 * len(cap["label"])  # pixels
    label = text(min(max(x, frame.left + half), frame.width - half), ABOVE, cap["label"], "cap-label")
    return f'<path class="cap" d="M{x:.1f} {ABOVE + 5:g}V{frame.floor:g}"/>{label}'


def training_chart(curves: Mapping[str, Sequence[Sequence[float]]], systems: Sequence[str]) -> str:
    """BLEU on the validation text against the target pieces seen."""
    drawn = {name: curves[name] for name in systems if curves.get(name)}
    wide, narrow = (_training_drawing(drawn, systems, frame) for frame in frames(list(drawn), 300, 50))
    return chart(wide, narrow, legend(systems, drawn))


def _training_drawing(curves: Mapping[str, Any], systems: Sequence[str], frame: Frame) -> str:
    ceiling = ceiling_of([bleu for curve in curves.values() for _, bleu in curve])
    most = max(pieces for curve in curves.values() for pieces, _ in curve)
    unit, word = (1e6, "millions") if most >= 1e6 else (1e3, "thousands")
    scale = (frame.end - frame.left) / (max(most, 1) * 1.02)
    ticks = [
        text(frame.left + value * unit * scale, frame.floor + 20, f"{value:g}")
        for value in steps(most / unit, 10 if frame.named else 5)
    ]
    lines = []
    for name, curve in curves.items():
        points = [
            Point(
                frame.left + pieces * scale,
                frame.y(bleu, ceiling),
                f"{name}\nBLEU {fixed(bleu)} on the validation text\nafter {pieces:,.0f} target pieces",
            )
            for pieces, bleu in curve
        ]
        lines.append(Line(systems.index(name), name, points))
    title = f"target pieces seen in training, {word}"
    return drawing(
        frame,
        "BLEU on the validation text while training",
        height_axis(frame, ceiling, "BLEU"),
        "".join(ticks),
        text((frame.left + frame.end) / 2, frame.floor + 41, title, "axis"),
        draw_lines(frame, lines),
    )
