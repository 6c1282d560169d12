"""Batches by a token budget from sentences of similar length, in an order that (seed, epoch) decides."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from nmt.data.encoded import EncodedPairs
from nmt.data.tokenizer import BOS, EOS, PAD
from nmt.errors import require_whole


class Batch(NamedTuple):
    """Ids, right-padded. src ends in EOS; tgt_in starts with BOS; tgt_out is tgt_in one token later, ending in EOS."""

    src: Tensor  # (B, S)
    tgt_in: Tensor  # (B, T)
    tgt_out: Tensor  # (B, T)
    src_lengths: Tensor  # (B,) EOS included
    tgt_lengths: Tensor  # (B,) EOS included

    def to(self, device: str) -> "Batch":
        return Batch(*(tensor.to(device, non_blocking=True) for tensor in self))


def collate(pairs: EncodedPairs, indices: Sequence[int] | np.ndarray) -> Batch:
    """The pairs at `indices`, padded to the longest of each side."""
    src = [pairs.src[i] for i in indices]
    tgt = [pairs.tgt[i] for i in indices]
    return Batch(
        src=_padded(src, after=EOS),
        tgt_in=_padded(tgt, before=BOS),
        tgt_out=_padded(tgt, after=EOS),
        src_lengths=torch.tensor([len(ids) + 1 for ids in src]),
        tgt_lengths=torch.tensor([len(ids) + 1 for ids in tgt]),
    )


def _padded(sequences: Sequence[np.ndarray], before: int | None = None, after: int | None = None) -> Tensor:
    rows = np.full((len(sequences), max(map(len, sequences)) + 1), PAD, dtype=np.int64)
    start = 0 if before is None else 1
    for row, ids in zip(rows, sequences, strict=True):
        row[start : start + len(ids)] = ids
        if after is not None:
            row[len(ids)] = after
    if before is not None:
        rows[:, 0] = before
    return torch.from_numpy(rows)


@dataclass(frozen=True)
class BatchingSettings:
    """`tokens` bounds sentences x longest side, padding included; `max_pieces` bounds a sentence."""

    tokens: int = 4096
    max_pieces: int = 200
    pool: int = 1_000_000  # pairs sorted together; a larger corpus is cut into pools after shuffling
    seed: int = 1

    def __post_init__(self) -> None:
        for name in ("tokens", "max_pieces", "pool"):
            require_whole(f"batching.{name}", getattr(self, name))


class Batches:
    """The training batches of any epoch; a pure function of (seed, epoch), so any position can be returned to."""

    def __init__(self, pairs: EncodedPairs, settings: BatchingSettings) -> None:
        self._pairs = pairs
        self._settings = settings
        self._planned: tuple[int, list[np.ndarray]] = (-1, [])

    def plan(self, epoch: int) -> list[np.ndarray]:
        """The epoch's batches as arrays of pair numbers, in training order."""
        if self._planned[0] != epoch:
            rng = np.random.default_rng([self._settings.seed, epoch])
            order = rng.permutation(len(self._pairs))
            pools = [order[i : i + self._settings.pool] for i in range(0, len(order), self._settings.pool)]
            batches = [batch for pool in pools for batch in self._cut(pool)]
            self._planned = (epoch, [batches[i] for i in rng.permutation(len(batches))])
        return self._planned[1]

    def from_position(self, epoch: int, index: int) -> Iterator[tuple[int, int, Batch]]:
        """Endless (epoch, index of the next batch, batch), starting with batch `index` of `epoch`."""
        while True:
            plan = self.plan(epoch)
            for number in range(index, len(plan)):
                yield epoch, number + 1, collate(self._pairs, plan[number])
            epoch, index = epoch + 1, 0

    def _cut(self, pool: np.ndarray) -> Iterator[np.ndarray]:
        """Sort by both lengths, the target's order turning at each source length, and cut by the budget."""
        src, tgt = self._pairs.src.lengths[pool] + 1, self._pairs.tgt.lengths[pool] + 1
        longest = np.maximum(src, tgt)
        order = np.lexsort((np.where(src % 2 == 0, tgt, -tgt), src))
        pool, longest = pool[order], longest[order]
        start, width = 0, 0
        for i in range(len(pool)):
            width = max(width, int(longest[i]))
            if i > start and width * (i + 1 - start) > self._settings.tokens:
                yield pool[start:i]
                start, width = i, int(longest[i])
        if len(pool):
            yield pool[start:]


def in_order(pairs: EncodedPairs, settings: BatchingSettings) -> Iterator[Batch]:
    """Every pair once, in batches of the same budget: for validation."""
    for indices in Batches(pairs, settings).plan(0):
        yield collate(pairs, indices)


def padding_share(pairs: EncodedPairs, plan: Sequence[np.ndarray]) -> float:
    """Share of padding among the positions of both sides over the batches of `plan`."""
    real = total = 0
    for side in (pairs.src, pairs.tgt):
        lengths = side.lengths + 1
        for indices in plan:
            real += int(lengths[indices].sum())
            total += int(lengths[indices].max()) * len(indices)
    return 1 - real / total if total else 0.0
