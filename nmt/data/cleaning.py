"""Which training pairs are left out, and why: one verdict for each pair.

Wrong writing system, sentences of dev and test sets, duplicates, lengths that do not match.
"""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import xxhash

from nmt.data.corpus import Pair, TestSet
from nmt.data.text import words
from nmt.training_settings import CleaningSettings

LONGEST_PIECE = 16  # characters: SentencePiece's own bound, so longer texts have more pieces than length / 16
SPACELESS = frozenset({"zh", "ja", "th", "lo", "km", "my", "bo"})  # words are not divided by spaces

_LETTERS = {  # languages: the ranges of their script's letters
    "af az bs ca cs cy da de en eo es et eu fi fo fr fy ga gd gl hr ht hu id is it jv la lb lt lv mg mi ms mt nl nn no "
    "oc pl pt rm ro sk sl so sq sv sw tl tr uz vi xh yo zu": "A-Za-zªº\u00c0-\u024f\u1e00-\u1eff",
    "ru uk be bg mk kk ky mn tg tt": "\u0400-\u052f",
    "ar fa ur ps ug": "\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufefc",
    "hi mr ne sa": "\u0900-\u097f",
    "he yi": "\u0590-\u05ff\ufb1d-\ufb4f",
    "ja": "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uff66-\uff9f",
    "ko": "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af\u4e00-\u9fff",
    "zh": "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff",
    "el": "\u0370-\u03ff\u1f00-\u1fff", "hy": "\u0530-\u058f", "ka": "\u10a0-\u10ff", "am": "\u1200-\u139f",
    "bn": "\u0980-\u09ff", "pa": "\u0a00-\u0a7f", "gu": "\u0a80-\u0aff", "ta": "\u0b80-\u0bff", "te": "\u0c00-\u0c7f",
    "kn": "\u0c80-\u0cff", "ml": "\u0d00-\u0d7f", "si": "\u0d80-\u0dff", "th": "\u0e00-\u0e7f", "lo": "\u0e80-\u0eff",
    "my": "\u1000-\u109f", "km": "\u1780-\u17ff",
}  # fmt: skip
_LETTER_RANGES = {language: letters for languages, letters in _LETTERS.items() for language in languages.split()}
_INSIDE_SCRIPT = {language: re.compile(f"[{letters}]") for language, letters in _LETTER_RANGES.items()}
_OUTSIDE_SCRIPT = {language: re.compile(rf"[^\W\d_{letters}]") for language, letters in _LETTER_RANGES.items()}
_LATIN_LANGUAGES = frozenset(next(iter(_LETTERS)).split())
_NAME = re.compile("[A-Za-z\u00c0-\u024f]{4,}")


def in_other_script(text: str, language: str) -> bool:
    """True where most letters are not of the language's script; False for a language that is not known here."""
    if language not in _LETTER_RANGES:
        return False
    if language in _LATIN_LANGUAGES:
        with suppress(UnicodeEncodeError):  # nearly every line is Latin-1: spares the count
            text.encode("latin-1")
            return False
    else:
        text = _NAME.sub("abc", text)  # however long a name is: "Christopher游泳。" is Chinese
    outside = len(_OUTSIDE_SCRIPT[language].findall(text))
    inside = _INSIDE_SCRIPT[language].findall(text)
    return outside > len(inside) + _extra_weight("".join(inside))


_NO_LETTER = re.compile(r"[\W_]+")
_ASCII_REST = bytes(code for code in range(128) if not chr(code).isalnum())
_SPACELESS_LETTER = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


# Characters that hold more than a letter does: a Han character about three, a kana, Hangul or Ethiopic syllable two.
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_SYLLABLE = re.compile("[\u1100-\u139f\u3040-\u30ff\u3130-\u318f\uac00-\ud7af]")


def _extra_weight(text: str) -> int:
    """How many letters more than its characters a text is worth, so that lengths compare across scripts."""
    return 0 if text.isascii() else 2 * len(_HAN.findall(text)) + len(_SYLLABLE.findall(text))


def exact_key(text: str) -> str:
    """Letters and digits alone, in one case and one Unicode form."""
    return _NO_LETTER.sub("", unicodedata.normalize("NFKC", text).casefold())


def ascii_key(text: str) -> bytes:
    """The ASCII part of `key`, three times faster: where these differ, the keys do."""
    return unicodedata.normalize("NFKC", text).casefold().encode("ascii", "ignore").translate(None, _ASCII_REST)


