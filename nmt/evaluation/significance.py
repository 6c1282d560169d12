"""Whether systems differ by more than the luck of the test sentences, and whether their gap grows with length.

A system has one run or more (training seeds), each with the statistics of every test sentence; its score is the
mean of its runs' corpus BLEU. Sentences are what is resampled, the same ones for all systems and runs; a p value does
not generalise to another training, only the interval of the difference of differences does.

Paired bootstrap: Koehn 2004. Approximate randomisation: Riezler and Maxwell 2005; Clark et al. 2011. Both draw as
sacreBLEU draws, but here ties count, so that outputs that are the same are never called different.
"""

from collections.abc import Sequence
from itertools import accumulate, islice
from typing import NamedTuple

import numpy as np

from nmt.evaluation.bootstrap import bleu_of_sums, block_sums, draw_batches, percentile_interval, resampled_sums
from nmt.evaluation.metrics import WIDTH, bleu_of
from nmt.settings import BootstrapSettings, ResamplingSettings

TIE = 1e-9  # BLEU; differences closer than this are equal but for rounding
MASK_BATCH = 32  # bits: numpy starts a call for random bits at a new word, so calls must end where a word ends

SystemStatistics = Sequence[np.ndarray]  # for each run (N, 10) int64


class PairedTest(NamedTuple):
    """System b against system a on the same N sentences."""

    difference: float  # BLEU of b minus BLEU of a
    interval: tuple[float, float]  # 95%, percentiles of the paired bootstrap
    p_bootstrap: float  # two-sided; for N under 6 never below 0.05
    p_randomisation: float  # two-sided
    identical: bool  # the statistics of every sentence are the same


class Interaction(NamedTuple):
    """How much larger the gap b - a is on long sentences than on short ones, in BLEU."""

    estimate: float
    interval: tuple[float, float]  # 95%
    seeds: list[float]  # the estimate from each pair of runs alone
    short: tuple[float, tuple[float, float]]  # the gap and its 95% interval
    long: tuple[float, tuple[float, float]]


class _Run(NamedTuple):
    rows: np.ndarray  # (N, 10)
    total: np.ndarray  # (10,)
    resampled: np.ndarray  # (R,) BLEU of the resamples
    kept: np.ndarray  # (T, 10) sums of the sentences that each mask keeps


def paired_tests(
    systems: Sequence[SystemStatistics], pairs: Sequence[tuple[int, int]], settings: ResamplingSettings
) -> list[PairedTest]:
    """Tests each pair (a, b) of indices into `systems` on N >= 1 sentences.

    A pair is tested on as many runs as both have, the first of each. Sums of resamples and of masked sentences
    are taken once a run and shared by its pairs.
    """
    if not pairs:
        return []
    rows = [run for system in systems for run in system]
    stacked = np.hstack(rows)
    resampled, kept = _split_runs(resampled_sums(stacked, settings)), _split_runs(_masked_sums(stacked, settings))
    of_each = (
        _Run(own, own.sum(axis=0).astype(np.float64), bleu_of_sums(drawn), swapped)
        for own, drawn, swapped in zip(rows, resampled, kept, strict=True)
    )
    runs = [list(islice(of_each, len(system))) for system in systems]
    return [_test(list(zip(runs[a], runs[b], strict=False))) for a, b in pairs]


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p values of one family of tests, in their order (Holm 1979): reject where one is under the level."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    scaled = (min(1.0, (len(order) - rank) * p_values[index]) for rank, index in enumerate(order))
    adjusted = dict(zip(order, accumulate(scaled, max), strict=True))
    return [adjusted[index] for index in range(len(order))]


