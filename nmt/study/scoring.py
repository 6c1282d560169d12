"""Corpus scores of a system on the whole test set and on any part of it, over its training seeds.

A system's score is the mean of its seeds' corpus BLEU. Its interval covers the choice of sentences, given these seeds;
the score of each seed shows how much seeds differ.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from nmt.data.corpus import TestSet
from nmt.evaluation.bootstrap import bleu_of_sums, percentile_interval, resampled_sums
from nmt.evaluation.metrics import Bleu, bleu_of, chrf_of, statistics, tokenization
from nmt.progress import Advance
from nmt.settings import BootstrapSettings
from nmt.study.results import System


class SeedStatistics(NamedTuple):
    """Statistics of each sentence, one array a seed."""

    bleu: list[np.ndarray]  # (N, 10)
    chrf: list[np.ndarray]  # (N, 18)
    signatures: dict[str, str]

    def subset(self, members: np.ndarray) -> "SeedStatistics":
        return SeedStatistics(
            [rows[members] for rows in self.bleu], [rows[members] for rows in self.chrf], self.signatures
        )


def seed_statistics(system: System, test: TestSet, language: str, advance: Advance) -> SeedStatistics:
    """Computed from the texts, with sacreBLEU's tokenizer for the target language; `advance` counts systems."""
    tokenizer = tokenization(language).name
    seeds = [statistics(result.hypotheses, test.references, tokenizer, ter=False) for result in system.results]
    advance(1)
    return SeedStatistics([seed.bleu for seed in seeds], [seed.chrf for seed in seeds], seeds[0].signatures)


def mean_scores(seed_rows: SeedStatistics, settings: BootstrapSettings) -> dict[str, Any]:
    """Plain values: means over seeds, the 95% interval over sentences, and each seed's BLEU."""
    seeds = [bleu_of(rows) for rows in seed_rows.bleu]
    defined = [bleu.score for bleu in seeds if bleu.defined]
    note = next((bleu.note for bleu in seeds if bleu.note), "")
    return {
        "bleu": float(np.mean(defined)) if len(defined) == len(seeds) else None,
        "interval": mean_interval(seed_rows.bleu, settings) if not note and len(seed_rows.bleu[0]) > 1 else None,
        "seeds": [bleu.score if bleu.defined else None for bleu in seeds],
        "brevity_penalty": _mean(seeds, "brevity_penalty"),
        "length_ratio": _mean(seeds, "length_ratio"),
        "precisions": np.mean([bleu.precisions for bleu in seeds], axis=0).tolist(),
        "hypothesis_tokens": _mean(seeds, "hypothesis_tokens"),
        "reference_tokens": round(_mean(seeds, "reference_tokens")),  # of several references, the nearest in length
        "chrf": float(np.mean([chrf_of(rows) for rows in seed_rows.chrf])),
        "note": note,
    }


def mean_interval(seeds: Sequence[np.ndarray], settings: BootstrapSettings) -> list[float]:
    """95%, for the mean BLEU of several seeds: the same sentences are drawn for all of them."""
    return list(percentile_interval(np.mean([bleu_of_sums(resampled_sums(rows, settings)) for rows in seeds], axis=0)))


def _mean(seeds: Sequence[Bleu], name: str) -> float:
    return float(np.mean([getattr(bleu, name) for bleu in seeds]))
