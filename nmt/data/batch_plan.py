"""Which pairs form which batch of an epoch: a token budget, little padding, random order."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nmt.data.encoded_pairs import EncodedPairs, PartRange
from nmt.errors import UserError

# Slabs of a pool of B batches, over sqrt(B): more of them leave less padding on the longer side and more on the
# shorter one. Measured from B = 5 to B = 15,000, 3 to 6 are nearly alike and on the average the best.
SLABS = 4


class Padding(NamedTuple):
    """Share of padding among the positions of an epoch's batches."""

    source: float
    target: float
    both: float


@dataclass(frozen=True)
class BatchPlan:
    """The batches of an epoch in flat arrays: no Python object for each pair or batch.

    `len(plan)` batches; `plan[i]` is the i-th in training order, as an array of pair numbers.
    """

    pairs: np.ndarray  # pair numbers, batch after batch
    bounds: np.ndarray  # (batches + 1,) batch k is pairs[bounds[k]:bounds[k + 1]]
    order: np.ndarray  # (batches,) the k's in training order
    widths: np.ndarray  # (batches, 2) longest source and longest target of batch k, EOS included
    pieces: tuple[int, int]  # of all sources and of all targets, EOS included

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, index: int) -> np.ndarray:
        batch = self.order[index]
        return self.pairs[self.bounds[batch] : self.bounds[batch + 1]]

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[index] for index in range(len(self)))

    @property
    def sizes(self) -> np.ndarray:
        """(batches,) positions of both sides, padding included, in training order."""
        return (self.widths.sum(axis=1) * np.diff(self.bounds))[self.order]

    @property
    def padding(self) -> Padding:
        if not len(self):
            return Padding(0.0, 0.0, 0.0)
        positions = (self.widths * np.diff(self.bounds)[:, None]).sum(axis=0)
        real = np.array(self.pieces)
        source, target = (1 - real / positions).tolist()
        return Padding(source, target, both=1 - float(real.sum() / positions.sum()))


def make_batch_plan(pairs: EncodedPairs, tokens: int, pool: int, rng: np.random.Generator) -> BatchPlan:
    """As many pairs as there are, shuffled, cut into pools; each pool sorted, and cut into batches of the budget.

    Beside the plan itself, memory is taken for one pool at a time (and for a copy of the numbers of a part).
    """
    drawn = _draw_pairs(pairs, rng)
    rng.shuffle(drawn)
    bounds, widths = [np.zeros(1, dtype=np.int64)], [np.zeros((0, 2), dtype=np.int64)]
    pieces = [0, 0]
    for first in range(0, len(drawn), pool):
        numbers = drawn[first : first + pool]
        sides = (pairs.src.offsets, pairs.tgt.offsets)
        lengths = np.stack([offsets[numbers + 1] - offsets[numbers] + 1 for offsets in sides], axis=1)
        by_length = _sort_by_lengths(lengths[:, 0], lengths[:, 1], tokens, rng.random())
        numbers[:], lengths = numbers[by_length], lengths[by_length]
        ends = _cut_batches(np.maximum(*lengths.T), tokens)
        bounds.append(first + ends)
        widths.append(np.maximum.reduceat(lengths, np.concatenate([[0], ends[:-1]])))
        pieces = [total + more for total, more in zip(pieces, lengths.sum(axis=0).tolist(), strict=True)]
    edges = np.concatenate(bounds)
    order = rng.permutation(len(edges) - 1)
    return BatchPlan(drawn, edges, order, np.concatenate(widths), (pieces[0], pieces[1]))


def _sort_by_lengths(src: np.ndarray, tgt: np.ndarray, tokens: int, phase: float) -> np.ndarray:
    """An order in which neighbours agree in both lengths, as a walk through the plane of the two.

    The plane is cut into slabs of equal content by the longer side, which the budget counts; the first is a part of
    one, so that another `phase` in [0, 1) gives other batches. A slab is walked from the shortest target up to where
    both sides are equal, then down to the shortest source, and the next slab in the opposite direction.
    """
    longer = np.maximum(src, tgt)
    ends = 2 * int(longer.max())
    small = np.min_scalar_type(ends)  # 16 bits: sorted in linear time
    batches = np.bincount(longer) * np.arange(ends // 2 + 1) / tokens  # at each length
    passed = np.cumsum(batches) - batches / 2
    slabs = np.floor(SLABS * passed / np.sqrt(batches.sum()) + phase)
    slab = np.cumsum(np.diff(slabs, prepend=slabs[0]) > 0).astype(small)[longer]  # 0, 1, ... none left out
    walk = np.where(src >= tgt, tgt, ends - src)
    walk = np.where(slab % 2 == 0, walk, ends - walk).astype(small)
    return np.lexsort((walk, slab))


def _cut_batches(longest: np.ndarray, tokens: int) -> np.ndarray:
    """Where each batch ends: as late as sentences x longest stays within `tokens`, but after one pair at least."""
    counts = np.arange(1, min(len(longest), tokens // int(longest.min())) + 2)
    ends, start = [], 0
    while start < len(longest):
        window = longest[start : start + tokens // int(longest[start]) + 1]
        areas = np.maximum.accumulate(window) * counts[: len(window)]
        start += max(1, int(areas.searchsorted(tokens, side="right")))
        ends.append(start)
    return np.array(ends)


def _draw_pairs(pairs: EncodedPairs, rng: np.random.Generator) -> np.ndarray:
    """The pair numbers of an epoch: each once, or from every part as many as its weight asks for.

    A part gives all its pairs as often as they fit whole, and the rest at random, none of them twice.
    """
    small = np.uint32 if len(pairs) < 2**32 else np.int64
    if not pairs.parts:
        return np.arange(len(pairs), dtype=small)
    drawn = []
    for part, count in zip(pairs.parts, shares(pairs.parts, len(pairs)), strict=True):
        numbers = np.arange(part.first, part.end, dtype=small)
        while count >= len(numbers) > 0:
            drawn.append(numbers)
            count -= len(numbers)
        if count:
            drawn.append(rng.permutation(numbers)[:count])
    return np.concatenate(drawn)


def shares(parts: Sequence[PartRange], total: int) -> list[int]:
    """How many of `total` pairs each part gives: by weight, rounded so that they add up."""
    for part in parts:
        if part.end <= part.first:
            raise UserError(f"{part.name} has weight {part.weight:g} and 0 pairs; leave it out")
    weights = np.array([part.weight for part in parts], dtype=np.float64)
    exact = total * weights / weights.sum()
    counts = np.floor(exact).astype(np.int64)
    largest_rest = np.argsort(counts - exact, kind="stable")
    counts[largest_rest[: total - int(counts.sum())]] += 1
    return counts.tolist()
