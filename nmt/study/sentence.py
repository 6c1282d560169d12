"""Which sentence's attention is drawn: of moderate length, with some reordering, and the same one every time."""

from collections.abc import Sequence
from typing import NamedTuple

from nmt.data.corpus import TestSet
from nmt.data.text import words

SHORTEST, LONGEST, BEST = 12, 18, 15  # source words
FAR = 4  # words that a link jumps: there is something to see beside the diagonal


class Example(NamedTuple):
    """A source sentence, with its reference and gold links (source word, target word) where known."""

    source: str
    reference: str | None = None
    gold: tuple[tuple[int, int], ...] = ()


def example_of(test: TestSet, sentence: str | None) -> Example | None:
    """The user's sentence, or one of the test set; None where there is neither."""
    return find_example(test, sentence) if sentence else choose_example(test)


def spread(lengths: Sequence[int], count: int, among: Sequence[int] | None = None) -> list[int]:
    """The places of `count` sentences, or of all there are, evenly from the shortest to the longest; no empty one."""
    places = [place for place in (range(len(lengths)) if among is None else among) if lengths[place] > 0]
    places.sort(key=lambda place: (lengths[place], place))
    if len(places) <= count:
        return places
    return [places[round(n * (len(places) - 1) / max(1, count - 1))] for n in range(count)]


def choose_example(test: TestSet) -> Example | None:
    """The first test sentence of 12 to 18 words whose gold alignment jumps four words or more.

    Without alignments the first of that length; without one, that nearest to 15 words; None for an empty set.
    """
    fitting = [index for index, source in enumerate(test.sources) if SHORTEST <= len(words(source)) <= LONGEST]
    if not fitting:
        filled = [index for index, source in enumerate(test.sources) if words(source)]
        fitting = sorted(filled, key=lambda index: abs(len(words(test.sources[index])) - BEST))[:1]
    if not fitting:
        return None
    alignments = test.alignments
    if alignments is not None:
        fitting = [index for index in fitting if jump(alignments[index]) >= FAR] or fitting
    return example_at(test, fitting[0])


def find_example(test: TestSet, source: str) -> Example:
    """The user's sentence; with reference and gold alignment where it stands in the test set."""
    return example_at(test, test.sources.index(source)) if source in test.sources else Example(source)


def example_at(test: TestSet, index: int) -> Example:
    reference = test.references[0][index] if test.references else None
    gold = test.alignments[index] if test.alignments is not None else ()
    return Example(test.sources[index], reference, tuple(gold))


def jump(links: Sequence[tuple[int, int]]) -> int:
    """The farthest that a link stands from the diagonal, in words."""
    return max((abs(source - target) for source, target in links), default=0)
