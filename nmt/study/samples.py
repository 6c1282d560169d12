"""Sentences of the test set that the report shows: samples with every system's output, and the attention example."""

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from nmt.data.corpus import TestSet
from nmt.data.text import words
from nmt.evaluation.by_length import source_length
from nmt.study.headline import LengthGroups
from nmt.study.results import System

# The example is long enough to have structure, short enough to be legible, and reorders words if any sentence does.
MIN_WORDS, MAX_WORDS, BEST_WORDS = 12, 18, 15
MIN_JUMP = 4  # words


class Example(NamedTuple):
    """A source sentence, with its reference and gold links (source word, target word) where known."""

    source: str
    reference: str | None = None
    gold: tuple[tuple[int, int], ...] = ()


class Sample(NamedTuple):
    """A sentence of the test set with the output of every system's first run."""

    source: str
    reference: str
    words: int
    outputs: dict[str, str]  # by system
    group: str  # short or long


def sample_outputs(systems: Sequence[System], test: TestSet, groups: LengthGroups, count: int) -> list[Sample]:
    """`count` short and as many long sentences, each with the output of every system's first run."""
    lengths = [source_length(source) for source in test.sources]
    return [
        Sample(
            test.sources[index],
            test.references[0][index],
            lengths[index],
            {system.label: system.results[0].hypotheses[index] for system in systems},
            group,
        )
        for group, length_bin in zip(("short", "long"), groups.bins, strict=True)
        for index in spread_over_lengths(
            lengths, count, [index for index, length in enumerate(lengths) if length in length_bin]
        )
    ]


def marked_words(output: str, reference: str) -> list[tuple[str, bool]]:
    """The words of an output in runs, and whether each run differs from the reference."""
    own, theirs = words(output), words(reference)
    steps = SequenceMatcher(None, theirs, own, autojunk=False).get_opcodes()
    return [(" ".join(own[start:end]), kind != "equal") for kind, _, _, start, end in steps if end > start]


def spread_over_lengths(lengths: Sequence[int], count: int, among: Sequence[int] | None = None) -> list[int]:
    """Indices of `count` sentences (or all there are), evenly from the shortest to the longest; no empty sentence."""
    indices = [index for index in (range(len(lengths)) if among is None else among) if lengths[index] > 0]
    indices.sort(key=lambda index: (lengths[index], index))
    if len(indices) <= count:
        return indices
    return [indices[round(n * (len(indices) - 1) / max(1, count - 1))] for n in range(count)]


def example_of(test: TestSet, sentence: str | None) -> Example | None:
    """The user's sentence, or else one of the test set; None where there is neither."""
    return find_example(test, sentence) if sentence else choose_example(test)


def find_example(test: TestSet, source: str) -> Example:
    """The user's sentence; with reference and gold alignment where it is in the test set."""
    return example_at(test, test.sources.index(source)) if source in test.sources else Example(source)


def choose_example(test: TestSet) -> Example | None:
    """The first test sentence of 12 to 18 words whose gold alignment jumps four words or more.

    Without alignments the first of that length; without one, that nearest to 15 words; None for an empty set.
    """
    candidates = [index for index, source in enumerate(test.sources) if MIN_WORDS <= len(words(source)) <= MAX_WORDS]
    if not candidates:
        nonempty = [index for index, source in enumerate(test.sources) if words(source)]
        candidates = sorted(nonempty, key=lambda index: abs(len(words(test.sources[index])) - BEST_WORDS))[:1]
    if not candidates:
        return None
    alignments = test.alignments
    if alignments is not None:
        candidates = [index for index in candidates if max_jump(alignments[index]) >= MIN_JUMP] or candidates
    return example_at(test, candidates[0])


def example_at(test: TestSet, index: int) -> Example:
    reference = test.references[0][index] if test.references else None
    gold = test.alignments[index] if test.alignments is not None else ()
    return Example(test.sources[index], reference, tuple(gold))


def max_jump(links: Sequence[tuple[int, int]]) -> int:
    """The largest distance of a link from the diagonal, in words."""
    return max((abs(source - target) for source, target in links), default=0)
