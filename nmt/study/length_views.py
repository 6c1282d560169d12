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
AXES = {WORDS: "source words", DECILES: "source words, deciles", PIECES: "source pieces"}
MAX_PAIRS = 50_000  # the first ones of the training text: enough for a histogram


class LengthView(NamedTuple):
    """Ranges of length and the sentences in each; none is empty."""

    name: str
    lengths: Sequence[int]  # of each sentence
    bins: list[Bin]
    members: list[np.ndarray]  # indices of sentences


def length_views(sources: Sequence[str], pieces: Sequence[int] | None) -> list[LengthView]:
    """By words, by deciles of words, and by pieces where their numbers are known. Empty sources are in no bin."""
    counts = [source_length(source) for source in sources]
    views = []
    for name, lengths, bins in (
        (WORDS, counts, BINS), (DECILES, counts, deciles(counts)), (PIECES, pieces, bins_of_ten(80)),
    ):  # fmt: skip
        if lengths is None:
            continue
        filled = [pair for pair in zip(bins, bin_members(lengths, bins), strict=True) if len(pair[1])]
        views.append(LengthView(name, lengths, [own for own, _ in filled], [members for _, members in filled]))
    return views


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

    def shares(self, view: LengthView) -> list[float]:
        """The share of them in each bin."""
        lengths = self.pieces if view.name == PIECES else self.words
        return [len(members) / max(1, len(lengths)) for members in bin_members(lengths, view.bins)]

    def max_length_mark(self, view: str) -> MaxLength | None:
        """Where training ends on the axis: the limit on pieces, or else the longest source that was read.

        max_words counts whitespace-separated words, which are not this axis: there the longest source is marked.
        """
        longest = max(self.pieces if view == PIECES else self.words, default=0)
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
    source_pieces = [len(ids) for ids in source.encode_batch([pair.source for pair in kept])]
    target_pieces = [len(ids) for ids in target.encode_batch([pair.target for pair in kept])]
    fitting = [
        (source_length(pair.source), s)
        for pair, s, t in zip(kept, source_pieces, target_pieces, strict=True)
        if s and t and max(s, t) <= max_pieces
    ]
    return TrainingLengths([count for count, _ in fitting], [s for _, s in fitting], max_words, max_pieces)
