"""Corpus scores of each system on the whole test set and on any part of it, over its seeds.

A system's score is the mean over its seeds of corpus BLEU. Its interval is for these seeds and other sentences; what
other seeds would do stands beside it, as the score of each.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from nmt.data.corpus import TestSet
from nmt.evaluation.bootstrap import Bootstrap, bleu_of_sums, percentile_interval, resampled_sums
from nmt.evaluation.metrics import Bleu, bleu_of, chrf_of, statistics, tokenization
from nmt.progress import Advance
from nmt.study.results import System


class Rows(NamedTuple):
    """Statistics of each sentence, one array a seed."""

    bleu: list[np.ndarray]  # (N, 10)
    chrf: list[np.ndarray]  # (N, 18)
    signatures: dict[str, str]

    def of(self, members: np.ndarray) -> "Rows":
        return Rows([rows[members] for rows in self.bleu], [rows[members] for rows in self.chrf], self.signatures)


def rows_of(system: System, test: TestSet, language: str, advance: Advance) -> Rows:
    """From the texts, with sacreBLEU's tokenizer for the target language; `advance` is told of each system done."""
    tokenizer = tokenization(language).name
    found = [statistics(result.hypotheses, test.references, tokenizer, ter=False) for result in system.results]
    advance(1)
    return Rows([one.bleu for one in found], [one.chrf for one in found], found[0].signatures)


def scores(rows: Rows, settings: Bootstrap) -> dict[str, Any]:
    """Plain values: means over seeds, the 95% interval over sentences, and each seed's BLEU."""
    seeds = [bleu_of(one) for one in rows.bleu]
    known = [bleu.score for bleu in seeds if bleu.defined]
    note = next((bleu.note for bleu in seeds if bleu.note), "")
    return {
        "bleu": float(np.mean(known)) if len(known) == len(seeds) else None,
        "interval": interval(rows.bleu, settings) if not note and len(rows.bleu[0]) > 1 else None,
        "seeds": [bleu.score if bleu.defined else None for bleu in seeds],
        "brevity_penalty": _mean(seeds, "brevity_penalty"),
        "length_ratio": _mean(seeds, "length_ratio"),
        "precisions": np.mean([bleu.precisions for bleu in seeds], axis=0).tolist(),
        "hypothesis_tokens": _mean(seeds, "hypothesis_tokens"),
        "reference_tokens": round(_mean(seeds, "reference_tokens")),  # of several references, the nearest in length
        "chrf": float(np.mean([chrf_of(one) for one in rows.chrf])),
        "note": note,
    }


def interval(seeds: Sequence[np.ndarray], settings: Bootstrap) -> list[float]:
    """95%, for the mean BLEU of several seeds: the same sentences are drawn for all of them."""
    return list(percentile_interval(np.mean([bleu_of_sums(resampled_sums(rows, settings)) for rows in seeds], axis=0)))


def _mean(seeds: Sequence[Bleu], name: str) -> float:
    return float(np.mean([getattr(bleu, name) for bleu in seeds]))
