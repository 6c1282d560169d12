"""BLEU by source length: corpus BLEU of the sentences in each bin, never a mean of sentence scores.

What a length is: lengths.py.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from nmt.evaluation.bootstrap import Bootstrap, bleu_interval
from nmt.evaluation.lengths import BINS, Bin, source_length
from nmt.evaluation.metrics import Bleu, Statistics, bleu_of, chrf_of

FEW = 100  # sentences; with fewer, an interval is several BLEU wide and a bin only describes


def by_length(statistics: Statistics, sources: Sequence[str], settings: Bootstrap) -> list[dict[str, Any]]:
    """A row for each bin, empty ones too. Sources without words are in no bin."""
    lengths = [source_length(source) for source in sources]
    rows = []
    for where in BINS:
        members = [index for index, length in enumerate(lengths) if length in where]
        rows.append(_row(where, members, lengths, statistics, settings))
    return rows


def _row(
    where: Bin, members: list[int], lengths: list[int], statistics: Statistics, settings: Bootstrap
) -> dict[str, Any]:
    row: dict[str, Any] = {
        "low": where.low,
        "high": where.high,
        "n": len(members),
        "source_words": sum(lengths[i] for i in members),
    }
    if not members:
        nothing = ("bleu", "interval", "brevity_penalty", "length_ratio", "precisions", "chrf")
        return {**row, **dict.fromkeys(nothing), "hypothesis_tokens": 0, "reference_tokens": 0, "note": "no sentence"}
    rows = statistics.bleu[members]
    result = describe(bleu_of(rows), rows, settings)
    few = f"under {FEW} sentences: descriptive only" if len(members) < FEW else ""
    result["note"] = "; ".join(note for note in (result["note"], few) if note)
    return {**row, "bleu": result.pop("score"), **result, "chrf": chrf_of(statistics.chrf[members])}


def describe(bleu: Bleu, rows: np.ndarray, settings: Bootstrap) -> dict[str, Any]:
    """BLEU as plain values. No score where it is not defined; no interval where a resample says nothing: where
    4-grams are missing or no word matches, and for a single sentence."""
    return {
        "score": bleu.score if bleu.defined else None,
        "interval": list(bleu_interval(rows, settings)) if not bleu.note and len(rows) > 1 else None,
        "brevity_penalty": bleu.brevity_penalty,
        "length_ratio": bleu.length_ratio if bleu.reference_tokens else None,
        "precisions": bleu.precisions,
        "hypothesis_tokens": bleu.hypothesis_tokens,
        "reference_tokens": bleu.reference_tokens,
        "note": bleu.note,
    }
