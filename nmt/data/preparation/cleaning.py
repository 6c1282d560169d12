"""Which training pairs are left out, and why: one verdict for each pair."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import xxhash

from nmt.data.preparation.heldout import HeldOut
from nmt.data.preparation.scripts import SPACELESS, in_other_script
from nmt.data.text import words
from nmt.errors import ConfigError, require_whole

_BLOCK = 1_000_000
LONGEST_PIECE = 16  # characters: SentencePiece's own bound, so longer texts have more pieces than length / 16


class Verdict(IntEnum):
    """What became of a pair: kept, or the first filter that left it out. The numbers are stored in files."""

    KEPT = 0
    EMPTY = 1
    HELD_OUT = 2
    WORDS = 3
    RATIO = 4
    IDENTICAL = 5
    SCRIPT = 6
    DUPLICATE = 7
    PIECES = 8

    @property
    def reason(self) -> str:
        return _REASONS[self]


_REASONS = {
    Verdict.KEPT: "kept",
    Verdict.EMPTY: "empty",
    Verdict.HELD_OUT: "in a dev or test set",
    Verdict.WORDS: "too many words",
    Verdict.RATIO: "unequal lengths",
    Verdict.IDENTICAL: "identical sides",
    Verdict.SCRIPT: "wrong script",
    Verdict.DUPLICATE: "duplicate",
    Verdict.PIECES: "too long",
}


@dataclass(frozen=True)
class CleaningSettings:
    """The filters. A pair with an empty side, or with more pieces than a batch takes, is always left out.

    `max_words`: on either side (30 and 50 in Cho et al. 2014 and Bahdanau et al. 2015). `max_ratio`: the longer side
    may have that many times the words of the shorter, and 3 more; characters where a language has no spaces.
    """

    max_words: int | None = None
    max_ratio: float | None = 3.0
    duplicates: bool = True
    identical: bool = True
    script: bool = True
    decontaminate: bool = True
    one_side_words: int = 4

    def __post_init__(self) -> None:
        if self.max_words is not None:
            require_whole("cleaning.max_words", self.max_words)
        if self.max_ratio is not None and self.max_ratio < 1:
            raise ConfigError(f"cleaning.max_ratio={self.max_ratio}: it must be 1 or more, or null for no limit")
        require_whole("cleaning.one_side_words", self.one_side_words)


class Screened(NamedTuple):
    """What one chunk of pairs gave."""

    verdicts: np.ndarray  # (n,) uint8
    hashes: np.ndarray  # (n,) uint64, of both sides together
    held_out: dict[int, str]  # place in the chunk -> the set it was found in
    digest: bytes  # of the whole text


@dataclass(frozen=True)
class Screen:
    """Every filter that sees one pair at a time; runs in any process."""

    settings: CleaningSettings
    source_language: str
    target_language: str
    max_pieces: int
    held_out: HeldOut

    def __call__(self, sources: Sequence[str], targets: Sequence[str]) -> Screened:
        verdicts = np.zeros(len(sources), dtype=np.uint8)
        hashes = np.zeros(len(sources), dtype=np.uint64)
        found: dict[int, str] = {}
        digest = hashlib.sha256()
        for i, (source, target) in enumerate(zip(sources, targets, strict=True)):
            line = f"{source}\t{target}\n".encode()
            digest.update(line)
            hashes[i] = xxhash.xxh3_64_intdigest(line)
            if not source.strip() or not target.strip():
                verdicts[i] = Verdict.EMPTY
            elif self.settings.decontaminate and (name := self.held_out.find(source, target)):
                verdicts[i] = Verdict.HELD_OUT
                found[i] = name
            else:
                verdicts[i] = self._verdict(source, target)
        return Screened(verdicts, hashes, found, digest.digest())

    def _verdict(self, source: str, target: str) -> Verdict:
        settings = self.settings
        if max(len(source), len(target)) > (LONGEST_PIECE + 1) * self.max_pieces:
            return Verdict.PIECES
        if settings.max_words is not None and max(len(words(source)), len(words(target))) > settings.max_words:
            return Verdict.WORDS
        if settings.identical and source.strip() == target.strip():
            return Verdict.IDENTICAL
        if settings.max_ratio is not None and self._unequal(source, target, settings.max_ratio):
            return Verdict.RATIO
        if settings.script and (
            in_other_script(source, self.source_language) or in_other_script(target, self.target_language)
        ):
            return Verdict.SCRIPT
        return Verdict.KEPT

    def _unequal(self, source: str, target: str, ratio: float) -> bool:
        if SPACELESS.isdisjoint((self.source_language, self.target_language)):
            shorter, longer = sorted((len(words(source)), len(words(target))))
        else:
            shorter, longer = sorted((len(source), len(target)))
        return longer > ratio * shorter + 3


def mark_duplicates(verdicts: np.ndarray, hashes: np.ndarray) -> None:
    """Of the kept pairs with equal hashes all but the first become DUPLICATE. Done again, it changes nothing.

    Works on arrays mapped from files, one range of hashes after the other: of its own it takes about 4 bytes for each
    pair, and 30 for each pair of one range (a 256th).
    """
    ranges = np.empty(len(hashes), dtype=np.uint8)
    for start in range(0, len(hashes), _BLOCK):
        ranges[start : start + _BLOCK] = hashes[start : start + _BLOCK] >> np.uint64(56)
    candidates = (verdicts == Verdict.KEPT) | (verdicts == Verdict.DUPLICATE)
    for value in range(256):
        places = np.flatnonzero((ranges == value) & candidates)
        found = hashes[places]
        order = np.argsort(found, kind="stable")
        repeated = np.zeros(len(places), dtype=bool)
        repeated[order[1:]] = found[order[1:]] == found[order[:-1]]
        verdicts[places] = np.where(repeated, np.uint8(Verdict.DUPLICATE), np.uint8(Verdict.KEPT))


_ESCAPES = re.compile(r"&(?:apos|quot|amp|lt|gt|#91|#93|#124);|@-@")
_APART = re.compile(r"\w [,.](?: |$)")  # French sets ; : ! ? apart itself


def looks_tokenised(text: str) -> bool:
    """Moses escapes, or ASCII punctuation standing apart as a tokeniser leaves it."""
    return bool(("&" in text or "@" in text) and _ESCAPES.search(text)) or bool(_APART.search(text))
