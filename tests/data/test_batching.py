"""Each pair once an epoch, within the budget, in an order that seed and epoch decide."""

from pathlib import Path

import numpy as np
import pytest
import torch

from nmt.data.batching import Batches, BatchingSettings, collate, in_order
from nmt.data.corpus import Pair
from nmt.data.encoded import EncodedPairs, Part, Sequences, encode_pairs
from nmt.data.tokenizer import BOS, EOS, PAD, TokenizerSettings, train_tokenizer
from nmt.errors import ConfigError

RNG = np.random.default_rng(7)


def random_pairs(count: int, longest: int = 41) -> EncodedPairs:
    sides = [Sequences.of([RNG.integers(4, 99, n) for n in RNG.integers(1, longest, count)]) for _ in range(2)]
    return EncodedPairs(*sides)


PAIRS = random_pairs(523)


@pytest.mark.parametrize("tokens", [50, 400, 4096])
@pytest.mark.parametrize("pool", [101, 1_000_000])
def test_every_pair_is_used_once_an_epoch_and_the_budget_is_kept(tokens: int, pool: int) -> None:
    plan = Batches(PAIRS, BatchingSettings(tokens=tokens, pool=pool)).plan(3)
    assert sorted(np.concatenate(list(plan))) == list(range(len(PAIRS)))
    for indices in plan:
        batch = collate(PAIRS, indices)
        assert len(indices) * max(batch.src.shape[1], batch.tgt_in.shape[1]) <= tokens


def test_a_pair_longer_than_the_budget_is_a_batch_of_its_own() -> None:
    plan = Batches(PAIRS, BatchingSettings(tokens=1)).plan(1)
    assert [len(indices) for indices in plan] == [1] * len(PAIRS)


def test_the_order_depends_on_seed_and_epoch_alone() -> None:
    def order(seed: int, epoch: int) -> list[int]:
        return np.concatenate(list(Batches(PAIRS, BatchingSettings(tokens=200, seed=seed)).plan(epoch))).tolist()

    assert order(1, 2) == order(1, 2)
    assert order(1, 2) != order(1, 3)
    assert order(1, 2) != order(2, 2)


def test_a_stream_taken_up_in_the_middle_goes_on_as_if_never_left() -> None:
    batches = Batches(PAIRS, BatchingSettings(tokens=200))
    stream = batches.from_position(1, 0)
    taken = [next(stream) for _ in range(len(batches.plan(1)) + 5)]
    epoch, index, _ = taken[10]
    again = Batches(PAIRS, BatchingSettings(tokens=200)).from_position(epoch, index)
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
    for indices in Batches(pairs, BatchingSettings(tokens=300)).plan(1):
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
    pairs = EncodedPairs(PAIRS.src, PAIRS.tgt, parts=(Part("a", 0, 100, 5.0), Part("b", 100, len(PAIRS), 1.0)))
    assert sum(len(batch.src) for batch in in_order(pairs, BatchingSettings(tokens=300))) == len(PAIRS)


def test_empty_and_overlong_pairs_are_left_out() -> None:
    tokenizer = train_tokenizer(["a b c d e f g"] * 3, TokenizerSettings(vocab_size=300, shrink=True), False)
    pairs = [Pair("a b", "c"), Pair("", "c"), Pair("a", " "), Pair("a " * 50, "b"), Pair("c", "d")]
    encoded = encode_pairs(pairs, tokenizer, tokenizer, max_pieces=20)
    assert [tokenizer.decode(encoded.src[i].tolist()) for i in range(len(encoded))] == ["a b", "c"]


def test_nothing_in_gives_nothing_out() -> None:
    tokenizer = train_tokenizer(["a b c"], TokenizerSettings(vocab_size=300, shrink=True), False)
    encoded = encode_pairs([], tokenizer, tokenizer, max_pieces=20)
    assert len(encoded) == 0
    assert list(in_order(encoded, BatchingSettings())) == []


@pytest.mark.parametrize("key", ["tokens", "max_pieces", "pool"])
def test_a_budget_of_nothing_is_refused_with_its_key(key: str) -> None:
    with pytest.raises(ConfigError, match=f"batching.{key}=0"):
        BatchingSettings(**{key: 0})
