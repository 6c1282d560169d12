"""The two kinds of word that phrases are made of, and the step from words to a `Pair`.

An English word is an object with an identity. A German word knows the English words that it translates, so a phrase
can be moved, split and wrapped on the German side and the alignment is still right: it is read off at the very end.
"""

from typing import NamedTuple

from nmt.data.corpus import Pair


class Word:
    """One English word (or comma) of one sentence; `index` is its place once the sentence is complete."""

    __slots__ = ("index", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.index = -1


class Out(NamedTuple):
    """One German word (or comma) and the English words that it translates; none for a comma."""

    text: str
    of: tuple[Word, ...] = ()


class Phrase(NamedTuple):
    """A stretch of English and its German, each in its own order."""

    en: list[Word]
    de: list[Out]


KOMMA = Out(",")


def comma() -> Word:
    """An English comma: a word of its own, aligned to nothing."""
    return Word(",")


def words(text: str) -> list[Word]:
    """English words from text, separated by spaces."""
    return [Word(w) for w in text.split()]


def to_pair(phrase: Phrase) -> Pair:
    """The finished sentence pair.

    Every subordinate clause brings a comma before and after it; two that meet are one, and none ends the sentence.
    """
    english: list[Word] = []
    for word in phrase.en:
        if word.text == "," and (not english or english[-1].text == ","):
            continue
        english.append(word)
    german: list[Out] = []
    for out in phrase.de:
        if out.text == "," and (not german or german[-1].text == ","):
            continue
        german.append(out)
    while english[-1].text == ",":
        english.pop()
    while german[-1].text == ",":
        german.pop()
    for i, word in enumerate(english):
        word.index = i
    links = sorted((word.index, j) for j, out in enumerate(german) for word in out.of)
    return Pair(" ".join(w.text for w in english), " ".join(o.text for o in german), tuple(links))
