"""The test set divided by source length, in several views, each the same for every system; training lengths beside it.

The main view has fixed ranges of 13a tokens; deciles show that the curve does not come from its edges; source pieces
are what a model really processes (Koehn and Knowles 2017 have them as their axis).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np

from nmt.data.corpus import Pair
from nmt.data.text import words
from nmt.data.tokenizer import Tokenizer
from nmt.evaluation.by_length import BINS, Bin, bin_members, bins_of_ten, deciles, source_length

WORDS, DECILES, PIECES = "words", "deciles", "pieces"
MAX_PAIRS = 50_000  # the first ones of the training text: enough for a histogram
AXES = {WORDS: "source words", DECILES: "source words, deciles", PIECES: "source pieces"}


class LengthView(NamedTuple):
    """Ranges of length and the sentences in each; none is empty."""

    name: str
    lengths: np.ndarray  # (N,)
    bins: list[Bin]
    members: list[np.ndarray]  # indices of sentences

    @property
    def axis(self) -> str:
        return AXES[self.name]

    def indices_between(self, low: int, high: int | None) -> np.ndarray:
        """The sentences with low <= length < high, none of length 0."""
        return np.flatnonzero((self.lengths >= max(1, low)) & (self.lengths < (np.inf if high is None else high)))

    def shares(self, lengths: Sequence[int]) -> list[float]:
        """The share of sentences, given by their lengths, in each bin."""
        return [sum(length in length_bin for length in lengths) / max(1, len(lengths)) for length_bin in self.bins]


def length_views(sources: Sequence[str], pieces: Sequence[int] | None) -> list[LengthView]:
    """By words, by deciles of words, and by pieces where their numbers are known. Empty sources are in no bin."""
    words = [source_length(source) for source in sources]
    views = [length_view(WORDS, words, BINS), length_view(DECILES, words, deciles(words))]
    return views if pieces is None else [*views, length_view(PIECES, pieces, bins_of_ten(80))]


def length_view(name: str, lengths: Sequence[int], bins: Sequence[Bin]) -> LengthView:
    members = bin_members(lengths, bins)
    nonempty = [number for number, inside in enumerate(members) if len(inside)]
    return LengthView(name, np.array(lengths), [bins[n] for n in nonempty], [members[n] for n in nonempty])


@dataclass(frozen=True)
class MaxLength:
    """Where training ends on the axis."""

    at: float
    label: str


class TrainingLengths(NamedTuple):
    """Lengths of the training sources, in both units, and the limits that were set."""

    words: list[int]  # 13a tokens
    pieces: list[int]
    max_words: int | None
    max_pieces: int

    def lengths(self, view: str) -> list[int]:
        return self.pieces if view == PIECES else self.words

    def max_length_mark(self, view: str) -> MaxLength | None:
        """Where training ends on the axis: the limit on pieces, or else the longest source that was read.

        max_words counts whitespace-separated words, which are not this axis: there the longest source is marked.
        """
        longest = max(self.lengths(view), default=0)
        if view == PIECES and longest > 0.9 * self.max_pieces:
            return MaxLength(self.max_pieces, f"trained up to {self.max_pieces} pieces")
        limit = f" (max_words={self.max_words})" if view != PIECES and self.max_words is not None else ""
        return MaxLength(longest, f"longest in training: {longest}{limit}") if longest else None


def training_lengths(
    pairs: Iterable[Pair], source: Tokenizer, target: Tokenizer, max_words: int | None, max_pieces: int
) -> TrainingLengths:
    """Of the first 50,000 pairs, without those that preparation leaves out as too long."""
    kept = [
        pair
        for pair in islice(pairs, MAX_PAIRS)
        if max_words is None or max(len(words(pair.source)), len(words(pair.target))) <= max_words
    ]
    lengths = [
        [len(ids) for ids in tokenizer.encode_batch(side)]
        for tokenizer, side in ((source, [pair.source for pair in kept]), (target, [pair.target for pair in kept]))
    ]
    fits = [bool(s and t and max(s, t) <= max_pieces) for s, t in zip(*lengths, strict=True)]
    return TrainingLengths(
        [source_length(pair.source) for pair, fit in zip(kept, fits, strict=True) if fit],
        [count for count, fit in zip(lengths[0], fits, strict=True) if fit],
        max_words,
        max_pieces,
    )
