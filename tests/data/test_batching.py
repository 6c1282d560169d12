"""Each pair once an epoch, within the budget, in an order that seed and epoch decide."""

import gc
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import torch

from nmt.data.batching import Batches, collate, prefetch, validation_batches
from nmt.data.corpus import Pair
from nmt.data.encoded_pairs import EncodedPairs, PartRange, Sequences, encode_pairs
from nmt.data.tokenizer import BOS, EOS, PAD, train_tokenizer
from nmt.errors import ConfigError
from nmt.training_settings import BatchingSettings, TokenizerSettings
from tests.conftest import program_environment

RNG = np.random.default_rng(7)


def random_pairs(count: int, longest: int = 41) -> EncodedPairs:
    sides = [Sequences.of([RNG.integers(4, 99, n) for n in RNG.integers(1, longest, count)]) for _ in range(2)]
    return EncodedPairs(*sides)


PAIRS = random_pairs(523)


@pytest.mark.parametrize("tokens", [50, 400, 4096])
@pytest.mark.parametrize("pool", [101, 1_000_000])
def test_every_pair_is_used_once_an_epoch_and_the_budget_is_kept(tokens: int, pool: int) -> None:
    plan = Batches(PAIRS, BatchingSettings.defaults(tokens=tokens, pool=pool)).plan(3)
    assert sorted(np.concatenate(list(plan))) == list(range(len(PAIRS)))
    for indices in plan:
        batch = collate(PAIRS, indices)
        assert len(indices) * max(batch.src.shape[1], batch.tgt_in.shape[1]) <= tokens


def test_a_pair_longer_than_the_budget_is_a_batch_of_its_own() -> None:
    plan = Batches(PAIRS, BatchingSettings.defaults(tokens=1)).plan(1)
    assert [len(indices) for indices in plan] == [1] * len(PAIRS)


def test_the_order_depends_on_seed_and_epoch_alone() -> None:
    def order(seed: int, epoch: int) -> list[int]:
        return np.concatenate(
            list(Batches(PAIRS, BatchingSettings.defaults(tokens=200, seed=seed)).plan(epoch))
        ).tolist()

    assert order(1, 2) == order(1, 2)
    assert order(1, 2) != order(1, 3)
    assert order(1, 2) != order(2, 2)


def test_a_stream_taken_up_in_the_middle_goes_on_as_if_never_left() -> None:
    batches = Batches(PAIRS, BatchingSettings.defaults(tokens=200))
    stream = batches.from_position(1, 0)
    taken = [next(stream) for _ in range(len(batches.plan(1)) + 5)]
    epoch, index, _ = taken[10]
    again = Batches(PAIRS, BatchingSettings.defaults(tokens=200)).from_position(epoch, index)
    for expected in taken[11:]:
        got = next(again)
        assert got[:2] == expected[:2]
        assert got[2].src.equal(expected[2].src)


def test_a_batch_is_padded_on_the_right_and_marked_at_its_ends() -> None:
    pairs = EncodedPairs(Sequences.of([[5, 6, 7], [8]]), Sequences.of([[9], [10, 11]]))
    batch = collate(pairs, [0, 1])
    assert batch.src.tolist() == [[5, 6, 7, EOS], [8, EOS, PAD, PAD]]
    assert batch.tgt_in.tolist() == [[BOS, 9, PAD], [BOS, 10, 11]]
    assert batch.tgt_out.tolist() == [[9, EOS, PAD], [10, 11, EOS]]
    assert batch.src_lengths.tolist() == [4, 2]
    assert batch.tgt_lengths.tolist() == [2, 3]


@pytest.mark.parametrize("kind", ["int32", "mapped"])
def test_a_batch_is_the_same_as_one_made_row_by_row(kind: str, tmp_path: Path) -> None:
    pairs = PAIRS if kind == "int32" else EncodedPairs(*(mapped(side, tmp_path) for side in (PAIRS.src, PAIRS.tgt)))
    for indices in Batches(pairs, BatchingSettings.defaults(tokens=300)).plan(1):
        batch = collate(pairs, indices)
        for row, i in enumerate(indices):
            x, y = PAIRS.src[int(i)].tolist(), PAIRS.tgt[int(i)].tolist()
            assert batch.src[row].tolist() == padded([*x, EOS], batch.src.shape[1])
            assert batch.tgt_in[row].tolist() == padded([BOS, *y], batch.tgt_in.shape[1])
            assert batch.tgt_out[row].tolist() == padded([*y, EOS], batch.tgt_out.shape[1])
            assert (batch.src_lengths[row], batch.tgt_lengths[row]) == (len(x) + 1, len(y) + 1)
        assert {tensor.dtype for tensor in batch} == {torch.int64}


def padded(ids: list[int], width: int) -> list[int]:
    return ids + [PAD] * (width - len(ids))


def mapped(side: Sequences, folder: Path) -> Sequences:
    """The same ids in a file of 16-bit numbers."""
    path = folder / f"{id(side)}.ids"
    side.ids.astype(np.uint16).tofile(path)
    return Sequences(np.memmap(path, dtype=np.uint16, mode="r"), side.offsets)


