"""An epoch's plan: little padding, no object for a pair, other batches in every epoch, sources mixed by weight."""

from collections import Counter
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.data.batch_plan import BatchPlan, make_batch_plan, shares
from nmt.data.batching import Batches, collate
from nmt.data.encoded_pairs import EncodedPairs, PartRange, Sequences, encode_pairs
from nmt.data.tokenizer import train_tokenizer
from nmt.errors import UserError
from nmt.training_settings import BatchingSettings, TokenizerSettings

POOL = 1_000_000


def pairs_of(src: np.ndarray, tgt: np.ndarray, parts: tuple[PartRange, ...] = ()) -> EncodedPairs:
    """Pairs of these lengths; all their ids are 7."""
    sides = [Sequences(np.full(lengths.sum(), 7), np.concatenate([[0], np.cumsum(lengths)])) for lengths in (src, tgt)]
    return EncodedPairs(*sides, parts=parts)


def like_text(count: int) -> EncodedPairs:
    """Lengths spread as those of news and debates are, targets a fifth longer than sources."""
    rng = np.random.default_rng(5)
    src = np.clip(rng.lognormal(3.3, 0.65, count), 1, 200)
    return pairs_of(src.astype(int), np.clip(1.2 * src * rng.lognormal(0, 0.2, count), 1, 200).astype(int))


def planned(pairs: EncodedPairs, tokens: int, pool: int = POOL, seed: int = 1) -> BatchPlan:
    return make_batch_plan(pairs, tokens, pool, np.random.default_rng(seed))


lengths = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), max_size=70)


@given(lengths=lengths, tokens=st.integers(1, 500), pool=st.integers(1, 90), seed=st.integers(0, 99))
def test_whatever_the_lengths_each_pair_comes_once_and_batches_keep_the_budget(
    lengths: list[tuple[int, int]], tokens: int, pool: int, seed: int
) -> None:
    sides = np.array(lengths, dtype=int).reshape(-1, 2)
    plan = planned(pairs_of(*sides.T), tokens, pool, seed)
    assert sorted(number for batch in plan for number in batch.tolist()) == list(range(len(lengths)))
    for batch in plan:
        assert len(batch) == 1 or len(batch) * (sides[batch].max() + 1) <= tokens


def test_sizes_and_padding_are_those_of_the_batches() -> None:
    pairs = like_text(2003)
    plan = planned(pairs, 700, pool=907)
    batches = [collate(pairs, indices) for indices in plan]
    assert plan.sizes.tolist() == [batch.src.numel() + batch.tgt_out.numel() for batch in batches]
    source = 1 - sum(int(batch.src_lengths.sum()) for batch in batches) / sum(batch.src.numel() for batch in batches)
    target = 1 - sum(int(batch.tgt_lengths.sum()) for batch in batches) / sum(b.tgt_out.numel() for b in batches)
    assert plan.padding.source == pytest.approx(source)
    assert plan.padding.target == pytest.approx(target)
    assert min(source, target) < plan.padding.both < max(source, target)


def test_a_plan_of_nothing_has_no_batch_and_no_padding() -> None:
    plan = planned(pairs_of(np.zeros(0, int), np.zeros(0, int)), 100)
    assert list(plan) == []
    assert plan.padding == (0, 0, 0)


def test_a_plan_ends() -> None:
    plan = planned(like_text(101), 300)
    with pytest.raises(IndexError):
        plan[len(plan)]


def test_a_plan_takes_few_bytes_a_pair() -> None:
    plan = planned(like_text(50_000), 4096)
    assert sum(array.nbytes for array in (plan.pairs, plan.bounds, plan.order, plan.widths)) < 5 * 50_000


@pytest.mark.parametrize(("tokens", "most"), [(4096, 0.05), (25_000, 0.12)])
def test_batches_are_compact_in_both_lengths(tokens: int, most: float) -> None:
    pairs = like_text(30_000)
    plan = planned(pairs, tokens)
    assert plan.padding.both < most
    full = np.maximum(pairs.src.lengths, pairs.tgt.lengths).sum() / tokens
    assert len(plan) < 1.1 * full + 2


@pytest.mark.parametrize(("count", "tokens"), [(61, 500), (61, 1000), (2003, 4096)])
def test_few_batches_are_others_in_every_epoch(count: int, tokens: int) -> None:
    batches = Batches(like_text(count), BatchingSettings.defaults(tokens=tokens, seed=1))
    epochs = [{frozenset(batch.tolist()) for batch in batches.plan(epoch)} for epoch in range(1, 6)]
    assert len(epochs[0]) > 2
    same = [len(a & b) / len(a) for a, b in pairwise(epochs)]
    assert np.mean(same) < 0.7
    firsts = {int(batches.plan(epoch)[0][0]) for epoch in range(1, 6)}
    assert len(firsts) > 1


MIXED = (PartRange("a", 0, 11, 3.0), PartRange("b", 11, 30, 1.0), PartRange("c", 30, 101, 1.0))


def test_each_source_gives_its_share_of_an_epoch_whole_repetitions_first() -> None:
    pairs = pairs_of(np.full(101, 3), np.full(101, 5), MIXED)
    drawn = [Counter(np.concatenate(list(planned(pairs, 60, seed=seed))).tolist()) for seed in (1, 2)]
    for counts in drawn:
        assert counts.total() == 101
        by_part = [[counts[i] for i in range(part.first, part.end)] for part in MIXED]
        assert [sum(part) for part in by_part] == [61, 20, 20]  # 101 x 3/5, 1/5, 1/5
        assert set(by_part[0]) == {5, 6}
        assert set(by_part[1]) == {1, 2}
        assert set(by_part[2]) == {0, 1}
    assert drawn[0] != drawn[1]


@given(weights=st.lists(st.floats(0.01, 100), min_size=1, max_size=9), total=st.integers(0, 10_000))
def test_shares_add_up_and_are_as_near_as_whole_numbers_can_be(weights: list[float], total: int) -> None:
    parts = tuple(PartRange(str(i), 0, 1, weight) for i, weight in enumerate(weights))
    counts = shares(parts, total)
    assert sum(counts) == total
    for count, weight in zip(counts, weights, strict=True):
        assert abs(count - total * weight / sum(weights)) < 1 + 1e-6


def test_a_weight_of_a_source_without_pairs_is_refused_by_name() -> None:
    with pytest.raises(UserError, match="web has weight 1 and 0 pairs"):
        shares((PartRange("web", 0, 0, 1.0), PartRange("b", 0, 3, 1.0)), 3)


@pytest.mark.slow
@pytest.mark.parametrize(("tokens", "most"), [(4096, 0.02), (25_000, 0.05)])
def test_padding_on_europarl(nmt_data: Path, tokens: int, most: float) -> None:
    from nmt.data.text import read_parallel

    folder = nmt_data / "europarl-fren"
    pairs = list(islice(read_parallel(str(folder / "train.en.gz"), str(folder / "train.fr.gz")), 120_000))
    settings = TokenizerSettings.defaults(vocab_size=4000)
    source = train_tokenizer([p.source for p in pairs[:10_000]], settings, normalises=True)
    target = train_tokenizer([p.target for p in pairs[:10_000]], settings, normalises=False)
    encoded = encode_pairs(pairs, source, target, max_pieces=200)
    assert planned(encoded, tokens).padding.both < most
