"""Values as HTML text: everything escaped, numbers aligned, nothing that is missing left blank."""

import html
from collections.abc import Sequence

NONE = "–"
CONTROLS = {code: "\ufffd" for code in (*range(32), 127, *range(0xD800, 0xE000)) if code not in (9, 10)}


class Markup(str):
    """Text that is HTML already."""


def escape(value: object) -> str:
    """Text that shows as itself, also inside a quoted attribute; what HTML cannot hold becomes U+FFFD."""
    return html.escape(str(value).translate(CONTROLS), quote=True)


def lines(value: object) -> str:
    """A cell: markup as it is, text escaped, its line ends kept."""
    return value if isinstance(value, Markup) else escape(value).replace("\n", "<br>")


def fixed(value: float | None, digits: int = 1) -> str:
    return NONE if value is None else f"{value:,.{digits}f}".replace("-", "\u2212")


def signed(value: float | None, digits: int = 1) -> str:
    return NONE if value is None else f"{value:+,.{digits}f}".replace("-", "\u2212")


def bounds(interval: Sequence[float] | None, digits: int = 1) -> str:
    """"[95.8, 97.5]"; nothing where there is no interval."""
    return "" if interval is None else f"[{fixed(interval[0], digits)}, {fixed(interval[1], digits)}]"


def p_value(value: float | None) -> str:
    return NONE if value is None else "< 0.001" if value < 0.001 else f"{value:.3f}"


def attribute(name: str, value: object) -> str:
    """' name="value"'; nothing for None."""
    return "" if value is None else f' {name}="{escape(value)}"'


def scroll(content: str, label: str, classes: str = "scroll") -> str:
    """A box that scrolls by itself, by keyboard too, so that the page never does."""
    return f'<div class="{classes}" tabindex="0" role="region" aria-label="{escape(label)}">{content}</div>'


def table(caption: str, header: Sequence[object], rows: Sequence[Sequence[object]], classes: str = "scroll") -> str:
    """A table in a scrolling box: its first column names the rows."""
    head = "".join(f'<th scope="col">{lines(cell)}</th>' for cell in header)
    body = "".join(
        f'<tr><th scope="row">{lines(row[0])}</th>{"".join(f"<td>{lines(cell)}</td>" for cell in row[1:])}</tr>\n'
        for row in rows
    )
    caption_row = f"<caption>{lines(caption)}</caption>"
    return scroll(f"<table>{caption_row}<thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table>", caption, classes)


def notes(texts: Sequence[str], classes: str = "notes") -> str:
    items = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return f'<ul class="{classes}">{items}</ul>' if items else ""


def section(identifier: str, title: str, *content: str) -> str:
    return f'<section id="{identifier}"><h2>{escape(title)}</h2>\n{"".join(content)}</section>\n'
