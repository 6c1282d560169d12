"""Attention of a sentence pair over words, drawn with target words down and source words across, dark where high."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import altair as alt
import numpy as np
from numpy.typing import NDArray

from nmt.data.corpus import TestSet
from nmt.data.tokenizer import SPACE
from nmt.data.word_alignment import word_weights
from nmt.errors import UserError
from nmt.files import file_names
from nmt.progress import say
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
    texts, shares = [], []
    for pieces in (source, target):
        groups = word_groups(pieces)
        texts.append([piece_text([pieces[index] for index in group]) for group in groups])
        # (pieces, words) 1 where a piece is part of a word
        shares.append(np.repeat(np.eye(len(groups)), [len(group) for group in groups], axis=0))
    return WordMap(texts[0], texts[1], word_weights(weights, *shares))


def word_groups(pieces: Sequence[str]) -> list[list[int]]:
    """Indices of the pieces of each word; each piece alone where the text is not written in words."""
    groups: list[list[int]] = []
    for index, piece in enumerate(pieces):
        if not groups or piece.startswith(SPACE) or piece == END:
            groups.append([index])
        else:
            groups[-1].append(index)
    count = sum(piece != END for piece in pieces)
    if count > MAX_PIECES_PER_WORD * sum(pieces[group[0]] != END for group in groups):
        return [[index] for index in range(len(pieces))]
    return groups


def piece_text(pieces: Sequence[str]) -> str:
    """Pieces as readable text: bytes decoded, space marks removed; a middle dot where nothing is visible."""
    spelled = (bytes([int(byte[1], 16)]) if (byte := BYTE.fullmatch(piece)) else piece.encode() for piece in pieces)
    text = b"".join(spelled).decode("utf-8", errors="replace").replace(SPACE, " ").strip()
    return "".join(letter if letter.isprintable() else "�" for letter in text) or "·"


class Panel(NamedTuple):
    title: str
    weights: NDArray[np.float64]  # (T, S)


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


def draw_attention(map: "AttentionMap", path: Path, title: str = "", gold: Links = (), note: str = "") -> Path:
    """Writes the picture of one sentence pair's attention to path (.png, .svg, .pdf); gives the path.

    map.weights are (L, H, T, S), over pieces. Pieces are merged into words where the text has words: weights
    are summed over a source word's pieces and averaged over a target word's. Heads are averaged; a layer is
    a panel. gold are links (source word, target word) from 0, outlined where the words of the picture are the
    words they count. title is drawn above, note below.
    """
    merged = merge_pieces(map.source_pieces, map.target_pieces, np.asarray(map.weights, dtype=np.float64))
    panels = layer_panels(merged.weights)
    if any(source >= len(merged.source) or target >= len(merged.target) for source, target in gold):
        gold = ()  # the links count other words
    single = panels[0].title if len(panels) == 1 else ""
    parts = [note, single, "white 0, dark blue 1", "outlined: true alignment" * bool(gold)]
    head = alt.Title(title, subtitle="; ".join(filter(None, parts)), anchor="start", color=INK, subtitleColor=SOFT)
    charts = [_panel_chart(merged, panels, index, gold) for index in range(len(panels))]
    chart = alt.hconcat(*charts, spacing=14).properties(title=head, background=PAPER, padding=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    save_chart(chart.configure(font=FONT).configure_view(stroke="#BBBBBB"), path)
    return path


def _panel_chart(map: WordMap, panels: Sequence[Panel], index: int, gold: Links) -> Chart:
    """Source words above, target words to the left of the first panel."""
    panel = panels[index]
    cell = min(CELL, MAX_SIDE / max(len(map.source) * len(panels), len(map.target)))

    def axis(words: list[str], orient: Any, angle: int, shown: bool) -> alt.Axis:
        labels = f"{json.dumps(words, ensure_ascii=False)}[datum.value]"
        return alt.Axis(orient=orient, labelExpr=labels, labelAngle=angle, labels=shown, ticks=False, domain=False,
                        labelLimit=150, labelFontSize=max(1.0, POINTS * cell / CELL), labelColor=INK, title=None,
                        labelOverlap=False)  # fmt: skip

    rows = [{"source": s, "target": t, "weight": round(float(w), 4)} for (t, s), w in np.ndenumerate(panel.weights)]
    x = alt.X("source:O", axis=axis(map.source, "top", -90, True))
    y = alt.Y("target:O", axis=axis(map.target, "left", 0, index == 0))
    colour = alt.Color("weight:Q", scale=alt.Scale(domain=[0, 1], range=list(BLUES), interpolate="rgb"), legend=None)
    cells = alt.Chart(alt.InlineData(rows)).mark_rect(stroke="#E8E8E8", strokeWidth=0.6)
    layers = [cells.encode(x=x, y=y, color=colour)]
    if gold:
        links = [{"source": source, "target": target} for source, target in gold]
        frames = alt.Chart(alt.InlineData(links)).mark_rect(fill=None, stroke=GOLD, strokeWidth=1.6)
        layers.append(frames.encode(x=x, y=y))
    title = panel.title if len(panels) > 1 else ""
    head = alt.Title(title, orient="bottom", fontSize=10, fontWeight="normal", color=INK)
    return alt.layer(*layers).properties(width=alt.Step(cell), height=alt.Step(cell), title=head)


def draw_example_attention(
    translators: Sequence[tuple[str, "Translator"]], test: TestSet, sentence: str | None, folder: Path
) -> list[tuple[str, str]]:
    """attention-<system>.png for each system with attention, on the user's sentence or one of the test set.

    Gives (system, file name in the folder). A system whose model cannot take the sentence has none, as a note says.
    """
    example, pictures = example_of(test, sentence), []
    for (label, translator), name in zip(translators, file_names([label for label, _ in translators]), strict=True):
        try:
            map = translator.attention(example.source, example.reference) if example else None
        except UserError as error:
            say(f"note: no attention picture of {label}: {error}")
            continue
        if example and map is not None:
            target = "its own translation" if example.reference is None else "the reference"
            picture = folder / f"attention-{name}.png"
            draw_attention(map, picture, title=label, gold=example.gold, note=f"target: {target}")
            pictures.append((label, picture.name))
    return pictures
