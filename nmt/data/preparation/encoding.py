"""Pairs to ids, one chunk at a time, with an account of what their text was like."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from nmt.data.preparation.cleaning import Verdict, looks_tokenised
from nmt.data.text import words
from nmt.data.tokenizer import FIRST_BYTE, UNK, Tokenizer

BIN = 10  # words in a bin of the length histogram
BINS = 21  # the last one is open
_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")

Tally = dict[str, Any]  # counts and lists of counts


class Encoded(NamedTuple):
    """What one chunk gave: ids of the pairs that are kept, one after the other."""

    verdicts: np.ndarray  # (n,) uint8: KEPT, EMPTY or PIECES
    src_ids: np.ndarray
    src_lengths: np.ndarray
    tgt_ids: np.ndarray
    tgt_lengths: np.ndarray
    src_tally: Tally
    tgt_tally: Tally
    rewritten: list[int]  # places of targets that do not come back as they were written


@dataclass(frozen=True)
class Encode:
    """Runs in any process. Pairs with an empty side or more than `max_pieces` pieces (EOS not counted) are left out."""

    source: Tokenizer
    target: Tokenizer
    max_pieces: int

    def __call__(self, sources: Sequence[str], targets: Sequence[str]) -> Encoded:
        cleaned = self.source.cleaned(sources)
        src, tgt = self.source.encode_cleaned(cleaned), self.target.encode_batch(targets)
        verdicts = np.array([self._verdict(len(s), len(t)) for s, t in zip(src, tgt, strict=True)], dtype=np.uint8)
        kept = np.flatnonzero(verdicts == Verdict.KEPT).tolist()
        src, tgt = [src[i] for i in kept], [tgt[i] for i in kept]
        kept_sources, kept_targets = [sources[i] for i in kept], [targets[i] for i in kept]
        back = self.target.decode_batch(tgt)
        rewritten = [i for i, text, again in zip(kept, kept_targets, back, strict=True) if text != again]
        src_ids, src_lengths = _flat(src)
        tgt_ids, tgt_lengths = _flat(tgt)
        src_tally = _tally(kept_sources, src_ids)
        src_tally["rewritten"] = sum(sources[i] != cleaned[i] for i in kept)
        tgt_tally = _tally(kept_targets, tgt_ids)
        tgt_tally["rewritten"] = len(rewritten)
        return Encoded(verdicts, src_ids, src_lengths, tgt_ids, tgt_lengths, src_tally, tgt_tally, rewritten)

    def _verdict(self, *lengths: int) -> Verdict:
        if min(lengths) == 0:
            return Verdict.EMPTY
        return Verdict.PIECES if max(lengths) > self.max_pieces else Verdict.KEPT


def add(total: Tally, part: Tally) -> Tally:
    """Counts added key by key."""
    if not total:
        return dict(part)
    return {
        key: [a + b for a, b in zip(value, part[key], strict=True)] if isinstance(value, list) else value + part[key]
        for key, value in total.items()
    }


def _flat(sequences: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    lengths = np.fromiter(map(len, sequences), dtype=np.int64, count=len(sequences))
    ids = np.fromiter(chain.from_iterable(sequences), dtype=np.int32, count=int(lengths.sum()))
    return ids, lengths


def _tally(texts: Sequence[str], ids: np.ndarray) -> Tally:
    lengths = np.fromiter((len(words(text)) for text in texts), dtype=np.int64, count=len(texts))
    return {
        "words": int(lengths.sum()),
        "pieces": len(ids),
        "byte_pieces": int(((ids >= FIRST_BYTE) & (ids < FIRST_BYTE + 256)).sum()),
        "unknown": int((ids == UNK).sum()),
        "histogram": np.bincount(np.minimum(lengths // BIN, BINS - 1), minlength=BINS).tolist(),
        "tokenised": sum(map(looks_tokenised, texts)),
        "control": sum(1 for text in texts if not text.isprintable() and _CONTROL.search(text)),
    }
