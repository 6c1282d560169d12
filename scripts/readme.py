"""Copies the tables of outputs/reference into README and docs/measuring.md: python scripts/readme.py

tests/test_readme.py checks. Each place is marked <!-- tables: PAGE.md --> … <!-- end -->; no number is typed by hand.
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("README.md", "docs/measuring.md")
PLACE = re.compile(r"(<!-- tables: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def tables(page: str) -> str:
    """The Markdown tables of a page, and the list of how they were made below them."""
    blocks = [block for block in page.split("\n\n") if block.startswith(("| ", "- "))]
    return "\n\n".join(block.strip() for block in blocks)


def filled(text: str, root: Path = ROOT) -> str:
    """The text with every marked place as its page in outputs/reference has it."""

    def fill(place: re.Match[str]) -> str:
        page = (root / place[2]).read_text(encoding="utf-8")
        return f"{place[1]}{tables(page)}\n{place[3]}"

    return PLACE.sub(fill, text)


if __name__ == "__main__":
    for path in map(ROOT.joinpath, PAGES):
        path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")
