"""BLEU by source length: corpus BLEU of the sentences in each bin, never a mean of sentence scores.

Length is counted in words of the raw source, the same for every system and every vocabulary. By the length of
references or outputs, any system's curve slopes: long outputs are long where they repeat themselves.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from nmt.data.text import words
from nmt.evaluation.bootstrap import Bootstrap, bleu_interval
from nmt.evaluation.metrics import Bleu, Statistics, bleu_of, chrf_of

FEW = 100  # sentences; with fewer, an interval is several BLEU wide and a bin only describes


class Bin(NamedTuple):
    """Sentences with low <= source words < high; high None: no upper end."""

    low: int
    high: int | None

    def __contains__(self, length: object) -> bool:
        return isinstance(length, int) and self.low <= length and (self.high is None or length < self.high)


BINS = (Bin(1, 10), *(Bin(low, low + 10) for low in range(10, 60, 10)), Bin(60, None))


def by_length(statistics: Statistics, sources: Sequence[str], settings: Bootstrap) -> list[dict[str, Any]]:
    """A row for each bin, empty ones too. Sources without words are in no bin."""
    lengths = [len(words(source)) for source in sources]
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
    """BLEU as plain values. No score where it is not defined; no interval where 4-grams are missing."""
    return {
        "score": bleu.score if bleu.defined else None,
        "interval": None if bleu.note else list(bleu_interval(rows, settings)),
        "brevity_penalty": bleu.brevity_penalty,
        "length_ratio": bleu.length_ratio if bleu.reference_tokens else None,
        "precisions": bleu.precisions,
        "hypothesis_tokens": bleu.hypothesis_tokens,
        "reference_tokens": bleu.reference_tokens,
        "note": bleu.note,
    }
