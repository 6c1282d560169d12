"""Copies the tables of outputs/reference into README and docs/measuring.md: python scripts/readme.py

tests/test_readme.py checks. Each table is marked <!-- tables: PAGE.md --> … <!-- end -->, or, for some of the page's
sections only, <!-- tables: PAGE.md: Title; Title -->; "Result" is what stands above the first. No number is typed by
hand.
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("README.md", "docs/measuring.md")
MARKED = re.compile(r"(<!-- tables: (\S+\.md)(?:: ([^\n]+))? -->\n).*?(<!-- end -->)", re.DOTALL)


def page_tables(page: str) -> str:
    """The Markdown tables of a page, and the list of how they were made below them."""
    blocks = [block for block in page.split("\n\n") if block.startswith(("| ", "- "))]
    return "\n\n".join(block.strip() for block in blocks)


def page_sections(page: str, titles: list[str]) -> str:
    """Those parts of a page, without their titles and pictures. KeyError for a title that it does not have."""
    first, *others = re.split(r"^## ", page, flags=re.MULTILINE)
    parts = {"Result": first.partition("\n")[2]}
    parts |= {title: body for title, _, body in (other.partition("\n") for other in others)}
    blocks = [block for title in titles for block in parts[title].strip().split("\n\n")]
    return "\n\n".join(block for block in blocks if not block.startswith("!["))


def fill_tables(text: str, root: Path = ROOT) -> str:
    """The text with every marked table as its page in outputs/reference has it."""

    def fill(match: re.Match[str]) -> str:
        page = (root / match[2]).read_text(encoding="utf-8")
        content = page_sections(page, match[3].split("; ")) if match[3] else page_tables(page)
        return f"{match[1]}{content}\n{match[4]}"

    return MARKED.sub(fill, text)


if __name__ == "__main__":
    for path in map(ROOT.joinpath, PAGES):
        path.write_text(fill_tables(path.read_text(encoding="utf-8")), encoding="utf-8")
