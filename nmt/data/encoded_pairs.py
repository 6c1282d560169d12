"""Pairs as ids in flat arrays, which may be memory-mapped: no Python object for each pair."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nmt.data.corpus import Pair
from nmt.data.tokenizer import Tokenizer


class Sequences(NamedTuple):
    """Many id sequences in one flat array: sequence i is ids[offsets[i]:offsets[i + 1]]."""

    ids: np.ndarray
    offsets: np.ndarray

    @classmethod
    def of(cls, sequences: Iterable[Sequence[int]]) -> "Sequences":
        arrays = [np.asarray(sequence, dtype=np.int32) for sequence in sequences]
        offsets = np.zeros(len(arrays) + 1, dtype=np.int64)
        np.cumsum([len(array) for array in arrays], out=offsets[1:])
        return cls(np.concatenate(arrays) if arrays else np.zeros(0, dtype=np.int32), offsets)

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.offsets)

    def __getitem__(self, index: int) -> np.ndarray:  # type: ignore[override]
        return self.ids[self.offsets[index] : self.offsets[index + 1]]


class PartRange(NamedTuple):
    """The pairs that come from one part of a mixture: pairs first, first + 1, ... end - 1.

    `weight` is its share of an epoch, relative to the other parts'.
    """

    name: str
    first: int
    end: int
    weight: float


@dataclass(frozen=True)
class EncodedPairs:
    """Pairs as ids, without special ids. `parts` only where sources are mixed by weight."""

    src: Sequences
    tgt: Sequences
    parts: tuple[PartRange, ...] = ()

    def __len__(self) -> int:
        return len(self.src.offsets) - 1


def encode_pairs(pairs: Sequence[Pair], source: Tokenizer, target: Tokenizer, max_pieces: int) -> EncodedPairs:
    """A few pairs, in memory; without those that have an empty side, or a side of over `max_pieces` pieces."""
    src = source.encode_batch([pair.source for pair in pairs])
    tgt = target.encode_batch([pair.target for pair in pairs])
    kept = [ids for ids in zip(src, tgt, strict=True) if all(ids) and max(map(len, ids)) <= max_pieces]
    return EncodedPairs(Sequences.of([src for src, _ in kept]), Sequences.of([tgt for _, tgt in kept]))
