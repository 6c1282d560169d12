"""Values as escaped HTML text, tables and lists; the colour and marker of each system."""

import html
from collections.abc import Collection, Sequence

from nmt.study.figures import COLOURS

MISSING = "–"
CONTROLS = {code: "\ufffd" for code in (*range(32), 127, *range(0xD800, 0xE000)) if code not in (9, 10)}


# A system has a colour and a marker; from the ninth on the combination and the dash of the line differ.
DARK_MODE_COLOURS = ("#FF8F45", "#5FB4F2", "#3ECFA3", "#D78FD2", "#DDB04A", "#86CBEB", "#C4C9CF", "#8A9199")
DASHES = ("none", "7 3", "2 3")
MARKER_PATHS = (  # around 0, 0, in the order of nmt.study.figures.MARKERS
    "M-4.4 0a4.4 4.4 0 1 0 8.8 0a4.4 4.4 0 1 0-8.8 0z",
    "M-4-4h8v8h-8z",
    "M0-5.2L5 3.8H-5z",
    "M0-5.5L5.5 0L0 5.5L-5.5 0z",
    "M0 5.2L5-3.8H-5z",
    "M-1.8-5.2h3.6v3.4h3.4v3.6h-3.4v3.4h-3.6v-3.4h-3.4v-3.6h3.4z",
    "M-5.2-2.8L-2.8-5.2L0-2.4L2.8-5.2L5.2-2.8L2.4 0L5.2 2.8L2.8 5.2L0 2.4L-2.8 5.2L-5.2 2.8L-2.4 0z",
    "M0-5.2L4.6-2.6V2.6L0 5.2L-4.6 2.6V-2.6z",
)


class Markup(str):
    """Text that is HTML already."""


def escape(value: object) -> str:
    """Text that shows as itself, also inside a quoted attribute; what HTML cannot hold becomes U+FFFD."""
    return html.escape(str(value).translate(CONTROLS), quote=True)


def cell(value: object) -> str:
    """A cell: markup as it is, text escaped, its line ends kept."""
    return value if isinstance(value, Markup) else escape(value).replace("\n", "<br>")


def format_number(value: float | None, digits: int = 1) -> str:
    return MISSING if value is None else f"{value:,.{digits}f}".replace("-", "\u2212")


def format_signed(value: float | None, digits: int = 1) -> str:
    return MISSING if value is None else f"{value:+,.{digits}f}".replace("-", "\u2212")


def format_interval(interval: Sequence[float] | None, digits: int = 1) -> str:
    """ "[95.8, 97.5]"; nothing where there is no interval."""
    return "" if interval is None else f"[{format_number(interval[0], digits)}, {format_number(interval[1], digits)}]"


def format_p(value: float | None) -> str:
    return MISSING if value is None else "< 0.001" if value < 0.001 else f"{value:.3f}"


def attribute(name: str, value: object) -> str:
    """' name="value"'; nothing for None."""
    return "" if value is None else f' {name}="{escape(value)}"'


def scroll_box(content: str, label: str, classes: str = "scroll") -> str:
    """A box that scrolls by itself, by keyboard too, so that the page never does."""
    return f'<div class="{classes}" tabindex="0" role="region" aria-label="{escape(label)}">{content}</div>'


def html_table(
    caption: str, header: Sequence[object], rows: Sequence[Sequence[object]], classes: str = "scroll"
) -> str:
    """A table in a scrolling box: its first column names the rows."""
    head = "".join(f'<th scope="col">{cell(content)}</th>' for content in header)
    body = "".join(
        f'<tr><th scope="row">{cell(row[0])}</th>{"".join(f"<td>{cell(content)}</td>" for content in row[1:])}</tr>\n'
        for row in rows
    )
    caption_row = f"<caption><span>{cell(caption)}</span></caption>"
    return scroll_box(
        f"<table>{caption_row}<thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table>", caption, classes
    )


def note_list(texts: Sequence[str], classes: str = "notes") -> str:
    items = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return f'<ul class="{classes}">{items}</ul>' if items else ""


def html_section(identifier: str, title: str, *content: str) -> str:
    return f'<section id="{identifier}"><h2>{escape(title)}</h2>\n{"".join(content)}</section>\n'


def colour_rules() -> str:
    """The palette as CSS variables, light and dark, and a class for each colour."""
    light, dark = (
        "".join(f"--c{index}:{colour};" for index, colour in enumerate(palette))
        for palette in (COLOURS, DARK_MODE_COLOURS)
    )
    classes = "".join(f".c{index}{{--c:var(--c{index})}}" for index in range(len(COLOURS)))
    return f":root{{{light}}}@media (prefers-color-scheme:dark){{:root{{{dark}}}}}{classes}"


def colour_class(index: int) -> str:
    return f"c{index % len(COLOURS)}"


def dash(index: int) -> str:
    return DASHES[index // len(COLOURS) % len(DASHES)]


def marker(index: int, x: float, y: float, classes: str = "marker") -> str:
    """The system's marker at x, y of an SVG."""
    shape = MARKER_PATHS[(index + index // len(COLOURS)) % len(MARKER_PATHS)]
    return f'<path class="{classes}" d="{shape}" transform="translate({x:.1f} {y:.1f})"/>'


def swatch(index: int) -> str:
    """The marker as an inline picture beside a name."""
    return (
        f'<svg class="swatch {colour_class(index)}" viewBox="-12 -7 24 14" aria-hidden="true">'
        f'<path class="line" d="M-11 0H11" stroke-dasharray="{dash(index)}"/>{marker(index, 0, 0)}</svg>'
    )


def system_name(index: int, name: object) -> str:
    """Marker and name; the name keeps its own direction of writing."""
    return f'<span class="system">{swatch(index)}<bdi>{escape(name)}</bdi></span>'


def legend(systems: Sequence[str], shown: Collection[str]) -> str:
    """The systems that a chart shows."""
    items = "".join(f"<li>{system_name(index, name)}</li>" for index, name in enumerate(systems) if name in shown)
    return f'<ul class="legend">{items}</ul>'
