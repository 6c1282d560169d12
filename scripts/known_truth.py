"""Intervals and p values held against a truth that is known: python -m scripts.known_truth (about 3 minutes).

An invented population of sentences stands for all the text there is; its corpus BLEU is the truth, and test sets
are drawn from it. Writes outputs/reference/known-truth/known_truth.json and .md; docs/measuring.md quotes them.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from nmt.evaluation.bootstrap import bleu_of_sums, block_sums, mean_interval, resampled_sums
from nmt.evaluation.metrics import CORRECT, TOTAL
from nmt.evaluation.significance import difference_of_differences, paired_tests
from nmt.evaluation.stored import to_json
from nmt.settings import BootstrapSettings, ResamplingSettings

OUTPUT = Path(__file__).resolve().parent.parent / "outputs" / "reference" / "known-truth"
LONGEST = 80  # words
SENTENCES = 20_000  # of the population
SHORT, LONG = 20, 30  # words: short sentences have fewer, long ones no fewer
DRAWS = 1_000_000  # test sentences of an experiment on intervals: 10,000 test sets of 100
TESTS = 4_000  # test sets of an experiment on p values
TRIALS = 1_000  # swaps in each of them


class Population:
    """Rows (M, 10) of statistics. Systems a and b are equally good by construction; weak gets worse with length.

    Sentences differ in length and in difficulty; all systems find the same ones hard. Words come out right in
    streaks, as they do in translations.
    """

    def __init__(self, size: int = SENTENCES, seed: int = 1) -> None:
        generator = np.random.default_rng(seed)
        self.lengths = np.clip(np.exp(generator.normal(2.85, 0.6, size)).astype(np.int64), 1, LONGEST)
        ease = generator.beta(5, 5, size)
        self.a, self.b = (self._rows(ease, generator) for _ in "ab")
        self.weak = self._rows(ease * np.exp(-self.lengths / 100), generator)

    def _rows(self, ease: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        size = len(ease)
        spread = np.rint(generator.normal(0, 0.12, size) * self.lengths).astype(np.int64)
        words = np.clip(self.lengths + spread, 1, LONGEST)
        right = np.zeros((size, LONGEST), dtype=bool)
        right[:, 0] = generator.random(size) < ease
        for position in range(1, LONGEST):
            again = generator.random(size) < 0.3  # right or wrong as the word before
            right[:, position] = np.where(again, right[:, position - 1], generator.random(size) < ease)
        right &= np.arange(LONGEST) < words[:, None]
        correct, total, streak = [], [], right
        for order in range(4):
            streak = streak[:, :-1] & right[:, order:] if order else right
            correct.append(streak.sum(axis=1))
            total.append(np.maximum(words - order, 0))
        return np.stack([words, self.lengths, *correct, *total], axis=1)


def bleu(rows: np.ndarray) -> float:
    return float(bleu_of_sums(rows.sum(axis=0, keepdims=True).astype(float))[0])


def interval_of_bleu(population: Population, n: int, sets: int) -> dict[str, Any]:
    """How many of the 95% intervals of `sets` test sets of n sentences hold the population's BLEU."""
    generator = np.random.default_rng(n)
    truth = bleu(population.a)
    held, width = 0, 0.0
    for seed in range(sets):
        low, high = mean_interval(
            [population.a[generator.integers(SENTENCES, size=n)]], BootstrapSettings.defaults(seed=seed)
        )
        held += low <= truth <= high
        width += high - low
    return {"n": n, "test_sets": sets, "truth": truth, "held": held / sets, "half_width": width / sets / 2}


def interval_of_interaction(population: Population, n: int, sets: int) -> dict[str, Any]:
    """The same for the difference of differences, with n short and n long sentences in each test set."""
    generator = np.random.default_rng(n)
    strata = [np.flatnonzero(population.lengths < SHORT), np.flatnonzero(population.lengths >= LONG)]
    short, long = (bleu(population.a[part]) - bleu(population.weak[part]) for part in strata)
    held, width = 0, 0.0
    for seed in range(sets):
        drawn = np.concatenate([generator.choice(part, size=n) for part in strata])
        systems = [population.weak[drawn]], [population.a[drawn]]
        difference = difference_of_differences(
            *systems, np.arange(n), np.arange(n, 2 * n), BootstrapSettings.defaults(seed=seed)
        )
        assert difference is not None
        low, high = difference.interval
        held += low <= long - short <= high
        width += high - low
    return {"n": n, "test_sets": sets, "truth": long - short, "held": held / sets, "half_width": width / sets / 2}


