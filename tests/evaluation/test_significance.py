"""Paired tests, Holm's correction and the difference of differences. All texts and numbers are invented."""

import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest as TheirTest

from nmt.errors import ConfigError
from nmt.evaluation import bootstrap
from nmt.evaluation.metrics import bleu_of, statistics
from nmt.evaluation.significance import PairedTest, difference_of_differences, holm, paired_tests
from nmt.settings import ResamplingSettings
from scripts.known_truth import paired_bs

QUICK = ResamplingSettings.defaults(resamples=200, trials=300)
LINES = 67


def reference_lines() -> list[str]:
    generator = random.Random(3)
    words = [f"w{k}" for k in range(97)]
    return [" ".join(generator.choices(words, k=generator.randrange(3, 23))) for _ in range(LINES)]


REFERENCES = reference_lines()


def outputs(right: float, seed: int) -> list[str]:
    """The references with this share of their words right."""
    generator = random.Random(seed)
    return [" ".join(w if generator.random() < right else "x" for w in line.split()) for line in REFERENCES]


def rows(lines: list[str]) -> np.ndarray:
    return statistics(lines, [REFERENCES]).bleu


GOOD, GOOD_TOO, POOR = rows(outputs(0.85, 1)), rows(outputs(0.85, 2)), rows(outputs(0.65, 3))


def paired(a: np.ndarray, b: np.ndarray, settings: ResamplingSettings = QUICK) -> PairedTest:
    return paired_tests([[a], [b]], [(0, 1)], settings)[0]


def p_values(result: PairedTest) -> tuple[float, float]:
    return result.p_bootstrap, result.p_randomisation


def test_a_clear_difference_has_small_p_values_and_an_interval_around_it() -> None:
    result = paired(POOR, GOOD)
    assert result.difference == pytest.approx(bleu_of(GOOD).score - bleu_of(POOR).score, abs=1e-9)
    assert 0 < result.interval[0] < result.difference < result.interval[1]
    assert p_values(result) == (1 / 201, 1 / 301)
    assert not result.identical


def test_identical_outputs_have_p_1_in_every_test() -> None:
    result = paired(GOOD, GOOD.copy())
    assert result == PairedTest(0.0, (0.0, 0.0), 1.0, 1.0, True)


def test_outputs_that_agree_in_one_part_only_are_identical_there() -> None:
    mixed = np.where(np.arange(LINES)[:, None] < 20, GOOD, POOR)
    assert paired(GOOD[:20], mixed[:20]).identical
    assert paired(GOOD, mixed).p_randomisation < 0.05


@pytest.mark.parametrize("line", [0, 5, 31])
def test_one_sentence_is_never_significant(line: int) -> None:
    result = paired(POOR[[line]], GOOD[[line]])
    assert result.difference != 0
    assert (result.p_bootstrap, result.p_randomisation) == (1.0, 1.0)


def test_one_sentence_that_differs_among_many_is_never_significant() -> None:
    changed = GOOD.copy()
    changed[11] = POOR[11]
    assert paired(GOOD, changed).p_bootstrap > 0.3
    assert paired(GOOD, changed).p_randomisation == 1


@given(st.integers(1, 5), st.integers(0, 9))
def test_under_six_sentences_nothing_is_significant_at_5_per_cent(n: int, seed: int) -> None:
    members = np.random.default_rng(seed).integers(LINES, size=n)
    result = paired(POOR[members], GOOD[members], ResamplingSettings.defaults(resamples=50, trials=5_000))
    assert result.p_bootstrap > 0.05
    assert result.p_randomisation > 0.05


def test_the_other_way_round_is_the_same_test_with_the_sign_changed() -> None:
    one, other = paired(GOOD, GOOD_TOO), paired(GOOD_TOO, GOOD)
    assert one.difference == -other.difference
    assert one.interval == (-other.interval[1], -other.interval[0])
    assert p_values(one) == p_values(other)


def test_lines_without_four_words_are_never_called_different() -> None:
    a = np.array([[2, 2, 2, 1, 0, 0, 2, 1, 0, 0]] * 30)
    b = np.array([[2, 2, 0, 0, 0, 0, 2, 1, 0, 0]] * 30)
    result = paired(a, b)
    assert (result.difference, result.p_bootstrap, result.p_randomisation) == (0, 1, 1)


def test_pairs_tested_together_have_the_results_of_each_alone() -> None:
    systems = [[GOOD], [POOR], [GOOD_TOO]]
    pairs = [(0, 1), (2, 0), (1, 2)]
    together = paired_tests(systems, pairs, QUICK)
    assert together == [paired(systems[a][0], systems[b][0]) for a, b in pairs]
    assert paired_tests(systems, [], QUICK) == []


def test_results_do_not_depend_on_how_much_is_held_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = paired(GOOD, GOOD_TOO)
    monkeypatch.setattr(bootstrap, "MAX_CELLS", LINES * 40)
    assert paired(GOOD, GOOD_TOO) == whole


def test_runs_of_a_system_are_averaged_and_swapped_together() -> None:
    twice = paired_tests([[POOR, POOR], [GOOD, GOOD]], [(0, 1)], QUICK)[0]
    once = paired(POOR, GOOD)
    assert twice.difference == pytest.approx(once.difference)
    assert p_values(twice) == p_values(once)
    mean = paired_tests([[POOR, GOOD], [GOOD_TOO, GOOD]], [(0, 1)], QUICK)[0]
    assert mean.difference == pytest.approx(paired(POOR, GOOD_TOO).difference / 2)


