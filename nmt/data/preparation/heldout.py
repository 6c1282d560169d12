"""Sentences of dev and test sets, to be recognised in training text: case, punctuation and spacing do not count."""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from nmt.data.corpus import Pair, TestSet
from nmt.data.text import words

_NO_LETTER = re.compile(r"[\W_]+")
_ASCII_REST = bytes(code for code in range(128) if not chr(code).isalnum())
_SPACELESS_LETTER = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def key(text: str) -> str:
    """Letters and digits alone, in one case and one Unicode form."""
    return _NO_LETTER.sub("", unicodedata.normalize("NFKC", text).casefold())


def rough_key(text: str) -> bytes:
    """The ASCII part of `key`, three times faster: where these differ, the keys do."""
    return unicodedata.normalize("NFKC", text).casefold().encode("ascii", "ignore").translate(None, _ASCII_REST)


@dataclass(frozen=True)
class HeldOut:
    """The sets' sentences by key, and the pairs they form."""

    one_side_words: int = 4
    sources: dict[str, str] = field(default_factory=dict)  # key -> name of the set
    targets: dict[str, str] = field(default_factory=dict)
    pairs: dict[tuple[str, str], str] = field(default_factory=dict)
    rough_sources: set[bytes] = field(default_factory=set)
    rough_targets: set[bytes] = field(default_factory=set)

    @classmethod
    def of(cls, valid: Iterable[Pair], tests: Mapping[str, TestSet], one_side_words: int) -> "HeldOut":
        held_out = cls(one_side_words)
        for pair in valid:
            held_out._add("valid", pair.source, pair.target)
        for name, test in tests.items():
            for stream in test.references:
                for source, target in zip(test.sources, stream, strict=True):
                    held_out._add(name, source, target)
        return held_out

    def find(self, source: str, target: str) -> str:
        """The set that holds this pair, or one side of it of `one_side_words` or more; empty where none does."""
        near_source = rough_key(source) in self.rough_sources
        near_target = rough_key(target) in self.rough_targets
        if not (near_source or near_target):
            return ""
        sides = (key(source), key(target))
        if sides in self.pairs:
            return self.pairs[sides]
        for text, name in ((source, self.sources.get(sides[0])), (target, self.targets.get(sides[1]))):
            if name and _count_words(text) >= self.one_side_words:
                return name
        return ""

    def _add(self, name: str, source: str, target: str) -> None:
        sides = (key(source), key(target))
        if all(sides):
            self.pairs.setdefault(sides, name)
        for text, text_key, keys, rough in (
            (source, sides[0], self.sources, self.rough_sources),
            (target, sides[1], self.targets, self.rough_targets),
        ):
            if text_key:
                keys.setdefault(text_key, name)
                rough.add(rough_key(text))


def _count_words(text: str) -> int:
    """Whitespace-separated words; in a script without spaces every letter counts half a word."""
    return max(len(words(text)), len(_SPACELESS_LETTER.findall(text)) // 2)
