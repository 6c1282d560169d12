"""The data of the report's attention explorer: every layer's and head's weights over words, small enough to embed."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nmt.data.corpus import TestSet
from nmt.data.text import words
from nmt.errors import UserError
from nmt.evaluation.by_length import source_length
from nmt.study.attention_maps import END, Links, WordMap, merge_pieces
from nmt.study.results import System
from nmt.study.samples import Example, example_at, spread_over_lengths

if TYPE_CHECKING:
    from nmt.decoding.translator import Translator

LEVELS = 255  # weights are rounded to 1/255


@dataclass(frozen=True)
class PackedMap:
    """A map as the page reads it."""

    source: list[str]  # words
    target: list[str]
    shape: list[int]  # (L, H, T, S)
    weights: str  # base64 of bytes in that order, 0 to 255 for 0 to 1
    gold: list[list[int]]  # links (source word, target word) from 0


@dataclass(frozen=True)
class SentenceMaps:
    """A system's attention on one sentence; None where there is no text, or the source is too long for the model."""

    reference: PackedMap | None = None  # forced decoding of the reference
    own: PackedMap | None = None  # of the system's translation


@dataclass(frozen=True)
class ExplorerSentence:
    source: str
    reference: str | None
    words: int


@dataclass(frozen=True)
class Explorer:
    """What the explorer shows: sentences, and for each system its maps and outputs of them."""

    sentences: list[ExplorerSentence]
    maps: dict[str, list[SentenceMaps]]  # empty for a system without attention
    outputs: dict[str, list[str | None]]  # translations; None: of the user's own sentence
    opened: int | None = None  # the sentence shown first; None: one of moderate length


def explore_test_set(
    systems: Sequence[System],
    translators: Sequence[tuple[str, "Translator"]],
    test: TestSet,
    count: int,
    sentence: str | None = None,
) -> Explorer | None:
    """Each system's attention in forced decoding of the references and of its own translations.

    For the user's sentence, which is translated now unless it is in the test set, and `count` sentences of that from
    the shortest to the longest. None where no model can be loaded.
    """
    if not translators or not count:
        return None
    indices: list[int | None] = [*spread_over_lengths(list(map(source_length, test.sources)), count)]
    if sentence:
        place = test.sources.index(sentence) if sentence in test.sources else None
        indices = [place, *(index for index in indices if index != place)]
    examples = [Example(sentence or "") if index is None else example_at(test, index) for index in indices]
    hypotheses = {system.label: system.results[0].hypotheses for system in systems}
    maps, outputs = {}, {}
    for label, translator in translators:
        outputs[label] = [None if index is None else hypotheses[label][index] for index in indices]
        rows, attends = [], True
        for example, output in zip(examples, outputs[label], strict=True):
            reference, attends_here = _attention_map(translator, example, example.reference or "", example.gold)
            rows.append(SentenceMaps(reference, _attention_map(translator, example, output)[0]))
            attends = attends and attends_here
        maps[label] = rows if attends else []
    sentences = [
        ExplorerSentence(example.source, example.reference, len(words(example.source))) for example in examples
    ]
    return Explorer(sentences, maps, outputs, 0 if sentence else None)


def _attention_map(
    translator: "Translator", example: Example, target: str | None, gold: Links = ()
) -> tuple[PackedMap | None, bool]:
    """The map, and whether the system has attention as far as this sentence tells. No target: it is translated now."""
    if target is not None and not words(target):
        return None, True
    try:
        attention = translator.attention(example.source, target)
    except UserError:  # no pieces, or more than the model takes at once
        return None, True
    if attention is None:
        return None, False
    merged = merge_pieces(attention.source_pieces, attention.target_pieces, np.asarray(attention.weights, np.float64))
    # gold links count words between white space: they fit only where the map has exactly these words
    counts = [sum(word != END for word in side) for side in (merged.source, merged.target)]
    return packed_map(merged, gold if counts == [len(words(example.source)), len(words(target or ""))] else ()), True


def packed_map(map: WordMap, gold: Links = ()) -> PackedMap:
    levels = np.rint(np.clip(map.weights, 0.0, 1.0) * LEVELS).astype(np.uint8)
    packed = base64.b64encode(levels.tobytes()).decode("ascii")
    return PackedMap(map.source, map.target, list(levels.shape), packed, [list(link) for link in gold])
