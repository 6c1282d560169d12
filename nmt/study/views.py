"""The test set cut by source length, in several ways; each cut is made once and is the same for every system.

The main view has fixed ranges of 13a tokens; deciles show that the curve does not come from its edges; source pieces
are what a model really unrolls (Koehn and Knowles 2017 have them as their axis).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nmt.evaluation.lengths import BINS, Bin, deciles, source_length, tens

WORDS, DECILES, PIECES = "words", "deciles", "pieces"
AXES = {WORDS: "source words", DECILES: "source words, deciles", PIECES: "source pieces"}


class View(NamedTuple):
    """Ranges of length and the sentences in each; none is empty."""

    name: str
    lengths: np.ndarray  # (N,)
    bins: list[Bin]
    members: list[np.ndarray]  # indices of sentences

    @property
    def axis(self) -> str:
        return AXES[self.name]

    def between(self, low: int, high: int | None) -> np.ndarray:
        """The sentences with low <= length < high, none of length 0."""
        where = Bin(max(1, low), high)
        return np.array(
            [index for index, length in enumerate(self.lengths.tolist()) if length in where], dtype=np.int64
        )

    def shares(self, lengths: Sequence[int]) -> list[float]:
        """How much of some text, given by its lengths, is in each range."""
        return [sum(length in where for length in lengths) / max(1, len(lengths)) for where in self.bins]


def views_of(sources: Sequence[str], pieces: Sequence[int] | None) -> list[View]:
    """By words, by deciles of words, and by pieces where their numbers are known. Empty sources are in no bin."""
    words = [source_length(source) for source in sources]
    views = [view_of(WORDS, words, BINS), view_of(DECILES, words, deciles(words))]
    return views if pieces is None else [*views, view_of(PIECES, pieces, tens(80))]


def view_of(name: str, lengths: Sequence[int], bins: Sequence[Bin]) -> View:
    members = [np.array([index for index, length in enumerate(lengths) if length in where]) for where in bins]
    filled = [(where, inside) for where, inside in zip(bins, members, strict=True) if len(inside)]
    return View(name, np.array(lengths), [where for where, _ in filled], [inside for _, inside in filled])
