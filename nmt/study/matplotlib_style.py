"""The look of the pictures that matplotlib draws: attention maps and benchmarks. It is imported when one is drawn."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nmt.files import write_whole
from nmt.study.figures import COLOURS, INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "h")
DPI, MAX_PIXELS = 200, 8_000  # a side


class Style(NamedTuple):
    colour: str
    marker: str


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


def style_of(index: int) -> Style:
    return Style(COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)])