def test_validation_takes_every_pair_once_whatever_the_weights() -> None:
    pairs = EncodedPairs(
        PAIRS.src, PAIRS.tgt, parts=(PartRange("a", 0, 100, 5.0), PartRange("b", 100, len(PAIRS), 1.0))
    )
    assert sum(len(batch.src) for batch in validation_batches(pairs, BatchingSettings.defaults(tokens=300))) == len(
        PAIRS
    )


def test_empty_and_overlong_pairs_are_left_out() -> None:
    tokenizer = train_tokenizer(["a b c d e f g"] * 3, TokenizerSettings.defaults(vocab_size=300, shrink=True), False)
    pairs = [Pair("a b", "c"), Pair("", "c"), Pair("a", " "), Pair("a " * 50, "b"), Pair("c", "d")]
    encoded = encode_pairs(pairs, tokenizer, tokenizer, max_pieces=20)
    assert [tokenizer.decode(encoded.src[i].tolist()) for i in range(len(encoded))] == ["a b", "c"]


def test_nothing_in_gives_nothing_out() -> None:
    tokenizer = train_tokenizer(["a b c"], TokenizerSettings.defaults(vocab_size=300, shrink=True), False)
    encoded = encode_pairs([], tokenizer, tokenizer, max_pieces=20)
    assert len(encoded) == 0
    assert list(validation_batches(encoded, BatchingSettings.defaults())) == []


@pytest.mark.parametrize("key", ["tokens", "max_pieces", "pool"])
def test_a_budget_of_nothing_is_refused_with_its_key(key: str) -> None:
    with pytest.raises(ConfigError, match=f"batching.{key}=0"):
        BatchingSettings.defaults(**{key: 0})


# Prefetching: items in order, and no thread left behind however the work ends

LONG = 20.0  # seconds; nothing waits that long unless it is broken


class Numbers:
    """0, 1, ... below `end`, with a record of what was made and of the end."""

    def __init__(self, end: int = 10**9) -> None:
        self.end = end
        self.made = 0
        self.third = threading.Event()
        self.closed = threading.Event()
        self.thread: threading.Thread | None = None

    def __iter__(self) -> Generator[int, None, None]:
        self.thread = threading.current_thread()
        try:
            for number in range(self.end):
                self.made += 1
                if self.made == 3:
                    self.third.set()
                yield number
        finally:
            self.closed.set()


@pytest.mark.parametrize("ahead", [1, 2, 7])
def test_nothing_is_lost_or_out_of_order(ahead: int) -> None:
    assert list(prefetch(iter(Numbers(101)), ahead)) == list(range(101))


def test_the_next_two_are_made_while_the_first_is_in_use_and_no_more() -> None:
    numbers = Numbers()
    with closing(prefetch(iter(numbers), ahead=2)) as stream:
        assert next(stream) == 0
        assert numbers.third.wait(LONG)
        assert numbers.thread is not threading.current_thread()
        for taken in range(2, 50):
            next(stream)
            assert numbers.made <= taken + 2


def test_an_exception_comes_in_its_turn() -> None:
    def failing() -> Iterator[int]:
        yield 1
        yield 2
        raise ValueError("no third")

    stream = prefetch(failing())
    assert [next(stream), next(stream)] == [1, 2]
    with pytest.raises(ValueError, match="no third"):
        next(stream)


def test_closing_ends_the_thread_and_what_it_runs() -> None:
    numbers = Numbers()
    with closing(prefetch(iter(numbers))) as stream:
        next(stream)
    assert numbers.closed.is_set()
    assert numbers.thread is not None
    assert not numbers.thread.is_alive()


def test_one_inside_another_is_closed_with_it() -> None:
    inner = Numbers()

    def outer() -> Generator[int, None, None]:
        with closing(prefetch(iter(inner))) as stream:
            yield from stream

    with closing(prefetch(outer())) as stream:
        assert [next(stream) for _ in range(5)] == [0, 1, 2, 3, 4]
    assert inner.closed.is_set()


def test_dropping_it_ends_the_thread() -> None:
    numbers = Numbers()
    stream = prefetch(iter(numbers))
    next(stream)
    del stream
    gc.collect()
    assert numbers.closed.wait(LONG)


PROGRAM = """
import os, signal, threading, time
from nmt.data.batching import prefetch

def numbers():
    yield 0
    while True:
        time.sleep(0.05)
        yield 1

stream = prefetch(numbers())
next(stream)
{ending}
"""


@pytest.mark.parametrize(
    ("ending", "code", "said"),
    [
        ("pass", 0, ""),
        ("raise ValueError('broken')", 1, "broken"),
        (
            "threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()\nfor _ in stream: pass",
            -signal.SIGINT,
            "KeyboardInterrupt",
        ),
    ],
)
def test_a_program_with_an_open_stream_ends(ending: str, code: int, said: str) -> None:
    command = [sys.executable, "-c", PROGRAM.format(ending=ending)]
    done = subprocess.run(command, capture_output=True, text=True, env=program_environment(), timeout=LONG)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