def interval_in_blocks(population: Population, n: int, size: int, sets: int) -> dict[str, Any]:
    """Where sentences come in documents of `size` alike ones: how often BLEU's interval holds the truth, by sentences
    and by blocks of that size."""
    generator = np.random.default_rng(n)
    truth = bleu(population.a)
    quality = population.a[:, CORRECT].sum(axis=1) / np.maximum(1, population.a[:, TOTAL].sum(axis=1))
    order = np.argsort(quality + generator.normal(0, quality.std(), SENTENCES))  # alike, not the same
    documents = order[: SENTENCES // size * size].reshape(-1, size)
    held = dict.fromkeys((None, size), 0)
    for seed in range(sets):
        drawn = documents[generator.integers(len(documents), size=n // size)].ravel()
        for blocks in held:
            settings = BootstrapSettings.defaults(seed=seed, resamples=400)
            low, high = mean_interval([block_sums(population.a[drawn], np.arange(len(drawn)), blocks)], settings)
            held[blocks] += low <= truth <= high
    return {"n": n, "test_sets": sets, "by_sentence": held[None] / sets, "by_block": held[size] / sets}


def interval_with_seeds(population: Population, n: int, seeds: int, sets: int) -> dict[str, Any]:
    """Where trainings differ by luck: how often the interval of the difference of differences, from n short and n long
    sentences and so many seeds, holds the mean of all trainings; and how often that of one seed, which covers the
    sentences alone, does."""
    generator = np.random.default_rng(n + seeds)
    strata = [np.flatnonzero(population.lengths < SHORT), np.flatnonzero(population.lengths >= LONG)]

    def trained(rows: np.ndarray) -> np.ndarray:
        """A training that is as bad as the weak system in a share of the sentences, which is its luck."""
        bad = generator.random((len(rows), 1)) < generator.uniform()
        return np.where(bad, population.weak[rows], population.a[rows])

    gaps = np.zeros(2)
    for _ in range(500):
        gaps += [bleu(trained(part)) - bleu(population.weak[part]) for part in strata]
    truth = float(gaps[1] - gaps[0]) / 500
    held = np.zeros(2)
    for seed in range(sets):
        drawn = np.concatenate([generator.choice(part, size=n) for part in strata])
        systems = [population.weak[drawn]] * seeds, [trained(drawn) for _ in range(seeds)]
        members, settings = (np.arange(n), np.arange(n, 2 * n)), BootstrapSettings.defaults(seed=seed, resamples=400)
        for kind, runs in enumerate((seeds, 1)):
            found = difference_of_differences(systems[0][:runs], systems[1][:runs], *members, settings)
            assert found is not None
            held[kind] += found.interval[0] <= truth <= found.interval[1]
    return {"n": n, "seeds": seeds, "test_sets": sets, "nested": held[0] / sets, "one_seed": held[1] / sets}


def paired_bs(a: np.ndarray, b: np.ndarray, settings: BootstrapSettings) -> float:
    """The p value that `sacrebleu --paired-bs` prints for statistics (N, 10): too often small (docs/measuring.md)."""
    sums = resampled_sums(np.hstack([a, b]), settings)
    distances = np.abs(bleu_of_sums(sums[:, a.shape[1] :]) - bleu_of_sums(sums[:, : a.shape[1]]))
    beyond = distances - distances.mean() > abs(bleu(b) - bleu(a))
    return (int(beyond.sum()) + 1) / (len(beyond) + 1)


def no_difference(population: Population, n: int, sets: int) -> dict[str, Any]:
    """Where two systems are equally good: how often each p value is under 0.05, and how far from uniform it is.

    Which output is whose is tossed for each sentence. `farthest` is the largest distance between the share of
    p values up to a level and that level (Kolmogorov and Smirnov).
    """
    generator = np.random.default_rng(n)
    results, p_sacrebleu = [], []
    for seed in range(sets):
        drawn = generator.integers(SENTENCES, size=n)
        a, b = population.a[drawn], population.b[drawn]
        swap = generator.random((n, 1)) < 0.5
        first, second = np.where(swap, b, a), np.where(swap, a, b)
        results += paired_tests([[first], [second]], [(0, 1)], ResamplingSettings.defaults(seed=seed, trials=TRIALS))
        p_sacrebleu.append(paired_bs(first, second, BootstrapSettings.defaults(seed=seed)))
    row: dict[str, Any] = {"n": n, "test_sets": sets}
    ours = {name: [getattr(result, name) for result in results] for name in ("p_bootstrap", "p_randomisation")}
    for name, values in {**ours, "p_sacrebleu": p_sacrebleu}.items():
        p = np.sort(values)
        steps = np.arange(sets + 1) / sets
        row[name] = {
            "under_0.05": float((p < 0.05).mean()),
            "farthest": float(max((p - steps[:-1]).max(), (steps[1:] - p).max())),
        }
    row["intervals_with_0"] = float(np.mean([r.interval[0] <= 0 <= r.interval[1] for r in results]))
    return row


def markdown(results: Mapping[str, Any]) -> str:
    """The results as Markdown tables."""
    lines = ["| 95% interval of | sentences | test sets drawn | hold the truth | half-width |", "|---|--:|--:|--:|--:|"]
    kinds = {"bleu": "BLEU", "interaction": "difference of differences (sentences in each stratum)"}
    for kind, name in kinds.items():
        for row in results[kind]:
            held, wide = f"{100 * row['held']:.1f}%", f"±{row['half_width']:.1f}"
            lines.append(f"| {name} | {row['n']} | {row['test_sets']:,} | {held} | {wide} |")
    lines += [
        "",
        "| two equally good systems, p under 0.05 | sentences | test sets drawn | of them |",
        "|---|--:|--:|--:|",
    ]
    names = {
        "p_bootstrap": "paired bootstrap",
        "p_randomisation": "approximate randomisation",
        "p_sacrebleu": "the formula of `sacrebleu --paired-bs`",
    }
    for key, name in names.items():
        for row in results["no_difference"]:
            lines.append(f"| {name} | {row['n']} | {row['test_sets']:,} | {100 * row[key]['under_0.05']:.1f}% |")
    return "\n".join(lines) + "\n"


def main() -> None:
    population = Population()
    results = {
        "bleu": [interval_of_bleu(population, n, DRAWS // n) for n in (100, 200, 400)],
        "interaction": [interval_of_interaction(population, n, DRAWS // n // 2) for n in (200,)],
        "no_difference": [no_difference(population, n, TESTS) for n in (100, 200)],
    }
    OUTPUT.mkdir(parents=True, exist_ok=True)
    (OUTPUT / "known_truth.json").write_text(to_json(results) + "\n", encoding="utf-8")
    (OUTPUT / "known_truth.md").write_text(markdown(results), encoding="utf-8")


if __name__ == "__main__":
    main()
