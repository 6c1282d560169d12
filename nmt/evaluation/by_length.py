"""Source lengths, bins of them, and BLEU in each bin: corpus BLEU of its sentences, never a mean of sentence scores.

The axis of the study is the number of tokens that sacreBLEU's 13a finds in the raw source, the same for every system
and vocabulary. By the length of references or outputs any system's curve would slope.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

from nmt.data.text import words
from nmt.evaluation.bootstrap import block_sums, mean_interval
from nmt.evaluation.metrics import Statistics, bleu_of
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
_TOKENIZER = Tokenizer13a()
MIN_SENTENCES = 100  # with fewer, an interval is several BLEU wide and a bin only describes


def source_length(line: str) -> int:
    """13a tokens: words, and the punctuation that 13a cuts off them; 0 where there is no word."""
    return len(_TOKENIZER(line).split()) if words(line) else 0


def deciles(lengths: Sequence[int]) -> list[Bin]:
    """Up to ten ranges of about equally many sentences; sentences of one length are never separated. 0 is in none."""
    nonempty = np.array([length for length in lengths if length > 0])
    if not nonempty.size:
        return []
    ends = np.quantile(nonempty, np.arange(1, 10) / 10, method="inverted_cdf") + 1
    edges = sorted({int(nonempty.min()), *(int(end) for end in ends if end <= nonempty.max())})
    return [Bin(low, high) for low, high in zip(edges, [*edges[1:], int(nonempty.max()) + 1], strict=True)]


@dataclass(frozen=True)
class BinScore:
    """The score of a system on some sentences: means over its seeds, with the interval over sentences.

    No score where BLEU is not defined; no interval where a resample says nothing: where 4-grams are missing or no word
    matches, and for a single sentence. One row a bin, in an evaluation and in a comparison alike.
    """

    bleu: float | None
    interval: tuple[float, float] | None  # 95%; the same sentences are drawn for all seeds
    seeds: list[float | None]  # BLEU of each
    brevity_penalty: float
    length_ratio: float | None
    precisions: list[float]  # per cent, of 1- to 4-grams
    hypothesis_tokens: float
    reference_tokens: int  # of several references, the nearest in length
    chrf: float
    note: str  # why there is no BLEU, or why it is 0
    metrics: dict[str, float]  # those beside BLEU and chrF2 that were asked for


def score_sentences(
    seeds: Sequence[Statistics], settings: BootstrapSettings, members: np.ndarray | None = None
) -> BinScore:
    """The score on the sentences `members` (indices), or on all; at least one."""
    chosen = np.arange(len(seeds[0].bleu)) if members is None else members
    rows = [seed.subset(chosen) for seed in seeds]
    bleus = [bleu_of(seed.bleu) for seed in rows]
    defined = [bleu.score for bleu in bleus if bleu.defined]
    note = next((bleu.note for bleu in bleus if bleu.note), "")

    def mean(name: str) -> float:
        return float(np.mean([getattr(bleu.details, name) for bleu in bleus]))

    others = {name: float(np.mean([seed.score(name) for seed in rows])) for name in rows[0].others}
    units = [block_sums(seed.bleu, chosen, settings.blocks) for seed in rows]
    return BinScore(
        bleu=float(np.mean(defined)) if len(defined) == len(bleus) else None,
        interval=mean_interval(units, settings) if not note and len(units[0]) > 1 else None,
        seeds=[bleu.score if bleu.defined else None for bleu in bleus],
        brevity_penalty=mean("bp"),
        length_ratio=mean("ratio") if mean("ref_len") else None,
        precisions=np.mean([bleu.details.precisions for bleu in bleus], axis=0).tolist(),
        hypothesis_tokens=mean("sys_len"),
        reference_tokens=round(mean("ref_len")),
        chrf=others.pop("chrf"),
        note=note,
        metrics=others,
    )


def bin_members(lengths: Sequence[int], bins: Sequence[Bin]) -> list[np.ndarray]:
    """The indices of the sentences in each bin. Sources without words have length 0 and are in none."""
    return [np.array([n for n, length in enumerate(lengths) if length in length_bin], int) for length_bin in bins]
