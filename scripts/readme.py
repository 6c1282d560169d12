"""Copies the tables of outputs/reference into README and docs: python scripts/readme.py (tests/test_readme.py checks)

Each table is marked <!-- tables: PAGE.md --> … <!-- end -->, or, for some of the page's sections only,
<!-- tables: PAGE.md: Title; Title -->; "Result" is what stands above the first. <!-- summary: COMPARISON.json --> is
the short table of README. No number is typed by hand.
"""

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGES = (
    "README.md",
    "docs/measuring.md",
    "docs/benchmarks.md",
    "docs/tutorial.md",
    "docs/results/grammar.md",
    "docs/results/europarl.md",
    "docs/results/multi30k.md",
)
SUMMARY = re.compile(r"(<!-- summary: (\S+\.json) -->\n).*?(<!-- end -->)", re.DOTALL)
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


def summary(comparison: dict[str, Any]) -> str:
    """BLEU and its interval on the shortest and on the longest sources, and the CPU minutes of a training."""
    view = comparison["views"][0]
    first, last = view["bins"][0], view["bins"][-1]
    header = ["system", *(f"BLEU, {end['label']} words (n={end['n']:,})" for end in (first, last)), "CPU minutes"]
    rows = [header, ["---", "---:", "---:", "---:"]]
    for system in comparison["systems"]:
        scores = view["scores"][system["system"]]
        cells = [
            f"{row['bleu']:.1f} [{row['interval'][0]:.1f}, {row['interval'][1]:.1f}]" for row in (scores[0], scores[-1])
        ]
        rows.append([system["system"], *cells, f"{system['cpu_seconds'] / 60:.0f}"])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def fill_tables(text: str, root: Path = ROOT) -> str:
    """The text with every marked table as outputs/reference has it."""

    def fill(match: re.Match[str]) -> str:
        page = (root / match[2]).read_text(encoding="utf-8")
        content = page_sections(page, match[3].split("; ")) if match[3] else page_tables(page)
        return f"{match[1]}{content}\n{match[4]}"

    def fill_summary(match: re.Match[str]) -> str:
        return f"{match[1]}{summary(json.loads((root / match[2]).read_text(encoding='utf-8')))}\n{match[3]}"

    return SUMMARY.sub(fill_summary, MARKED.sub(fill, text))


if __name__ == "__main__":
    for path in map(ROOT.joinpath, PAGES):
        path.write_text(fill_tables(path.read_text(encoding="utf-8")), encoding="utf-8")
