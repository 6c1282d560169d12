"""How much of a BLEU score is the luck of the test sentences: percentile intervals by resampling (Koehn 2004).

Resamples are drawn as sacreBLEU's `--confidence` draws them, and the ends of the interval are the same order
statistics, so that both programs agree for one seed. An interval does not cover the choice of training seeds.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from nmt.evaluation.metrics import CORRECT, HYPOTHESIS, MAX_NGRAM, REFERENCE, TOTAL
from nmt.settings import BootstrapSettings

LEVEL = 95  # per cent inside the interval
MAX_CELLS = 4_000_000  # resamples x sentences held at a time


def mean_interval(seeds: Sequence[np.ndarray], settings: BootstrapSettings) -> tuple[float, float]:
    """The 95% interval of the mean BLEU of several seeds from the statistics (N, 10) of each, N >= 1.

    The same sentences are drawn for all seeds.
    """
    return percentile_interval(np.mean([bleu_of_sums(resampled_sums(rows, settings)) for rows in seeds], axis=0))


def block_sums(rows: np.ndarray, positions: np.ndarray, size: int | None) -> np.ndarray:
    """Rows (N, C) of sentences at these positions of the test set, summed over blocks of `size` neighbours: (B, C).

    Sentences of one document are alike, so that fewer of them count; what is resampled is then a block. None: each
    sentence by itself.
    """
    if size is None or len(rows) == 0:
        return rows
    blocks = np.unique(positions // size, return_inverse=True)[1]
    sums = np.zeros((blocks.max() + 1, rows.shape[1]), dtype=rows.dtype)
    np.add.at(sums, blocks, rows)
    return sums


def percentile_interval(values: np.ndarray) -> tuple[float, float]:
    """The range of R values without the outer 2.5% at each end."""
    ordered = np.sort(values)
    tail = len(ordered) * (100 - LEVEL) // 200
    return float(ordered[tail]), float(ordered[-1 - tail])


def resampled_sums(
    rows: np.ndarray, settings: BootstrapSettings, generator: np.random.Generator | None = None
) -> np.ndarray:
    """Sums (R, C) of the rows (N, C) of R resamples of N sentences, drawn with replacement.

    Rows of several systems side by side (C = 10 for each) share the drawn sentences. Without a generator, one
    is made from the seed.
    """
    n = len(rows)
    generator = generator or np.random.default_rng(settings.seed)
    exact = rows.astype(np.float64)  # sums stay far below 2**53
    sums = []
    for count in draw_batches(settings.resamples, n):
        drawn = generator.integers(0, n, size=(count, n))
        drawn += np.arange(count)[:, None] * n
        counts = np.bincount(drawn.ravel(), minlength=count * n).reshape(count, n)
        sums.append(counts.astype(np.float64) @ exact)
    return np.concatenate(sums)


def draw_batches(times: int, n: int, multiple: int = 1) -> Iterator[int]:
    """Splits `times` draws over n sentences into batches; the size of each but the last is a multiple of `multiple`."""
    at_once = max(1, MAX_CELLS // (n * multiple)) * multiple
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
        scores = 100 * penalty * np.exp(np.log(precisions).sum(axis=1) / MAX_NGRAM)
    zero = ~correct.any(axis=1) | (total == 0).any(axis=1)
    return np.where(zero, 0.0, np.minimum(scores, 100.0))
