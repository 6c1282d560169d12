"""Batches by a token budget from sentences of similar length, in an order that (seed, epoch) decides."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import count
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from nmt.data.encoded import EncodedPairs, Sequences
from nmt.data.plan import Plan, make_plan
from nmt.data.prefetch import prefetch
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

    def pinned(self) -> "Batch":
        """In memory that a CUDA device reads by itself, while the processor goes on."""
        return Batch(*(tensor.pin_memory() for tensor in self))


def collate(pairs: EncodedPairs, indices: Sequence[int] | np.ndarray) -> Batch:
    """The pairs at `indices`, padded to the longest of each side."""
    numbers = np.asarray(indices)
    src, src_lengths = _rows(pairs.src, numbers)
    tgt_out, tgt_lengths = _rows(pairs.tgt, numbers)
    tgt_in = np.empty_like(tgt_out)
    tgt_in[:, 0], tgt_in[:, 1:] = BOS, tgt_out[:, :-1]
    for rows, lengths in ((src, src_lengths), (tgt_out, tgt_lengths)):
        rows[np.arange(len(rows)), lengths - 1] = EOS
    return Batch(*map(torch.from_numpy, (src, tgt_in, tgt_out, src_lengths, tgt_lengths)))


def _rows(side: Sequences, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(B, longest) ids and the place of an EOS, still PAD, after each; (B,) lengths. Both count the EOS."""
    starts = side.offsets[numbers]
    lengths = np.asarray(side.offsets[numbers + 1] - starts, dtype=np.int64)
    columns = np.arange(lengths.max() + 1)
    real = columns < lengths[:, None]
    rows = np.full(real.shape, PAD, dtype=np.int64)
    rows[real] = side.ids[(starts[:, None] + columns)[real]]
    return rows, lengths + 1


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
        self.settings = settings
        self._pairs = pairs
        self._planned: tuple[int, Plan] | None = None

    def plan(self, epoch: int) -> Plan:
        """The epoch's batches, in training order. The last plan made is kept."""
        planned = self._planned  # another thread may put the next one there
        if planned is None or planned[0] != epoch:
            rng = np.random.default_rng([self.settings.seed, epoch])
            planned = epoch, make_plan(self._pairs, self.settings.tokens, self.settings.pool, rng)
            self._planned = planned
        return planned[1]

    def from_position(self, epoch: int, index: int) -> Generator[tuple[int, int, Batch], None, None]:
        """Endless (epoch, index of the next batch, batch), starting with batch `index` of `epoch`."""
        with closing(prefetch(self._plans(epoch), ahead=1)) as plans:  # no batch waits for the plan of a new epoch
            for number, plan in plans:
                for done in range(index, len(plan)):
                    yield number, done + 1, collate(self._pairs, plan[done])
                index = 0

    def _plans(self, epoch: int) -> Generator[tuple[int, Plan], None, None]:
        for number in count(epoch):
            yield number, self.plan(number)


def in_order(pairs: EncodedPairs, settings: BatchingSettings) -> Iterator[Batch]:
    """Every pair once, in batches of the same budget: for validation."""
    for indices in Batches(replace(pairs, parts=()), settings).plan(0):
        yield collate(pairs, indices)
