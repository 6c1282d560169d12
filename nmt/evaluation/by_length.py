"""Source lengths, bins of them, and BLEU in each bin: corpus BLEU of its sentences, never a mean of sentence scores.

The axis of the study is the number of tokens that sacreBLEU's 13a finds in the raw source, the same for every system
and vocabulary. By the length of references or outputs any system's curve would slope.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

from nmt.data.text import words
from nmt.evaluation.bootstrap import bleu_interval
from nmt.evaluation.metrics import Bleu, Statistics, bleu_of, chrf_of
from nmt.settings import BootstrapSettings


class Bin(NamedTuple):
    """Sentences with low <= length < high; high None: no upper end."""

    low: int
    high: int | None

    def __contains__(self, length: object) -> bool:
        return isinstance(length, int) and self.low <= length and (self.high is None or length < self.high)

    @property
    def label(self) -> str:
        """Whole numbers, both ends included: [10, 20) is "10–19", [60, inf) is "60+"."""
        if self.high is None:
            return f"{self.low}+"
        return f"{self.low}–{self.high - 1}" if self.high - self.low > 1 else str(self.low)


def bins_of_ten(last: int) -> tuple[Bin, ...]:
    """[1, 10) [10, 20) ... [last, inf)"""
    return (Bin(1, 10), *(Bin(low, low + 10) for low in range(10, last, 10)), Bin(last, None))


BINS = bins_of_ten(60)
MIN_SENTENCES = 100  # with fewer, an interval is several BLEU wide and a bin only describes


def source_length(line: str) -> int:
    """13a tokens: words, and the punctuation that 13a cuts off them; 0 where there is no word."""
    return len(_tokenizer()(line).split()) if words(line) else 0


@cache
def _tokenizer() -> Tokenizer13a:
    return Tokenizer13a()


def deciles(lengths: Sequence[int]) -> list[Bin]:
    """Up to ten ranges of about equally many sentences; sentences of one length are never separated. 0 is in none."""
    nonempty = np.array([length for length in lengths if length > 0])
    if not nonempty.size:
        return []
    ends = np.quantile(nonempty, np.arange(1, 10) / 10, method="inverted_cdf") + 1
    edges = sorted({int(nonempty.min()), *(int(end) for end in ends if end <= nonempty.max())})
    return [Bin(low, high) for low, high in zip(edges, [*edges[1:], int(nonempty.max()) + 1], strict=True)]


def bleu_by_length(statistics: Statistics, sources: Sequence[str], settings: BootstrapSettings) -> list[dict[str, Any]]:
    """A row for each bin, empty ones too. Sources without words are in no bin."""
    lengths = [source_length(source) for source in sources]
    rows = []
    for length_bin in BINS:
        members = [index for index, length in enumerate(lengths) if length in length_bin]
        rows.append(_row(length_bin, members, lengths, statistics, settings))
    return rows


def _row(
    length_bin: Bin, members: list[int], lengths: list[int], statistics: Statistics, settings: BootstrapSettings
) -> dict[str, Any]:
    row: dict[str, Any] = {
        "low": length_bin.low,
        "high": length_bin.high,
        "n": len(members),
        "source_words": sum(lengths[i] for i in members),
    }
    if not members:
        nothing = ("bleu", "interval", "brevity_penalty", "length_ratio", "precisions", "chrf")
        return {**row, **dict.fromkeys(nothing), "hypothesis_tokens": 0, "reference_tokens": 0, "note": "no sentence"}
    rows = statistics.bleu[members]
    result = bleu_values(bleu_of(rows), rows, settings)
    few = f"under {MIN_SENTENCES} sentences: descriptive only" if len(members) < MIN_SENTENCES else ""
    result["note"] = "; ".join(note for note in (result["note"], few) if note)
    return {**row, "bleu": result.pop("score"), **result, "chrf": chrf_of(statistics.chrf[members])}


def bleu_values(bleu: Bleu, rows: np.ndarray, settings: BootstrapSettings) -> dict[str, Any]:
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
