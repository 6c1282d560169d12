"""How long the sentences were that the systems were trained on, for the histogram under the curve."""

from collections.abc import Iterable
from itertools import islice
from typing import Any, NamedTuple

from nmt.data.corpus import Pair
from nmt.data.text import words
from nmt.data.tokenizer import Tokenizer
from nmt.evaluation.lengths import source_length
from nmt.study.views import PIECES

READ = 50_000  # pairs, the first of the text: enough for a histogram


class TrainingText(NamedTuple):
    """Lengths of sources that were trained on, in both units, and the limit that was set, if one was."""

    words: list[int]  # 13a tokens
    pieces: list[int]
    max_words: int | None
    max_pieces: int

    def lengths(self, view: str) -> list[int]:
        return self.pieces if view == PIECES else self.words

    def cap(self, view: str) -> dict[str, Any] | None:
        """Where training ends on the axis: the limit on pieces, or else the longest source that was read.

        A limit on words is one on what stands between spaces, which is not the axis: its longest source is drawn.
        """
        longest = max(self.lengths(view), default=0)
        if view == PIECES and longest > 0.9 * self.max_pieces:
            return {"at": self.max_pieces, "label": f"trained up to {self.max_pieces} pieces"}
        limit = f" (max_words={self.max_words})" if view != PIECES and self.max_words is not None else ""
        return {"at": longest, "label": f"longest in training: {longest}{limit}"} if longest else None


def training_text(
    pairs: Iterable[Pair], source: Tokenizer, target: Tokenizer, max_words: int | None, max_pieces: int
) -> TrainingText:
    """From the first 50,000 pairs of the text; those that preparation leaves out as too long are left out here."""
    kept = [
        pair
        for pair in islice(pairs, READ)
        if max_words is None or max(len(words(pair.source)), len(words(pair.target))) <= max_words
    ]
    lengths = [
        [len(ids) for ids in tokenizer.encode_batch(side)]
        for tokenizer, side in ((source, [pair.source for pair in kept]), (target, [pair.target for pair in kept]))
    ]
    fits = [bool(s and t and max(s, t) <= max_pieces) for s, t in zip(*lengths, strict=True)]
    return TrainingText(
        [source_length(pair.source) for pair, fit in zip(kept, fits, strict=True) if fit],
        [count for count, fit in zip(lengths[0], fits, strict=True) if fit],
        max_words,
        max_pieces,
    )
