"""Word alignments as text, and their error against a gold standard.

AER = 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|), precision |A ∩ P| / |A|, recall |A ∩ S| / |S| over all pairs together, for
links A, sure gold links S and possible ones P, S among them      Och & Ney 2003, Computational Linguistics 29(1).
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from nmt.data.text import read_lines, require_equal_counts
from nmt.errors import UserError
from nmt.evaluation.by_length import BINS, bin_members
from nmt.progress import say

Link = tuple[int, int]  # source word, target word, from 0
_LINK = re.compile(r"([0-9]{1,9})([-p?])([0-9]{1,9})")
_ZERO = re.compile(r"(?<![0-9])0+(?![0-9])")


class GoldAlignment(NamedTuple):
    """The gold alignment of one sentence pair."""

    sure: frozenset[Link]
    possible: frozenset[Link]  # the sure ones too


class AlignmentScores(NamedTuple):
    """Between 0 and 1; None where there is nothing to count."""

    aer: float | None
    precision: float | None
    recall: float | None


def pharaoh_line(links: Iterable[Link]) -> str:
    """ "0-0 1-2": source word and target word, counted from 0, in order; empty where there is none."""
    return " ".join(f"{source}-{target}" for source, target in sorted(set(links)))


def all_sure(links: Iterable[Sequence[int]]) -> GoldAlignment:
    """Gold links that are all sure."""
    link_set = frozenset((source, target) for source, target in links)
    return GoldAlignment(link_set, link_set)


def score_alignments(alignments: Sequence[Collection[Link]], gold: Sequence[GoldAlignment]) -> AlignmentScores:
    """AER, precision and recall over all pairs together. ValueError unless there is one alignment a gold alignment."""
    predicted = expected = in_sure = in_possible = 0
    for links, gold_links in zip(map(set, alignments), gold, strict=True):
        predicted += len(links)
        expected += len(gold_links.sure)
        in_sure += len(links & gold_links.sure)
        in_possible += len(links & gold_links.possible)
    return AlignmentScores(
        1 - (in_sure + in_possible) / (predicted + expected) if predicted + expected else None,
        in_possible / predicted if predicted else None,
        in_sure / expected if expected else None,
    )


@dataclass(frozen=True)
class AlignmentBin:
    """The scores in a bin of source lengths."""

    label: str
    n: int
    aer: float | None
    precision: float | None
    recall: float | None


@dataclass(frozen=True)
class AlignmentEntry:
    """The scores of one reading of a system's attention: a layer, a head, or a mean of them, at a shift."""

    system: str
    attention: str  # of which layer and head
    shift: int
    default: bool  # its links are the ones written
    gold: str
    n: int
    aer: float | None
    precision: float | None
    recall: float | None
    by_length: list[AlignmentBin]
    seeds: list[float | None] = field(default_factory=list)  # AER of each


def alignment_entry(
    facts: tuple[str, str, int, bool],
    gold_name: str,
    alignments: Sequence[Collection[Link]],
    gold: Sequence[GoldAlignment],
    lengths: Sequence[int],
) -> AlignmentEntry:
    """facts: system, attention, shift, default. With the scores in each bin of source lengths, empty bins too."""
    bins = []
    for length_bin, members in zip(BINS, bin_members(lengths, BINS), strict=True):
        scores = score_alignments([alignments[index] for index in members], [gold[index] for index in members])
        bins.append(AlignmentBin(length_bin.label, len(members), *scores))
    return AlignmentEntry(*facts, gold_name, len(alignments), *score_alignments(alignments, gold), bins)


def read_entry(values: Mapping[str, Any]) -> AlignmentEntry:
    """An entry of TEST.alignment.json. ValueError where it is none."""
    return TypeAdapter(AlignmentEntry).validate_python(values)


def mean_entry(label: str, seeds: Sequence[AlignmentEntry]) -> AlignmentEntry:
    """Means over the seeds of the system that is called so."""

    def means(rows: Sequence[Any]) -> dict[str, Any]:
        return {key: mean_or_none([getattr(row, key) for row in rows]) for key in AlignmentScores._fields}

    bins = [replace(rows[0], **means(rows)) for rows in zip(*(entry.by_length for entry in seeds), strict=True)]
    return replace(seeds[0], **means(seeds), system=label, by_length=bins, seeds=[entry.aer for entry in seeds])


def mean_or_none(values: Sequence[float | None]) -> float | None:
    """None if one of them is, or if there is none."""
    present = [value for value in values if value is not None]
    return sum(present) / len(present) if present and len(present) == len(values) else None


def diagonal(source_words: int, target_words: int) -> list[Link]:
    """Each target word with the source word at the same place in its sentence: what any aligner should beat."""
    return [((2 * j + 1) * source_words // (2 * target_words), j) for j in range(target_words) if source_words]


def read_alignments(
    path: str, sources: Sequence[int], targets: Sequence[int], base: int, reverse: bool = False
) -> list[GoldAlignment]:
    """Lines of links `i-j` (sure) and `ipj` or `i?j` (possible), between pairs with these numbers of words.

    Words are counted from `base`, 0 or 1. In a `reverse` file i is the target word. UserError with file and line
    for what is no link, or links words that are not there; for unequal counts.
    """
    lines = list(read_lines(path))
    require_equal_counts({path: len(lines), "the sources": len(sources), "the targets": len(targets)})
    if base == 0 and any(map(str.strip, lines)) and not any(map(_ZERO.search, lines)):
        say(f"warning: index 0 never occurs in {path}; if its words are counted from 1: alignment.base=1")
    gold = []
    for number, (line, *sizes) in enumerate(zip(lines, sources, targets, strict=True), start=1):
        links: dict[str, set[Link]] = {"-": set(), "p": set(), "?": set()}
        for item in line.split():
            match = _LINK.fullmatch(item)
            if match is None:
                raise UserError(
                    f"{path}: line {number}: {item[:40]} is no link; links are written i-j, possible ones ipj or i?j"
                )
            i, j = int(match[1]), int(match[3])
            for index, count in zip((j, i) if reverse else (i, j), sizes, strict=True):
                if not base <= index < count + base:
                    raise UserError(
                        f"{path}: line {number}: link {i}-{j} leaves the sentence: counted from {base}, "
                        f"its {count} words end at {count + base - 1}"
                    )
            links[match[2]].add((j - base, i - base) if reverse else (i - base, j - base))
        gold.append(GoldAlignment(frozenset(links["-"]), frozenset.union(*map(frozenset, links.values()))))
    return gold
