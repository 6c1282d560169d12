"""Attention of a sentence pair over words, drawn with target words down and source words across, dark where high."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmt.data.corpus import TestSet
from nmt.data.tokenizer import SPACE
from nmt.data.word_alignment import word_weights
from nmt.errors import UserError
from nmt.files import file_names
from nmt.study.figures import FONT, INK, PAPER, SOFT, Chart, save_chart
from nmt.study.samples import example_of

if TYPE_CHECKING:
    from nmt.decoding.translator import AttentionMap, Translator

Links = Sequence[tuple[int, int]]

BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
END = "</s>"
MAX_PIECES_PER_WORD = 5.0  # more on average: a script without spaces, where pieces say more than "words"

MAX_PANELS = 4  # layers drawn side by side; of a deeper model only the last is shown
BLUES = ("#FFFFFF", "#CFE1F2", "#6BAED6", "#2171B5", "#08306B")
GOLD = "#D55E00"
CELL, POINTS = 24.0, 11.0  # pixels of a word, size of its label
MAX_SIDE = 3600.0  # pixels, of which a PNG has two for each: beyond it cells and labels shrink


class WordMap(NamedTuple):
    """Attention with the labels of its axes."""

    source: list[str]
    target: list[str]
    weights: NDArray[np.float64]  # (L, H, T, S)


def merge_pieces(source: Sequence[str], target: Sequence[str], weights: NDArray[np.float64]) -> WordMap:
    """Attention over pieces (L, H, T, S) -> over words, on each side that is written in words.

    Weights are summed over the pieces of a source word and averaged over those of a target word, so that each row
    keeps its sum.
    """
    source_groups, target_groups = word_groups(source), word_groups(target)
    return WordMap(
        [piece_text([source[index] for index in group]) for group in source_groups],
        [piece_text([target[index] for index in group]) for group in target_groups],
        word_weights(weights, _shares(source_groups), _shares(target_groups)),
    )


def _shares(groups: Sequence[Sequence[int]]) -> NDArray[np.float64]:
    """(pieces, words) 1 where a piece is part of a word."""
    return np.repeat(np.eye(len(groups)), [len(group) for group in groups], axis=0)


def word_groups(pieces: Sequence[str]) -> list[list[int]]:
    """Indices of the pieces of each word; each piece alone where the text is not written in words."""
    groups: list[list[int]] = []
    for index, piece in enumerate(pieces):
        if not groups or piece.startswith(SPACE) or piece == END:
            groups.append([index])
        else:
            groups[-1].append(index)
    count = sum(piece != END for piece in pieces)
    words = sum(pieces[group[0]] != END for group in groups)
    if words and count / words > MAX_PIECES_PER_WORD:
        return [[index] for index in range(len(pieces))]
    return groups


def piece_text(pieces: Sequence[str]) -> str:
    """Pieces as readable text: bytes decoded, space marks removed; a middle dot where nothing is visible."""
    data = b"".join(_bytes(piece) for piece in pieces)
    text = data.decode("utf-8", errors="replace").replace(SPACE, " ").strip()
    return "".join(letter if letter.isprintable() else "�" for letter in text) or "·"


def _bytes(piece: str) -> bytes:
    byte = BYTE.fullmatch(piece)
    return bytes([int(byte[1], 16)]) if byte else piece.encode("utf-8")


class Panel(NamedTuple):
    title: str
    weights: NDArray[np.float64]  # (T, S)


def draw_attention(map: "AttentionMap", path: Path, title: str = "", gold: Links = (), note: str = "") -> Path:
    """Writes the picture of one sentence pair's attention to path (.png, .svg, .pdf); gives the path.

    map.weights are (L, H, T, S), over pieces. Pieces are merged into words where the text has words: weights
    are summed over a source word's pieces and averaged over a target word's. Heads are averaged; a layer is
    a panel. gold are links (source word, target word) from 0, outlined where the words of the picture are the
    words they count. title is drawn above, note below.
    """
    import altair as alt

    merged = merge_pieces(map.source_pieces, map.target_pieces, np.asarray(map.weights, dtype=np.float64))
    panels = layer_panels(merged.weights)
    if any(source >= len(merged.source) or target >= len(merged.target) for source, target in gold):
        gold = ()  # the links count other words
    parts = [
        note,
        panels[0].title if len(panels) == 1 else "",
        "white 0, dark blue 1",
        "outlined: true alignment" * bool(gold),
    ]
    head = alt.Title(title, subtitle="; ".join(filter(None, parts)), anchor="start", color=INK, subtitleColor=SOFT)
    charts = [_panel(merged, panel, gold, index, len(panels)) for index, panel in enumerate(panels)]
    chart = alt.hconcat(*charts, spacing=14).properties(title=head, background=PAPER, padding=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    save_chart(chart.configure(font=FONT).configure_view(stroke="#BBBBBB"), path)
    return path


def _panel(map: WordMap, panel: Panel, gold: Links, index: int, panels: int) -> Chart:
    """Source words above, target words to the left of the first panel."""
    import altair as alt

    def axis(words: Sequence[str], orient: Any, shown: bool = True) -> Any:
        names = json.dumps(words, ensure_ascii=False)
        angle = -90 if orient == "top" else 0
        return alt.Axis(orient=orient, labelExpr=f"{names}[datum.value]", labelAngle=angle, labels=shown, ticks=False,
                        domain=False, labelLimit=150, labelFontSize=points, labelColor=INK, title=None,
                        labelOverlap=False)  # fmt: skip

    cell = min(CELL, MAX_SIDE / max(len(map.source) * panels, len(map.target)))
    points = max(1.0, POINTS * cell / CELL)
    rows = [
        {"source": s, "target": t, "weight": round(float(weight), 4)}
        for t, weights in enumerate(panel.weights)
        for s, weight in enumerate(weights)
    ]
    x = alt.X("source:O", axis=axis(map.source, "top"))
    y = alt.Y("target:O", axis=axis(map.target, "left", index == 0))
    colour = alt.Color("weight:Q", scale=alt.Scale(domain=[0, 1], range=list(BLUES), interpolate="rgb"), legend=None)
    layers = [
        alt.Chart(alt.InlineData(rows)).mark_rect(stroke="#E8E8E8", strokeWidth=0.6).encode(x=x, y=y, color=colour)
    ]
    if gold:
        links = [{"source": source, "target": target} for source, target in gold]
        frame = alt.Chart(alt.InlineData(links)).mark_rect(fill=None, stroke=GOLD, strokeWidth=1.6)
        layers.append(frame.encode(x=x, y=y))
    head = alt.Title(panel.title if panels > 1 else "", orient="bottom", fontSize=10, fontWeight="normal", color=INK)
    return alt.layer(*layers).properties(width=alt.Step(cell), height=alt.Step(cell), title=head)


def layer_panels(weights: NDArray[np.float64]) -> list[Panel]:
    """(L, H, T, S) -> one panel a layer, heads averaged; of more than four layers only the last."""
    layers, heads = weights.shape[:2]
    mean = weights.mean(axis=1)  # (L, T, S)
    over = f", mean of {heads} heads" if heads > 1 else ""
    if layers == 1:
        return [Panel(over.removeprefix(", "), mean[0])]
    if layers > MAX_PANELS:
        return [Panel(f"last of {layers} layers{over}", mean[-1])]
    return [Panel(f"layer {layer + 1}{over}", mean[layer]) for layer in range(layers)]


class AttentionPictures(NamedTuple):
    """The pictures of the systems that have one, and why others have none."""

    files: tuple[tuple[str, str], ...] = ()  # (system, file name in the folder)
    notes: tuple[str, ...] = ()


def draw_example_attention(
    translators: Sequence[tuple[str, "Translator"]], test: TestSet, sentence: str | None, folder: Path
) -> AttentionPictures:
    """attention-<system>.png for each system with attention, on the user's sentence or one of the test set.

    A system whose model cannot take the sentence gets a note.
    """
    example = example_of(test, sentence)
    if not translators or example is None:
        return AttentionPictures()
    target = "its own translation" if example.reference is None else "the reference"
    files, notes = [], []
    names = file_names([label for label, _ in translators])
    for (label, translator), name in zip(translators, names, strict=True):
        try:
            map = translator.attention(example.source, example.reference)
        except UserError as error:
            notes.append(f"no attention picture of {label}: {error}")
            continue
        if map is not None:
            picture = folder / f"attention-{name}.png"
            draw_attention(map, picture, title=label, gold=example.gold, note=f"target: {target}")
            files.append((label, picture.name))
    return AttentionPictures(tuple(files), tuple(notes))
