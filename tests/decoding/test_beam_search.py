"""Search on a model small enough to enumerate all translations and their probabilities."""

import itertools
import math
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from nmt.data.tokenizer import BOS, EOS, PAD
from nmt.decoding.beam_search import Candidate, batch_by_length, search, topk_of_rows
from nmt.errors import ConfigError
from nmt.models.seq2seq import Seq2Seq
from nmt.settings import SearchSettings

PIECES = (EOS, 4, 5, 6)  # allowed in a translation; 0, 1 and 2 are not
V = 7
SPECIALS = {0, 1, 2, EOS}


class Memory(NamedTuple):
    first: Tensor  # (B,) the first source piece decides how a sentence is translated
    states: tuple[Tensor]  # (B, S)


class Table(Seq2Seq):
    """Logits by the first source piece and the last two target pieces; counts the sentences of each step."""

    def __init__(self, seed: int, spread: float = 2.0, end: float = 0.0) -> None:
        super().__init__()
        self.table = spread * torch.randn(11, V, V, V, generator=torch.Generator().manual_seed(seed))
        self.table[..., EOS] += end
        self.sentences: list[int] = []  # different sentences in each step

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        raise NotImplementedError

    def project(self, features: Tensor) -> Tensor:
        return features

    def encode(self, src: Tensor) -> Memory:
        return Memory(src[:, 0], (src,))

    def start(self, memory: Memory) -> Any:
        return [torch.full_like(memory.first, PAD), None]

    def step(self, token: Tensor, state: Any, memory: Memory) -> tuple[Tensor, Any]:
        self.sentences.append(len(set(memory.first.tolist())))
        assert len(token) == len(state[0]) == len(memory.first) == len(memory.states[0])
        return self.table[memory.first, state[0], token].clone(), [token, None]

    def weights(self, src: Tensor, tgt_in: Tensor) -> Tensor | None:
        return None

    def log_prob(self, first: int, ids: list[int]) -> float:
        """Of ids and EOS, by definition."""
        before, last, total = PAD, BOS, 0.0
        for piece in [*ids, EOS]:
            total += self.table[first, before, last].log_softmax(-1)[piece].item()
            before, last = last, piece
        return total


def sources(*firsts: int, pieces: int = 1) -> Tensor:
    return torch.tensor([[first, *[9] * (pieces - 1), EOS] for first in firsts])


def all_translations(model: Table, first: int, max_length: int, length_penalty: float) -> list[tuple[float, list[int]]]:
    """All translations of at most `max_length` pieces, best first."""
    translations = []
    for length in range(max_length + 1):
        for ids in itertools.product(PIECES[1:], repeat=length):
            log_prob = model.log_prob(first, list(ids))
            translations.append((log_prob / (length + 1) ** length_penalty, list(ids)))
    return sorted(translations, key=lambda pair: -pair[0])


def settings(**values: Any) -> SearchSettings:
    return SearchSettings.defaults(**{"max_ratio": 0.0, "max_extra": 5, **values})


