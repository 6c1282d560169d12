"""Attention of a sentence pair over words, drawn with target words down and source words across, dark where high."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmt.data.corpus import TestSet
from nmt.data.tokenizer import SPACE
from nmt.data.word_alignment import word_weights
from nmt.errors import UserError
from nmt.files import file_names
from nmt.study.figures import INK
from nmt.study.matplotlib_style import save_figure
from nmt.study.samples import example_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from nmt.decoding.translator import AttentionMap, Translator

Links = Sequence[tuple[int, int]]

BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
END = "</s>"
MAX_PIECES_PER_WORD = 5.0  # more on average: a script without spaces, where pieces say more than "words"

MAX_PANELS = 4  # layers drawn side by side; of a deeper model only the last is shown
BLUES = ("#FFFFFF", "#CFE1F2", "#6BAED6", "#2171B5", "#08306B")
GOLD = "#D55E00"
CELL, POINTS = 0.27, 9.0  # inches a word, size of its label
MAX_SIDE = 60.0  # inches: beyond it cells and labels shrink


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


class PanelLayout(NamedTuple):
    """Inches: the margins around a row of equal panels."""

    panel: tuple[float, float]  # width, height
    panels: int
    left: float
    top: float
    bottom: float
    gap: float = 0.3
    right: float = 0.3

    @property
    def size(self) -> tuple[float, float]:
        width = self.left + self.panels * self.panel[0] + (self.panels - 1) * self.gap + self.right
        return width, self.bottom + self.panel[1] + self.top

    def box(self, index: int) -> tuple[float, float, float, float]:
        """Left, bottom, width, height of a panel as parts of the whole."""
        width, height = self.size
        x = self.left + index * (self.panel[0] + self.gap)
        return x / width, self.bottom / height, self.panel[0] / width, self.panel[1] / height


def draw_attention(map: "AttentionMap", path: Path, title: str = "", gold: Links = (), note: str = "") -> Path:
    """Writes the picture of one sentence pair's attention to path (.png, .svg, .pdf); gives the path.

    map.weights are (L, H, T, S), over pieces. Pieces are merged into words where the text has words: weights
    are summed over a source word's pieces and averaged over a target word's. Heads are averaged; a layer is
    a panel. gold are links (source word, target word) from 0, outlined where the words of the picture are the
    words they count. title is drawn above, note below.
    """
    import matplotlib
    from matplotlib.figure import Figure

    merged = merge_pieces(map.source_pieces, map.target_pieces, np.asarray(map.weights, dtype=np.float64))
    panels = layer_panels(merged.weights)
    if any(source >= len(merged.source) or target >= len(merged.target) for source, target in gold):
        gold = ()  # the links count other words
    cell = min(CELL, MAX_SIDE / max(len(merged.source) * len(panels), len(merged.target)))
    layout = _panel_layout(merged, len(panels), cell, bool(title))
    points = POINTS * cell / CELL
    with matplotlib.rc_context(
        {"font.size": points, "font.family": _fonts(), "text.parse_math": False, "svg.hashsalt": "nmt"}
    ):
        figure = Figure(figsize=layout.size)
        for index, panel in enumerate(panels):
            axes = figure.add_axes(layout.box(index))
            _draw_panel(axes, panel.weights, gold)
            _label(axes, merged.source, merged.target if index == 0 else [""] * len(merged.target))
            if len(panels) > 1:
                axes.set_xlabel(panel.title, labelpad=6, fontsize=POINTS)
        _caption(figure, title, panels, bool(gold), note)
        path.parent.mkdir(parents=True, exist_ok=True)
        save_figure(figure, path)
    return path


def _panel_layout(merged: WordMap, panels: int, cell: float, titled: bool) -> PanelLayout:
    letter = 0.085 * cell / CELL  # inches, rotated or not
    return PanelLayout(
        panel=(max(1.6, len(merged.source) * cell), max(0.6, len(merged.target) * cell)),
        panels=panels,
        left=0.3 + letter * _longest(merged.target),
        top=0.2 + letter * _longest(merged.source) + (0.3 if titled else 0.0),
        bottom=0.45 + (0.25 if panels > 1 else 0.0),
    )


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


def _draw_panel(axes: "Axes", weights: NDArray[np.float64], gold: Links) -> None:
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import Rectangle

    rows, columns = weights.shape
    colours = LinearSegmentedColormap.from_list("attention", BLUES)
    axes.imshow(weights, cmap=colours, vmin=0.0, vmax=1.0, aspect="auto", interpolation="nearest")
    axes.set_xticks(np.arange(-0.5, columns), minor=True)
    axes.set_yticks(np.arange(-0.5, rows), minor=True)
    axes.grid(which="minor", color="#E8E8E8", linewidth=0.6)
    axes.tick_params(which="both", length=0)
    axes.spines[:].set_color("#BBBBBB")
    for source, target in gold:
        frame = Rectangle((source - 0.44, target - 0.44), 0.88, 0.88, fill=False, edgecolor=GOLD, linewidth=1.3)
        axes.add_patch(frame)


def _label(axes: "Axes", source: Sequence[str], target: Sequence[str]) -> None:
    """Source words above, target words to the left."""
    axes.xaxis.tick_top()
    axes.set_xticks(range(len(source)), source, rotation=90, va="bottom")
    axes.set_yticks(range(len(target)), target)


def _caption(figure: "Figure", title: str, panels: Sequence[Panel], gold: bool, note: str) -> None:
    width, height = figure.get_size_inches()
    x = 0.12 / width
    if title:
        figure.text(x, 1 - 0.22 / height, title, fontsize=11, fontweight="bold", color=INK, va="center")
    parts = [note] if note else []
    if len(panels) == 1 and panels[0].title:
        parts.append(panels[0].title)
    parts.append("white 0, dark blue 1")
    if gold:
        parts.append("outlined: true alignment")
    text = "; ".join(parts)
    figure.text(x, 0.18 / height, text, fontsize=8, color="#555555", va="center")


def _longest(words: Sequence[str]) -> int:
    return min(24, max(map(len, words), default=1))


def _fonts() -> list[str]:
    """matplotlib's own font, then whichever installed ones reach beyond European scripts."""
    from matplotlib import font_manager

    preferred = ("Noto Sans CJK JP", "Noto Sans CJK SC", "Noto Sans", "Arial Unicode MS", "Microsoft YaHei")
    installed = set(font_manager.get_font_names())
    return ["DejaVu Sans", *(name for name in preferred if name in installed)]


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
