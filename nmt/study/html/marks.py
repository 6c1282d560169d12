"""What tells the systems apart: colour, marker, and from the ninth on another marker and the dash of the line."""

from collections.abc import Collection, Sequence

from nmt.study.figure import COLOURS
from nmt.study.html.text import escape

LIGHTER = ("#FF8F45", "#5FB4F2", "#3ECFA3", "#D78FD2", "#DDB04A", "#86CBEB", "#C4C9CF", "#8A9199")  # on dark paper
DASHES = ("none", "7 3", "2 3")
MARKERS = (  # around 0, 0, in the order of nmt.study.figure.MARKERS
    "M-4.4 0a4.4 4.4 0 1 0 8.8 0a4.4 4.4 0 1 0-8.8 0z",
    "M-4-4h8v8h-8z",
    "M0-5.2L5 3.8H-5z",
    "M0-5.5L5.5 0L0 5.5L-5.5 0z",
    "M0 5.2L5-3.8H-5z",
    "M-1.8-5.2h3.6v3.4h3.4v3.6h-3.4v3.4h-3.6v-3.4h-3.4v-3.6h3.4z",
    "M-5.2-2.8L-2.8-5.2L0-2.4L2.8-5.2L5.2-2.8L2.4 0L5.2 2.8L2.8 5.2L0 2.4L-2.8 5.2L-5.2 2.8L-2.4 0z",
    "M0-5.2L4.6-2.6V2.6L0 5.2L-4.6 2.6V-2.6z",
)


def colour_rules() -> str:
    """The palette as CSS variables, light and dark, and a class for each colour."""
    light, dark = (
        "".join(f"--c{index}:{colour};" for index, colour in enumerate(palette)) for palette in (COLOURS, LIGHTER)
    )
    classes = "".join(f".c{index}{{--c:var(--c{index})}}" for index in range(len(COLOURS)))
    return f":root{{{light}}}@media (prefers-color-scheme:dark){{:root{{{dark}}}}}{classes}"


def colour_class(index: int) -> str:
    return f"c{index % len(COLOURS)}"


def dash(index: int) -> str:
    return DASHES[index // len(COLOURS) % len(DASHES)]


def marker(index: int, x: float, y: float, classes: str = "marker") -> str:
    """The system's marker at x, y of an SVG."""
    shape = MARKERS[(index + index // len(COLOURS)) % len(MARKERS)]
    return f'<path class="{classes}" d="{shape}" transform="translate({x:.1f} {y:.1f})"/>'


def swatch(index: int) -> str:
    """The marker as an inline picture beside a name."""
    return (
        f'<svg class="swatch {colour_class(index)}" viewBox="-12 -7 24 14" aria-hidden="true">'
        f'<path class="line" d="M-11 0H11" stroke-dasharray="{dash(index)}"/>{marker(index, 0, 0)}</svg>'
    )


def named(index: int, name: object) -> str:
    """Marker and name; the name keeps its own direction of writing."""
    return f'<span class="system">{swatch(index)}<bdi>{escape(name)}</bdi></span>'


def legend(systems: Sequence[str], shown: Collection[str]) -> str:
    """The systems that a chart shows."""
    items = "".join(f"<li>{named(index, name)}</li>" for index, name in enumerate(systems) if name in shown)
    return f'<ul class="legend">{items}</ul>'
