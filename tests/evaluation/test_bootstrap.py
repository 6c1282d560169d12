"""Intervals agree with sacreBLEU's and with the formula."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU

from nmt.errors import ConfigError
from nmt.evaluation import bootstrap
from nmt.evaluation.bootstrap import bleu_of_sums, block_sums, mean_interval, resampled_sums
from nmt.evaluation.metrics import statistics
from nmt.settings import BootstrapSettings


def noisy_corpus(lines: int) -> tuple[list[str], list[str]]:
    """Hypotheses of which about a third of the words are wrong, and their references."""
    generator = random.Random(5)
    vocabulary = [f"w{k}" for k in range(97)]
    references = [" ".join(generator.choices(vocabulary, k=generator.randrange(1, 23))) for _ in range(lines)]
    hypotheses = [
        " ".join(word if generator.random() < 0.7 else generator.choice(vocabulary) for word in line.split())
        for line in references
    ]
    return hypotheses, references


def test_the_half_width_is_that_of_sacrebleu_confidence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SACREBLEU_SEED", raising=False)
    hypotheses, references = noisy_corpus(61)
    low, high = mean_interval([statistics(hypotheses, [references]).bleu], BootstrapSettings.defaults(resamples=200))
    theirs = BLEU().corpus_score(hypotheses, [references], n_bootstrap=200)
    assert (high - low) / 2 == pytest.approx(theirs._ci, abs=1e-6)


def test_the_interval_covers_the_score_and_is_the_same_again() -> None:
    hypotheses, references = noisy_corpus(101)
    rows = statistics(hypotheses, [references]).bleu
    low, high = mean_interval([rows], BootstrapSettings.defaults())
    assert low < bleu_of_sums(rows.sum(axis=0, keepdims=True).astype(float))[0] < high
    assert (low, high) == mean_interval([rows], BootstrapSettings.defaults())
    assert (low, high) != mean_interval([rows], BootstrapSettings.defaults(seed=2))


def test_a_block_is_drawn_as_a_whole() -> None:
    rows = np.arange(12).reshape(6, 2)
    assert block_sums(rows, np.arange(6), None) is rows
    assert block_sums(rows, np.arange(6), 4).tolist() == [[12, 16], [18, 20]]
    assert block_sums(rows[:3], np.array([0, 7, 1]), 4).tolist() == [[4, 6], [2, 3]]  # of a bin: by their document


def test_resamples_do_not_depend_on_how_many_are_held_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    hypotheses, references = noisy_corpus(13)
    rows = statistics(hypotheses, [references]).bleu
    whole = resampled_sums(rows, BootstrapSettings.defaults(resamples=47))
    monkeypatch.setattr(bootstrap, "MAX_CELLS", 13 * 5)
    assert (resampled_sums(rows, BootstrapSettings.defaults(resamples=47)) == whole).all()


@given(st.lists(st.tuples(*[st.integers(0, 9)] * 10), min_size=1, max_size=7))
@settings(deadline=None)
def test_the_vectorised_formula_is_sacrebleus(rows: list[tuple[int, ...]]) -> None:
    sums = np.array(rows, dtype=float)
    sums[:, 2:6] = np.minimum(sums[:, 2:6], sums[:, 6:])  # no more matches than n-grams
    for row, score in zip(sums, bleu_of_sums(sums), strict=True):
        expected = BLEU.compute_bleu(list(row[2:6]), list(row[6:]), int(row[0]), int(row[1]), "exp").score
        assert score == pytest.approx(min(expected, 100), abs=1e-9)


@pytest.mark.parametrize("resamples", [39, 0, -1, 1.5])
def test_a_useless_number_of_resamples_is_refused(resamples: float) -> None:
    with pytest.raises(ConfigError, match=r"bootstrap\.resamples"):
        BootstrapSettings.defaults(resamples=resamples)  # type: ignore[arg-type]
