"""How long a source is, and ranges of lengths.

The axis of the study: tokens that sacreBLEU's 13a finds in the raw source, counted once, the same for every system and
vocabulary. Never the length of references or outputs: by those, any system's curve slopes.
"""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

from nmt.data.text import words


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


def tens(last: int) -> tuple[Bin, ...]:
    """[1, 10) [10, 20) ... [last, inf)"""
    return (Bin(1, 10), *(Bin(low, low + 10) for low in range(10, last, 10)), Bin(last, None))


BINS = tens(60)


def source_length(line: str) -> int:
    """13a tokens: words, and the punctuation that 13a cuts off them; 0 where there is no word."""
    return len(_tokenizer()(line).split()) if words(line) else 0


@cache
def _tokenizer() -> Tokenizer13a:
    return Tokenizer13a()


def deciles(lengths: Sequence[int]) -> list[Bin]:
    """Up to ten ranges of about equally many sentences; sentences of one length are never parted. 0 is in none."""
    known = np.array([length for length in lengths if length > 0])
    if not known.size:
        return []
    ends = np.quantile(known, np.arange(1, 10) / 10, method="inverted_cdf") + 1
    edges = sorted({int(known.min()), *(int(end) for end in ends if end <= known.max())})
    return [Bin(low, high) for low, high in zip(edges, [*edges[1:], int(known.max()) + 1], strict=True)]
