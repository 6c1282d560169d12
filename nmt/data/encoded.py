"""Pairs as ids in flat arrays, which may be mapped from files: no Python object for each pair."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from nmt.data.corpus import Pair
from nmt.data.tokenizer import Tokenizer

CHUNK = 10_000  # pairs encoded at a time


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

    @classmethod
    def joined(cls, parts: "Sequence[Sequences]") -> "Sequences":
        ends = np.cumsum([0, *(len(part.ids) for part in parts)])
        offsets = [part.offsets[:-1] + end for part, end in zip(parts, ends[:-1], strict=True)]
        return cls(np.concatenate([part.ids for part in parts]), np.concatenate([*offsets, ends[-1:]]))

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.offsets)

    def __getitem__(self, index: int) -> np.ndarray:  # type: ignore[override]
        return self.ids[self.offsets[index] : self.offsets[index + 1]]


class Part(NamedTuple):
    """A stretch of the pairs that comes from one source: pairs first, first + 1, ... end - 1.

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
    parts: tuple[Part, ...] = ()
    read: int = 0
    dropped: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.src.offsets) - 1


def encode_pairs(pairs: Iterable[Pair], source: Tokenizer, target: Tokenizer, max_pieces: int) -> EncodedPairs:
    """Pairs with an empty side or more than `max_pieces` pieces (EOS not counted) on one are dropped and counted."""
    dropped = {"empty": 0, "too long": 0}
    sides: tuple[list[Sequences], list[Sequences]] = ([], [])
    read = 0
    for chunk in _chunks(pairs):
        read += len(chunk)
        src = source.encode_batch([pair.source for pair in chunk])
        tgt = target.encode_batch([pair.target for pair in chunk])
        kept = []
        for pair in zip(src, tgt, strict=True):
            shorter, longer = sorted(map(len, pair))
            if shorter == 0:
                dropped["empty"] += 1
            elif longer > max_pieces:
                dropped["too long"] += 1
            else:
                kept.append(pair)
        for side, sequences in zip(sides, zip(*kept, strict=True), strict=False):
            side.append(Sequences.of(sequences))
    empty = Sequences.of([])
    both = (Sequences.joined(side or [empty]) for side in sides)
    return EncodedPairs(*both, read=read, dropped=dropped)


def _chunks(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
    chunk: list[Pair] = []
    for pair in pairs:
        chunk.append(pair)
        if len(chunk) == CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
