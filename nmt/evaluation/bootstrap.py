"""How much of a BLEU score is the luck of the test sentences: percentile intervals by resampling (Koehn 2004).

Resamples are drawn as sacreBLEU's `--confidence` draws them, and the ends of the interval are the same order
statistics, so that both programs agree for one seed. An interval says nothing about training seeds.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nmt.errors import require_whole
from nmt.evaluation.metrics import CORRECT, HYPOTHESIS, ORDERS, REFERENCE, TOTAL

LEVEL = 95  # per cent inside the interval
LEAST = 200 // (100 - LEVEL)  # of resamples: of fewer, nothing would lie outside the interval
CELLS = 4_000_000  # resamples x sentences held at a time


@dataclass(frozen=True)
class Bootstrap:
    """How many times to resample, and from which seed. ConfigError where a value cannot be used."""

    resamples: int = 1000
    seed: int = 12345  # sacreBLEU's

    def __post_init__(self) -> None:
        require_whole("bootstrap.resamples", self.resamples, LEAST)
        require_whole("bootstrap.seed", self.seed, 0)


def bleu_interval(rows: np.ndarray, settings: Bootstrap) -> tuple[float, float]:
    """The 95% interval of corpus BLEU from statistics (N, 10) of N >= 1 sentences."""
    return percentile_interval(bleu_of_sums(resampled_sums(rows, settings)))


def percentile_interval(values: np.ndarray) -> tuple[float, float]:
    """What lies between the outer 2.5% of R values, at each end."""
    ordered = np.sort(values)
    tail = len(ordered) * (100 - LEVEL) // 200
    return float(ordered[tail]), float(ordered[-1 - tail])


def resampled_sums(rows: np.ndarray, settings: Bootstrap, generator: np.random.Generator | None = None) -> np.ndarray:
    """Sums (R, C) of the rows (N, C) of R resamples of N sentences, drawn with replacement.

    Rows of several systems side by side (C = 10 for each) share the drawn sentences. Without a generator, one
    is made from the seed.
    """
    n = len(rows)
    generator = generator or np.random.default_rng(settings.seed)
    exact = rows.astype(np.float64)  # sums stay far below 2**53
    sums = []
    for count in batches(settings.resamples, n):
        drawn = generator.integers(0, n, size=(count, n))
        drawn += np.arange(count)[:, None] * n
        times = np.bincount(drawn.ravel(), minlength=count * n).reshape(count, n)
        sums.append(times.astype(np.float64) @ exact)
    return np.concatenate(sums)


def batches(times: int, n: int, multiple: int = 1) -> Iterator[int]:
    """How many of `times` draws over n sentences to hold at a time; each count but the last fits `multiple`."""
    at_once = max(1, CELLS // (n * multiple)) * multiple
    for start in range(0, times, at_once):
        yield min(at_once, times - start)


def bleu_of_sums(sums: np.ndarray) -> np.ndarray:
    """BLEU (R,) of R rows of summed statistics (R, 10): sacreBLEU's formula with its exponential smoothing."""
    hypothesis, reference = sums[:, HYPOTHESIS], sums[:, REFERENCE]
    correct, total = sums[:, CORRECT], sums[:, TOTAL]
    with np.errstate(divide="ignore", invalid="ignore"):
        penalty = np.where(hypothesis < reference, np.exp(1 - reference / hypothesis), 1.0)
        halvings = 2.0 ** np.cumsum((correct == 0) & (total > 0), axis=1)
        precisions = np.where(correct > 0, correct, 1 / halvings) / total
        scores = 100 * penalty * np.exp(np.log(precisions).sum(axis=1) / ORDERS)
    nothing = ~correct.any(axis=1) | (total == 0).any(axis=1)
    return np.where(nothing, 0.0, np.minimum(scores, 100.0))