@dataclass(frozen=True)
class HeldOutIndex:
    """The names of the sets that hold a pair, and a source or target, by their keys."""

    one_side_words: int = 4
    pairs: dict[tuple[str, str], str] = field(default_factory=dict)
    sides: tuple[dict[str, str], dict[str, str]] = field(default_factory=lambda: ({}, {}))
    ascii_sides: tuple[set[bytes], set[bytes]] = field(default_factory=lambda: (set(), set()))

    @classmethod
    def of(cls, valid: Iterable[Pair], tests: Mapping[str, TestSet], one_side_words: int) -> "HeldOutIndex":
        held_out = cls(one_side_words)
        for pair in valid:
            held_out._add("valid", pair.source, pair.target)
        for name, test in tests.items():
            for stream in test.references:
                for source, target in zip(test.sources, stream, strict=True):
                    held_out._add(name, source, target)
        return held_out

    def _add(self, name: str, source: str, target: str) -> None:
        keys = (exact_key(source), exact_key(target))
        if all(keys):
            self.pairs.setdefault(keys, name)
        for text, key, names, ascii_keys in zip((source, target), keys, self.sides, self.ascii_sides, strict=True):
            if key:
                names.setdefault(key, name)
                ascii_keys.add(ascii_key(text))

    def find(self, source: str, target: str) -> str:
        """The set that holds this pair, or one side of it of `one_side_words` or more; empty where none does."""
        if ascii_key(source) not in self.ascii_sides[0] and ascii_key(target) not in self.ascii_sides[1]:
            return ""
        keys = (exact_key(source), exact_key(target))
        if keys in self.pairs:
            return self.pairs[keys]
        for text, key, names in zip((source, target), keys, self.sides, strict=True):
            if (name := names.get(key)) and _count_words(text) >= self.one_side_words:
                return name
        return ""


def _count_words(text: str) -> int:
    """Whitespace-separated words; in a script without spaces every letter counts half a word."""
    return max(len(words(text)), len(_SPACELESS_LETTER.findall(text)) // 2)


class Verdict(IntEnum):
    """What became of a pair: kept, or the first filter that left it out. The numbers are stored in files."""

    reason: str
    KEPT = 0, "kept"
    EMPTY = 1, "empty"
    HELD_OUT = 2, "in a dev or test set"
    WORDS = 3, "too many words"
    RATIO = 4, "unequal lengths"
    IDENTICAL = 5, "identical sides"
    SCRIPT = 6, "wrong script"
    DUPLICATE = 7, "duplicate"
    PIECES = 8, "too long"

    def __new__(cls, number: int, reason: str) -> "Verdict":
        verdict = int.__new__(cls, number)
        verdict._value_, verdict.reason = number, reason
        return verdict


class FilteredBlock(NamedTuple):
    """The verdicts on a block of pairs."""

    verdicts: np.ndarray  # (n,) uint8
    hashes: np.ndarray  # (n,) uint64, of both sides together
    held_out: dict[str, int]  # pairs found in each held-out set
    digest: str  # SHA-256 of the whole text


@dataclass(frozen=True)
class PairFilter:
    """Every filter that sees one pair at a time; runs in any process."""

    settings: CleaningSettings
    source_language: str
    target_language: str
    max_pieces: int
    held_out: HeldOutIndex

    def __call__(self, sources: Sequence[str], targets: Sequence[str]) -> FilteredBlock:
        verdicts = np.zeros(len(sources), dtype=np.uint8)
        hashes = np.zeros(len(sources), dtype=np.uint64)
        held_out: Counter[str] = Counter()
        digest = hashlib.sha256()
        for i, (source, target) in enumerate(zip(sources, targets, strict=True)):
            line = f"{source}\t{target}\n".encode()
            digest.update(line)
            hashes[i] = xxhash.xxh3_64_intdigest(line)
            if not source.strip() or not target.strip():
                verdicts[i] = Verdict.EMPTY
            elif self.settings.decontaminate and (name := self.held_out.find(source, target)):
                verdicts[i] = Verdict.HELD_OUT
                held_out[name] += 1
            else:
                verdicts[i] = self._verdict(source, target)
        return FilteredBlock(verdicts, hashes, dict(held_out), digest.hexdigest())

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
        """By words where both languages divide them by spaces, else by characters, weighted by what they hold."""
        sides = ((source, self.source_language), (target, self.target_language))
        if any(language in SPACELESS or (not language and _SPACELESS_LETTER.search(text)) for text, language in sides):
            shorter, longer = sorted(len(text) + _extra_weight(text) for text, _ in sides)
        else:
            shorter, longer = sorted((len(words(source)), len(words(target))))
        return longer > ratio * shorter + 3


def mark_duplicates(verdicts: np.ndarray, hashes: np.ndarray) -> None:
    """Of the kept pairs with equal hashes all but the first become DUPLICATE.

    Works on one range of hashes after the other: it takes 2 bytes for each pair, and 30 for each of one range.
    """
    ranges = np.empty(len(hashes), dtype=np.uint8)
    np.right_shift(hashes, np.uint64(56), out=ranges, casting="unsafe")
    kept = verdicts == Verdict.KEPT
    for value in range(256):
        indices = np.flatnonzero((ranges == value) & kept)
        order = indices[np.argsort(hashes[indices], kind="stable")]
        verdicts[order[1:][hashes[order[1:]] == hashes[order[:-1]]]] = Verdict.DUPLICATE


_ESCAPES = re.compile(r"&(?:apos|quot|amp|lt|gt|#91|#93|#124);|@-@")
_APART = re.compile(r"\w [,.](?: |$)")  # French sets ; : ! ? apart itself


def looks_tokenised(text: str) -> bool:
    """Moses escapes, or ASCII punctuation standing apart as a tokeniser leaves it."""
    return bool(("&" in text or "@" in text) and _ESCAPES.search(text)) or bool(_APART.search(text))
