"""Word alignments as text, and their error against a gold standard.

AER = 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|), precision |A ∩ P| / |A|, recall |A ∩ S| / |S| over all pairs together, for
links A, sure gold links S and possible ones P, S among them      Och & Ney 2003, Computational Linguistics 29(1).
"""

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from nmt.data.text import read_lines
from nmt.errors import UserError
from nmt.evaluation.checks import require_equal_counts
from nmt.evaluation.lengths import BINS
from nmt.progress import say

Link = tuple[int, int]  # source word, target word, from 0
_LINK = re.compile(r"([0-9]+)([-p?])([0-9]+)")


class Gold(NamedTuple):
    """What one pair's alignment should be."""

    sure: frozenset[Link]
    possible: frozenset[Link]  # the sure ones too


class Quality(NamedTuple):
    """Shares of 1; None where nothing is there to count."""

    aer: float | None
    precision: float | None
    recall: float | None


def pharaoh(links: Iterable[Link]) -> str:
    """ "0-0 1-2": source word and target word, counted from 0, in order; empty where there is none."""
    return " ".join(f"{source}-{target}" for source, target in sorted(set(links)))


def sure(links: Iterable[Sequence[int]]) -> Gold:
    """Gold links that are all sure."""
    found = frozenset((source, target) for source, target in links)
    return Gold(found, found)


def quality(alignments: Sequence[Collection[Link]], gold: Sequence[Gold]) -> Quality:
    """Links of the same pairs, in the same order, against the gold ones. ValueError where their numbers differ."""
    made = expected = in_sure = in_possible = 0
    for links, true in zip(map(set, alignments), gold, strict=True):
        made += len(links)
        expected += len(true.sure)
        in_sure += len(links & true.sure)
        in_possible += len(links & true.possible)
    return Quality(
        1 - (in_sure + in_possible) / (made + expected) if made + expected else None,
        in_possible / made if made else None,
        in_sure / expected if expected else None,
    )


def by_length(
    alignments: Sequence[Collection[Link]], gold: Sequence[Gold], lengths: Sequence[int]
) -> list[dict[str, Any]]:
    """The quality in each bin of source lengths, empty bins too."""
    rows = []
    for where in BINS:
        members = [index for index, length in enumerate(lengths) if length in where]
        part = quality([alignments[index] for index in members], [gold[index] for index in members])
        rows.append({"label": where.label, "n": len(members), **part._asdict()})
    return rows


def read_alignments(
    path: str,
    sources: Sequence[int],
    targets: Sequence[int],
    base: int | None = None,
    reverse: bool = False,
    key: str = "alignment.base",
) -> list[Gold]:
    """Lines of links `i-j` (sure) and `ipj` or `i?j` (possible), between pairs of so many words.

    Words are counted from `base`; None: from 0 where a 0 occurs, from 1 (and that is said) where the number of
    some sentence's words does. In a `reverse` file i is the target word. UserError with file and line for
    what is no link, or links words that are not there; for a file whose base cannot be told (`key` is the setting
    that says it); for unequal counts.
    """
    lines = list(read_lines(path))
    require_equal_counts({path: len(lines), "the sources": len(sources), "the targets": len(targets)})
    parsed = [_parse(path, number, line) for number, line in enumerate(lines, start=1)]
    sizes = list(zip(targets, sources, strict=True) if reverse else zip(sources, targets, strict=True))
    base = _base(path, parsed, sizes, base, key)
    gold = []
    for number, (links, size) in enumerate(zip(parsed, sizes, strict=True), start=1):
        for link in links:
            _require_inside(f"{path}: line {number}", link, size, base)
        gold.append(Gold(_moved([link for link in links if link.sure], base, reverse), _moved(links, base, reverse)))
    return gold


class _Written(NamedTuple):
    """A link as it stands in a file."""

    i: int
    j: int
    sure: bool


def _parse(path: str, number: int, line: str) -> list[_Written]:
    links = []
    for item in line.split():
        match = _LINK.fullmatch(item)
        if match is None:
            raise UserError(
                f"{path}: line {number}: {item[:40]} is no link; links are written i-j, possible ones ipj or i?j"
            )
        links.append(_Written(int(match[1]), int(match[3]), match[2] == "-"))
    return links


def _base(
    path: str, lines: Sequence[Sequence[_Written]], sizes: Sequence[tuple[int, int]], base: int | None, key: str
) -> int:
    """What the words are counted from; said aloud where it is a guess, or looks wrong."""
    if not any(lines):
        return base or 0
    has_zero = any(0 in link[:2] for links in lines for link in links)
    if base is not None:
        if base == 0 and not has_zero:
            say(f"warning: index 0 never occurs in {path}; if its words are counted from 1: {key}=1")
        return base
    if has_zero:
        return 0
    if any(link.i == size[0] or link.j == size[1] for links, size in zip(lines, sizes, strict=True) for link in links):
        say(f"warning: {path} is read as counted from 1: index 0 never occurs, the number of a sentence's words does")
        return 1
    first = next(number for number, links in enumerate(lines, start=1) if links)
    raise UserError(f"{path}: line {first}: are words counted from 0 or from 1? Give {key}=0 or 1")


def _moved(links: Iterable[_Written], base: int, reverse: bool) -> frozenset[Link]:
    moved = [(link.i - base, link.j - base) for link in links]
    return frozenset((j, i) if reverse else (i, j) for i, j in moved)


def _require_inside(where: str, link: _Written, size: tuple[int, int], base: int) -> None:
    for index, count in zip(link[:2], size, strict=True):
        if not base <= index < count + base:
            raise UserError(
                f"{where}: link {link.i}-{link.j} leaves the sentence: counted from {base}, "
                f"its {count} words end at {count + base - 1}"
            )