@pytest.mark.parametrize("length_penalty", [0.0, 0.6, 1.0, 2.0])
@pytest.mark.parametrize("seed", range(5))
def test_a_wide_beam_finds_what_exhaustive_search_finds(seed, length_penalty):
    model = Table(seed)
    results = search(model, sources(4, 5, 8), settings(beam=400, n_best=7, length_penalty=length_penalty))
    for first, candidates in zip([4, 5, 8], results, strict=True):
        best = all_translations(model, first, 5, length_penalty)[:7]
        scores = [score for score, _ in best]
        assert [candidate.ids for candidate in candidates] == [ids for _, ids in best]
        assert [candidate.score for candidate in candidates] == pytest.approx(scores, abs=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_a_large_n_best_returns_every_translation_once(seed):
    count = sum(3**length for length in range(4))
    [candidates] = search(Table(seed), sources(4), settings(beam=100, n_best=100, max_extra=3))
    assert len(candidates) == count
    assert len({tuple(candidate.ids) for candidate in candidates}) == count
    assert all(math.isfinite(candidate.score) for candidate in candidates)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("beam", [1, 2, 3, 7])
def test_a_log_probability_is_that_of_the_sentence_and_its_end(seed, beam):
    model = Table(seed)
    results = search(model, sources(4, 7), settings(beam=beam, n_best=beam))
    for first, candidates in zip([4, 7], results, strict=True):
        for candidate in candidates:
            assert candidate.log_prob == pytest.approx(model.log_prob(first, candidate.ids), abs=1e-4)
            assert candidate.score == pytest.approx(candidate.log_prob / (len(candidate.ids) + 1), abs=1e-4)


def greedy(model: Table, first: int, max_length: int) -> list[int]:
    before, last, ids = PAD, BOS, []
    while len(ids) < max_length:
        logits = model.table[first, before, last].clone()
        logits[:EOS] = -torch.inf
        before, last = last, int(logits.argmax())
        if last == EOS:
            break
        ids.append(last)
    return ids


@pytest.mark.parametrize("seed", range(20))
def test_a_beam_of_one_is_greedy_search(seed):
    model = Table(seed)
    results = search(model, sources(4, 5, 6, 7), settings(beam=1, max_extra=13))
    for first, candidates in zip([4, 5, 6, 7], results, strict=True):
        assert [candidate.ids for candidate in candidates] == [greedy(model, first, 13)]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
def test_a_larger_n_best_does_not_change_the_best(seed, length_penalty):
    model = Table(seed)
    common = {"beam": 5, "length_penalty": length_penalty, "max_extra": 17}
    best = search(model, sources(4, 5, 6), settings(n_best=1, **common))
    five_best = search(model, sources(4, 5, 6), settings(n_best=5, **common))
    assert [candidates[0] for candidates in best] == [candidates[0] for candidates in five_best]
    for candidates in five_best:
        scores = [candidate.score for candidate in candidates]
        assert len(candidates) == 5
        assert scores == sorted(scores, reverse=True)


def search_each(model: Table, firsts: list[int], options: SearchSettings) -> list[list[Candidate]]:
    return [search(model, sources(first), options)[0] for first in firsts]


@pytest.mark.parametrize("seed", range(5))
def test_the_rest_of_the_batch_and_its_order_change_nothing(seed):
    model = Table(seed)
    options = settings(beam=3, n_best=3, max_extra=11)
    alone = search_each(model, [4, 5, 6, 7, 8, 9], options)
    assert search(model, sources(4, 5, 6, 7, 8, 9), options) == alone
    assert search(model, sources(9, 8, 7, 6, 5, 4), options) == alone[::-1]


def test_the_maximum_length_follows_the_length_of_each_source():
    model = Table(0, end=-50.0)  # EOS is unlikely everywhere
    src = torch.tensor([[4, 9, 9, EOS], [5, EOS, PAD, PAD], [6, 9, EOS, PAD]])
    results = search(model, src, SearchSettings.defaults(beam=2, n_best=2, max_ratio=2.0, max_extra=5))
    assert [[len(c.ids) for c in candidates] for candidates in results] == [[11, 11], [7, 7], [9, 9]]


def test_a_candidate_is_capped_if_and_only_if_it_has_the_maximum_length():
    for seed in range(10):
        for candidates in search(Table(seed), sources(4, 5, 6), settings(beam=4, n_best=4)):
            assert all(candidate.capped == (len(candidate.ids) == 5) for candidate in candidates)


def test_no_special_piece_is_generated_however_likely():
    model = Table(0)
    model.table[..., :EOS] += 30.0
    for candidates in search(model, sources(4, 5), settings(beam=9, n_best=9)):
        assert len(candidates) == 9
        assert all(SPECIALS.isdisjoint(candidate.ids) for candidate in candidates)


def test_impossible_translations_are_not_returned():
    model = Table(0)
    model.table[..., 5:] = -torch.inf  # 4 and EOS remain: one translation of each length
    [candidates] = search(model, sources(4), settings(beam=64, n_best=64))
    assert sorted(candidate.ids for candidate in candidates) == [[4] * length for length in range(6)]


def test_scores_that_are_not_finite_give_no_candidates():
    model = Table(0)
    model.table[5] = torch.nan
    results = search(model, sources(4, 5), settings(beam=2))
    assert [len(candidates) for candidates in results] == [1, 0]


def test_finished_sentences_leave_the_batch():
    model = Table(0, spread=0.0)
    for first, length in ((4, 1), (5, 3), (6, 8)):  # sentence 4 ends at once, 5 and 6 after more pieces
        chain = [BOS, 4, 4, 5, 5, 6, 6, 4, 6][: length + 1]  # no two pieces follow each other twice
        for before, last, after in zip([PAD, *chain], chain, [*chain[1:], EOS], strict=False):
            model.table[first, before, last, after] = 20.0
    results = search(model, sources(4, 5, 6), settings(beam=2, max_extra=20))
    assert [len(candidates[0].ids) for candidates in results] == [1, 3, 8]
    assert model.sentences[:2] == [3, 3]
    assert model.sentences == sorted(model.sentences, reverse=True)
    assert model.sentences[-1] == 1
    assert len(model.sentences) < 20, "the last sentence is finished long before the maximum length"


def test_of_two_candidates_with_one_text_the_better_is_kept_and_counts_once():
    model = Table(3)

    def text(ids: list[int]) -> str:
        return "".join("aab"[piece - 4] for piece in ids)  # 4 and 5 spell the same letter

    [candidates] = search(model, sources(4), settings(beam=400, n_best=31), text)
    best: dict[str, float] = {}
    for score, ids in all_translations(model, 4, 5, 1.0):
        best.setdefault(text(ids), score)
    assert [text(candidate.ids) for candidate in candidates] == list(best)[:31]
    assert [candidate.score for candidate in candidates] == pytest.approx(list(best.values())[:31], abs=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_fill_adds_texts_to_a_beam_that_has_too_few_and_keeps_the_best(seed):
    def text(ids: list[int]) -> str:
        return "a" * (len(ids) // 4)  # at the maximum of 13 pieces only one text is left

    model = Table(seed, end=-9.0)
    options = settings(beam=3, n_best=3, max_extra=13)
    [few] = search(model, sources(4), options, text)
    [filled] = search(model, sources(4), options, text, fill=True)
    scores = [candidate.score for candidate in filled]
    assert len(few) < 3
    assert filled[0] == few[0]
    assert len({text(candidate.ids) for candidate in filled}) == len(filled) > len(few)
    assert scores == sorted(scores, reverse=True)


def test_a_maximum_length_of_zero_allows_the_empty_translation_alone():
    assert [c.ids for c in search(Table(0), sources(4), settings(beam=3, n_best=3, max_extra=0))[0]] == [[]]


@pytest.mark.parametrize("columns", [1, 7, 256, 257, 1000, 1031, 8000])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_topk_of_rows_equals_topk(columns, k):
    scores = torch.randn(13, columns, generator=torch.Generator().manual_seed(columns))
    scores[0, 3:] = -torch.inf
    expected = scores.topk(min(k, columns))
    best, position = topk_of_rows(scores, min(k, columns))
    assert torch.equal(best, expected.values)
    assert torch.equal(scores.gather(1, position), expected.values)


@pytest.mark.parametrize(
    "values",
    [
        {"beam": 0},
        {"n_best": 0},
        {"batch": 0},
        {"beam": 2.5},
        {"length_penalty": -1.0},
        {"length_penalty": float("nan")},
        {"max_extra": -1},
    ],
)
def test_settings_that_cannot_be_used_are_refused(values):
    with pytest.raises(ConfigError, match=next(iter(values))):
        SearchSettings.defaults(**values)


def test_more_translations_than_beams_are_refused():
    with pytest.raises(ConfigError, match=r"n_best=6 needs beam=6 or more, not 5"):
        search(Table(1), sources(4), SearchSettings.defaults(n_best=6))


def test_batches_hold_one_length_each_and_every_sentence_once():
    lengths = [3, 11, 3, 3, 7, 3, 11, 3]
    groups = batch_by_length(lengths, SearchSettings.defaults(batch=3))
    assert sorted(itertools.chain(*groups)) == list(range(8))
    assert [{lengths[index] for index in group} for group in groups] == [{11}, {7}, {3}, {3}]
    assert max(map(len, groups)) == 3


def test_long_sentences_come_in_small_batches():
    assert max(map(len, batch_by_length([1000] * 20, SearchSettings.defaults(batch=20, beam=5)))) <= 5
    assert [len(group) for group in batch_by_length([10**6] * 2, SearchSettings.defaults())] == [1, 1]