def difference_of_differences(
    a: SystemStatistics, b: SystemStatistics, short: np.ndarray, long: np.ndarray, settings: BootstrapSettings
) -> Interaction | None:
    """(b - a) on the sentences `long` minus (b - a) on the sentences `short`, both given by their indices.

    Each stratum is resampled within itself, so that its size is kept. With several pairs of runs the intervals cover
    the choice of training seeds too. None where a stratum has fewer than two sentences (or blocks of them), or no BLEU
    because no line in it has four words.
    """
    runs = list(zip(a, b, strict=False))
    generator = np.random.default_rng(settings.seed)
    gaps, drawn = [], []
    for members in (short, long):
        parts = [rows[members] for pair in runs for rows in pair]
        if len(members) < 2 or not all(bleu_of(rows).defined for rows in parts):
            return None
        stacked = block_sums(np.hstack(parts), members, settings.blocks)
        if len(stacked) < 2:
            return None
        gaps.append(_gaps(stacked.sum(axis=0, keepdims=True))[:, 0])
        drawn.append(_gaps(resampled_sums(stacked, settings, generator)))
    (short_gap, long_gap), (short_drawn, long_drawn) = gaps, drawn
    seeds = long_gap - short_gap
    return Interaction(
        estimate=float(seeds.mean()),
        interval=_nested_interval(long_drawn - short_drawn, settings),
        seeds=seeds.tolist(),
        short=(float(short_gap.mean()), _nested_interval(short_drawn, settings)),
        long=(float(long_gap.mean()), _nested_interval(long_drawn, settings)),
    )


def _nested_interval(drawn: np.ndarray, settings: BootstrapSettings) -> tuple[float, float]:
    """The 95% interval of a mean over K seeds from its resamples (K, R) over sentences: seeds are drawn too.

    The mean of K drawn seeds varies less than that of K new ones by (K - 1) / K, which is made good. With three seeds
    it is still a little narrow (`docs/measuring.md` has the numbers): five are better.
    """
    means = drawn.mean(axis=0)
    seeds = len(drawn)
    if seeds == 1:
        return percentile_interval(means)
    chosen = np.random.default_rng([settings.seed, seeds]).integers(0, seeds, size=drawn.shape)
    nested = np.take_along_axis(drawn, chosen, axis=0).mean(axis=0)
    return percentile_interval(means + (nested - means) * np.sqrt(seeds / (seeds - 1)))


def _gaps(sums: np.ndarray) -> np.ndarray:
    """(K, R) BLEU of b - a, for the sums (R, 20 K) of K pairs of runs, a and b alternating."""
    scores = np.stack([bleu_of_sums(run) for run in _split_runs(sums)])
    return scores[1::2] - scores[::2]


def _split_runs(sums: np.ndarray) -> np.ndarray:
    """(K, R, 10) for the sums (R, 10 K) of K runs side by side."""
    return np.ascontiguousarray(sums.reshape(len(sums), -1, WIDTH).swapaxes(0, 1))


def _masked_sums(rows: np.ndarray, settings: ResamplingSettings) -> np.ndarray:
    """Sums (T, C) of those of the rows (N, C) that each of T random masks keeps: sacreBLEU's masks."""
    generator = np.random.default_rng(settings.seed)
    exact = rows.astype(np.float64)
    n = len(rows)
    masks = (
        generator.integers(2, size=(count, n), dtype=bool) for count in draw_batches(settings.trials, n, MASK_BATCH)
    )
    return np.concatenate([mask.astype(np.float64) @ exact for mask in masks])


def _test(runs: Sequence[tuple[_Run, _Run]]) -> PairedTest:
    difference = float(np.mean([_difference(a.total[None], b.total[None]) for a, b in runs]))
    resampled = np.mean([b.resampled - a.resampled for a, b in runs], axis=0)
    # (T, 10) for each pair: what a holds after the systems swap the outputs of the sentences that a mask does not keep
    mixed = [(a.kept + (b.total - b.kept), a.total + b.total) for a, b in runs]
    swapped = np.mean([_difference(of_a, both - of_a) for of_a, both in mixed], axis=0)
    differing = int(np.any([(a.rows != b.rows).any(axis=1) for a, b in runs], axis=0).sum())
    # Two systems that differ in d sentences can be distinguished no better than by d tosses of a coin; the bootstrap
    # does not account for that where all its resamples agree.
    p_bootstrap = max(_p_value(resampled - resampled.mean(), difference), 2.0 ** (1 - differing))
    return PairedTest(
        difference=difference,
        interval=percentile_interval(resampled),
        p_bootstrap=min(1.0, p_bootstrap),
        p_randomisation=_p_value(swapped, difference),
        identical=differing == 0,
    )


def _difference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(R,) BLEU of b - a, of R rows of sums each."""
    return bleu_of_sums(b) - bleu_of_sums(a)


def _p_value(values: np.ndarray, difference: float) -> float:
    """The share of values as far from 0 as the difference, or farther, with the difference itself as one more."""
    counted = int((np.abs(values) >= abs(difference) - TIE).sum())
    return (counted + 1) / (len(values) + 1)
