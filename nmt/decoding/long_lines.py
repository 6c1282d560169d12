"""Lines too long for the model: split into parts at the best boundaries, translated, joined again."""

import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import NamedTuple

# Where a text may be cut, best first: after a sentence, after a clause, at a space. The cut follows the match.
_CUTS = (
    re.compile(r"[.!?…][\"')\]»”’]*\s+|[。！？।॥؟]"),
    re.compile(r"[;:,—–]\s+|[；：，、،]"),
    re.compile(r"\s+"),
)
_JOINERS = "\u200c\u200d\ufe0e\ufe0f"  # they join two characters into one, as in emoji


class Hypothesis(NamedTuple):
    """One translation of a line."""

    text: str
    score: float  # log_prob / length ** length_penalty; of a line in parts, their mean
    capped: bool  # it, or a part of it, has as many pieces as the search allows: its end may be missing
    source_split: int  # parts that the line was translated in; 0 where it holds nothing to translate


def split_line(text: str, fits: Callable[[str], bool]) -> list[str]:
    """The text in parts that fit: halved, at the best cut near the middle, until they do."""
    if fits(text) or len(text) < 2:
        return [text]
    cut = cut_position(text)
    return split_line(text[:cut], fits) + split_line(text[cut:], fits)


def cut_position(text: str) -> int:
    """Where to halve a text of two characters or more, never at its ends."""
    centre = len(text) // 2
    for cuts in _CUTS:
        quarter = range(len(text) // 4, len(text) - len(text) // 4)
        cuts_near_middle = [match.end() for match in cuts.finditer(text) if match.end() in quarter]
        if cuts_near_middle:
            return min(cuts_near_middle, key=lambda cut: abs(cut - centre))
    # no cut in the middle half: anywhere, but not inside one user-perceived character
    near = range(centre, max(centre - 20, 0), -1)
    starts = (n for n in near if not unicodedata.combining(text[n]) and not {text[n - 1], text[n]} & set(_JOINERS))
    return next(starts, centre)


def join_parts(parts: Sequence[Sequence[Hypothesis]], n_best: int) -> list[Hypothesis]:
    """The translation of a line from those of its parts: the n-th best of all parts make its n-th best.

    No text is repeated; a part with fewer translations repeats its last one.
    """
    joined: dict[str, Hypothesis] = {}
    for rank in range(max(map(len, parts))):
        chosen = [hypotheses[min(rank, len(hypotheses) - 1)] for hypotheses in parts]
        text = " ".join(hypothesis.text for hypothesis in chosen if hypothesis.text)
        score = sum(hypothesis.score for hypothesis in chosen) / len(chosen)
        capped = any(hypothesis.capped for hypothesis in chosen)
        joined.setdefault(text, Hypothesis(text, score, capped, len(parts)))
    return list(joined.values())[:n_best]