def test_a_pair_is_tested_on_the_runs_that_both_have() -> None:
    assert paired_tests([[POOR, GOOD, GOOD], [GOOD_TOO]], [(0, 1)], QUICK)[0] == paired(POOR, GOOD_TOO)


@pytest.mark.parametrize("kind", ["bs", "ar"])
def test_p_values_are_those_of_sacrebleu(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of its paired bootstrap those of its formula, which is not ours: docs/measuring.md."""
    monkeypatch.delenv("SACREBLEU_SEED", raising=False)
    texts = [outputs(0.8, 4), outputs(0.8, 5), outputs(0.82, 6), outputs(0.77, 7)]
    named = [(f"s{k}", lines) for k, lines in enumerate(texts)]
    theirs = TheirTest(named, {"BLEU": BLEU()}, [REFERENCES], kind, n_samples=200)()[1]["BLEU"][1:]
    settings = ResamplingSettings.defaults(resamples=200, trials=200)
    if kind == "bs":
        ours = [paired_bs(rows(texts[0]), rows(lines), settings) for lines in texts[1:]]
    else:
        tested = paired_tests([[rows(lines)] for lines in texts], [(0, 1), (0, 2), (0, 3)], settings)
        ours = [result.p_randomisation for result in tested]
    assert ours == [result.p_value for result in theirs]  # type: ignore[union-attr]


def test_sacrebleu_calls_a_copy_significant_and_we_do_not() -> None:
    texts = [("a", outputs(0.8, 4)), ("b", outputs(0.8, 4))]
    theirs = TheirTest(texts, {"BLEU": BLEU()}, [REFERENCES], "ar", n_samples=100)()[1]["BLEU"][1]
    assert theirs.p_value == 1 / 101  # type: ignore[union-attr]
    assert paired(rows(texts[0][1]), rows(texts[1][1])).p_randomisation == 1


def test_holm_on_a_textbook_example() -> None:
    """Sorted 0.005, 0.01, 0.03, 0.04 are multiplied by 4, 3, 2, 1, and no adjusted value is below one before it."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.4]) == pytest.approx([0.8, 0.8])
    assert holm([0.7, 0.9]) == [1.0, 1.0]
    assert holm([0.3]) == [0.3]
    assert holm([]) == []


@given(st.lists(st.floats(0.001, 1), max_size=13))
def test_holm_keeps_the_order_and_lies_between_no_correction_and_bonferroni(values: list[float]) -> None:
    adjusted = holm(values)
    ranked = sorted(zip(values, adjusted, strict=True))
    assert all(low[1] <= high[1] for low, high in pairwise(ranked))
    assert all(p <= q <= min(1, p * len(values)) for p, q in zip(values, adjusted, strict=True))


SHORT, LONG = np.arange(0, 30), np.arange(30, LINES)


def test_the_difference_of_differences_is_that_of_four_scores() -> None:
    a, b = [POOR, GOOD_TOO], [GOOD, GOOD]
    result = difference_of_differences(a, b, SHORT, LONG, QUICK)
    assert result is not None
    gaps = [
        [bleu_of(y[part]).score - bleu_of(x[part]).score for x, y in zip(a, b, strict=True)] for part in (SHORT, LONG)
    ]
    assert result.seeds == pytest.approx([long - short for short, long in zip(*gaps, strict=True)])
    assert result.estimate == pytest.approx(np.mean(result.seeds))
    assert (result.short[0], result.long[0]) == pytest.approx(np.mean(gaps, axis=1))
    for estimate, (low, high) in (result.short, result.long, (result.estimate, result.interval)):
        assert low < estimate < high


def test_it_changes_sign_with_the_systems_and_with_the_strata() -> None:
    one = difference_of_differences([POOR], [GOOD], SHORT, LONG, QUICK)
    other = difference_of_differences([GOOD], [POOR], SHORT, LONG, QUICK)
    turned = difference_of_differences([POOR], [GOOD], LONG, SHORT, QUICK)
    assert one is not None and other is not None and turned is not None  # noqa: PT018
    assert one.estimate == -other.estimate == -turned.estimate
    assert one.interval == pytest.approx((-other.interval[1], -other.interval[0]))


def test_each_stratum_is_resampled_within_itself() -> None:
    """The gap on short sentences has the interval of a paired bootstrap of the short ones alone."""
    result = difference_of_differences([POOR], [GOOD], SHORT, LONG, QUICK)
    assert result is not None
    assert result.short[1] == paired(POOR[SHORT], GOOD[SHORT]).interval


def test_a_stratum_without_sentences_or_without_any_four_words_gives_no_number() -> None:
    nothing = np.array([], dtype=np.int64)
    assert difference_of_differences([POOR], [GOOD], nothing, LONG, QUICK) is None
    assert difference_of_differences([POOR], [GOOD], SHORT, nothing, QUICK) is None
    tiny = np.array([[2, 2, 2, 1, 0, 0, 2, 1, 0, 0]])
    a, b = np.vstack([tiny, POOR]), np.vstack([tiny, GOOD])
    assert difference_of_differences([a], [b], np.array([0]), LONG, QUICK) is None


@pytest.mark.parametrize("trials", [0, 1.5, True])
def test_a_useless_number_of_trials_is_refused(trials: float) -> None:
    with pytest.raises(ConfigError, match="trials"):
        ResamplingSettings.defaults(trials=trials)  # type: ignore[arg-type]
