"""Batches by a token budget from sentences of similar length, ordered by (seed, epoch), prefetched in a thread."""

import sys
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import count
from queue import SimpleQueue
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from nmt.data.batch_plan import BatchPlan, make_batch_plan
from nmt.data.encoded_pairs import EncodedPairs, Sequences
from nmt.data.tokenizer import BOS, EOS, PAD
from nmt.training_settings import BatchingSettings

T = TypeVar("T")
JOIN_TIMEOUT = 5.0  # seconds to wait for the thread to finish its current item


def prefetch(source: Generator[T, None, None], ahead: int = 2) -> Generator[T, None, None]:
    """What `source` yields, produced in a thread while the caller is busy; at most `ahead` of them wait.

    An exception in `source` is raised here, in order. When this generator is closed, dropped or left by an
    exception, the thread ends and `source` is closed. Only the thread runs `source`, from the first `next` on.
    """
    ready: SimpleQueue[tuple[T, None] | tuple[None, BaseException]] = SimpleQueue()
    slots = threading.Semaphore(ahead)
    closed = threading.Event()

    def work() -> None:
        try:
            while slots.acquire() and not closed.is_set():
                ready.put((next(source), None))
        except BaseException as error:  # StopIteration at the end
            ready.put((None, error))
        finally:
            source.close()

    thread = threading.Thread(target=work, name="prefetch", daemon=True)
    thread.start()
    try:
        while True:
            item, error = ready.get()
            if isinstance(error, StopIteration):
                return
            if error is not None:
                raise error
            slots.release()
            yield item  # type: ignore[misc]
    finally:
        closed.set()
        slots.release()
        # at the interpreter's exit threads are frozen, and the garbage collector may run in the thread itself
        if not sys.is_finalizing() and thread is not threading.current_thread():
            thread.join(JOIN_TIMEOUT)


class Batch(NamedTuple):
    """Ids, right-padded. src ends in EOS; tgt_in starts with BOS; tgt_out is tgt_in one token later, ending in EOS."""

    src: Tensor  # (B, S)
    tgt_in: Tensor  # (B, T)
    tgt_out: Tensor  # (B, T)
    src_lengths: Tensor  # (B,) EOS included
    tgt_lengths: Tensor  # (B,) EOS included

    def to(self, device: str) -> "Batch":
        return Batch(*(tensor.to(device, non_blocking=True) for tensor in self))

    def halves(self) -> list["Batch"]:
        """The first and the second half of its sentences, or itself where it has one."""
        middle = (len(self.src) + 1) // 2
        parts = [Batch(*(tensor[part] for tensor in self)) for part in (slice(middle), slice(middle, None))]
        return [part for part in parts if len(part.src)]

    def pinned(self) -> "Batch":
        """In page-locked memory, which a CUDA device copies asynchronously."""
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
    """(B, longest) ids, with room for an EOS (still PAD) after each; (B,) lengths. Both count the EOS."""
    starts = side.offsets[numbers]
    lengths = np.asarray(side.offsets[numbers + 1] - starts, dtype=np.int64)
    columns = np.arange(lengths.max() + 1)
    real = columns < lengths[:, None]
    rows = np.full(real.shape, PAD, dtype=np.int64)
    rows[real] = side.ids[(starts[:, None] + columns)[real]]
    return rows, lengths + 1


class Batches:
    """The training batches of any epoch; a pure function of (seed, epoch), so any position can be returned to."""

    def __init__(self, pairs: EncodedPairs, settings: BatchingSettings) -> None:
        self.settings = settings
        self._pairs = pairs
        self._planned: tuple[int, BatchPlan] | None = None

    def plan(self, epoch: int) -> BatchPlan:
        """The epoch's batches, in training order. The last plan made is kept."""
        planned = self._planned  # read once: another thread may replace it
        if planned is None or planned[0] != epoch:
            rng = np.random.default_rng([self.settings.seed, epoch])
            planned = epoch, make_batch_plan(self._pairs, self.settings.tokens, self.settings.pool, rng)
            self._planned = planned
        return planned[1]

    def from_position(self, epoch: int, index: int) -> Generator[tuple[int, int, Batch], None, None]:
        """Endless (epoch, index of the next batch, batch), starting with batch `index` of `epoch`."""
        ahead = prefetch(((number, self.plan(number)) for number in count(epoch)), ahead=1)
        with closing(ahead) as plans:  # no batch waits for the plan of a new epoch
            for number, plan in plans:
                for batch in range(index, len(plan)):
                    yield number, batch + 1, collate(self._pairs, plan[batch])
                index = 0


def validation_batches(pairs: EncodedPairs, settings: BatchingSettings) -> Iterator[Batch]:
    """Every pair once, in batches of the same budget: for validation."""
    for indices in Batches(replace(pairs, parts=()), settings).plan(0):
        yield collate(pairs, indices)
