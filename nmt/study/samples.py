"""Sentences of the test set that the report shows: samples with every system's output, and the attention example."""

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from nmt.data.corpus import TestSet
from nmt.data.text import words
from nmt.evaluation.by_length import Bin, source_length
from nmt.study.results import System

# The example is long enough to have structure, short enough to be legible, and reorders words if any sentence does.
MIN_WORDS, MAX_WORDS, BEST_WORDS = 12, 18, 15
MIN_JUMP = 4  # words between a link and the diagonal
NONEMPTY = Bin(1, None)


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


def sample_outputs(systems: Sequence[System], test: TestSet, groups: Sequence[Bin], count: int) -> list[Sample]:
    """`count` short and as many long sentences, each with the output of every system's first run."""
    lengths = list(map(source_length, test.sources))
    samples = []
    for group, length_bin in zip(("short", "long"), groups, strict=True):
        for index in spread_over_lengths(lengths, count, length_bin):
            outputs = {system.label: system.results[0].hypotheses[index] for system in systems}
            samples.append(Sample(test.sources[index], test.references[0][index], lengths[index], outputs, group))
    return samples


def marked_words(output: str, reference: str) -> list[tuple[str, bool]]:
    """The words of an output in runs, and whether each run differs from the reference."""
    own, theirs = words(output), words(reference)
    steps = SequenceMatcher(None, theirs, own, autojunk=False).get_opcodes()
    return [(" ".join(own[start:end]), kind != "equal") for kind, _, _, start, end in steps if end > start]


def spread_over_lengths(lengths: Sequence[int], count: int, among: Bin = NONEMPTY) -> list[int]:
    """Indices of `count` sentences of such lengths (or all there are), evenly from the shortest to the longest."""
    indices = [index for index, length in enumerate(lengths) if length in among]
    indices.sort(key=lambda index: (lengths[index], index))
    if len(indices) <= count:
        return indices
    return [indices[round(n * (len(indices) - 1) / max(1, count - 1))] for n in range(count)]


def example_of(test: TestSet, sentence: str | None) -> Example | None:
    """The user's sentence, or else one of the test set; None for a set without words.

    It is the first of 12 to 18 words whose gold alignment jumps four words or more; without alignments the first of
    that length; without one, that nearest to 15 words.
    """
    if sentence:
        return example_at(test, test.sources.index(sentence)) if sentence in test.sources else Example(sentence)
    lengths = [len(words(source)) for source in test.sources]
    candidates = [index for index, length in enumerate(lengths) if MIN_WORDS <= length <= MAX_WORDS]
    if not candidates:
        nonempty = [index for index, length in enumerate(lengths) if length]
        candidates = sorted(nonempty, key=lambda index: abs(lengths[index] - BEST_WORDS))[:1]
    links = test.alignments
    jumping = [n for n in candidates if links is not None and any(abs(s - t) >= MIN_JUMP for s, t in links[n])]
    return example_at(test, (jumping or candidates)[0]) if candidates else None


def example_at(test: TestSet, index: int) -> Example:
    gold = test.alignments[index] if test.alignments is not None else ()
    return Example(test.sources[index], test.references[0][index], tuple(gold))
