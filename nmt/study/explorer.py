"""The data of the report's attention explorer: every layer's and head's weights over words, small enough to embed."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from nmt.data.corpus import TestSet
from nmt.data.text import words
from nmt.errors import UserError
from nmt.evaluation.by_length import source_length
from nmt.study.attention_maps import END, WordMap, merge_pieces
from nmt.study.results import System
from nmt.study.samples import Example, example_at, find_example, spread_over_lengths

if TYPE_CHECKING:
    from nmt.decoding.translator import Translator

LEVELS = 255  # weights are rounded to 1/255

Links = Sequence[tuple[int, int]]


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
class ExplorerSystem:
    system: str
    attention: bool


@dataclass(frozen=True)
class Explorer:
    """What the explorer shows: sentences, systems, and for each system a map and an output of each sentence."""

    sentences: list[ExplorerSentence]
    systems: list[ExplorerSystem]
    maps: dict[str, list[SentenceMaps]]  # empty for a system without attention
    outputs: dict[str, list[str | None]]  # translations, where known
    opened: int | None = None  # the sentence shown first; None: one of moderate length


def explore_test_set(
    systems: Sequence[System],
    translators: Sequence[tuple[str, "Translator"]],
    test: TestSet,
    count: int,
    sentence: str | None = None,
) -> Explorer | None:
    """The user's sentence and `count` of the test set from the shortest to the longest.

    None where no model can be loaded.
    """
    if not translators or not count:
        return None
    indices: list[int | None] = [*spread_over_lengths([source_length(source) for source in test.sources], count)]
    if sentence:
        place = test.sources.index(sentence) if sentence in test.sources else None
        indices = [place, *(index for index in indices if index != place)]
    examples = [find_example(test, sentence or "") if index is None else example_at(test, index) for index in indices]
    outputs = {
        system.label: [None if index is None else system.results[0].hypotheses[index] for index in indices]
        for system in systems
    }
    return replace(explorer_data(examples, translators, outputs), opened=0 if sentence else None)


def explorer_data(
    sentences: Sequence[Example],
    systems: Sequence[tuple[str, "Translator"]],
    outputs: Mapping[str, Sequence[str | None]] | None = None,
) -> Explorer:
    """Each system's attention in forced decoding of the references and of its own translations.

    outputs[label][i] is the system's translation of sentence i; None: it is translated now, where that can be told.
    """
    shown, maps = [], {}
    for label, translator in systems:
        targets = outputs.get(label) if outputs else None
        rows: list[SentenceMaps] = []
        attends = True
        for index, example in enumerate(sentences):
            own = targets[index] if targets else ""
            reference_map, attends_here = _attention_map(translator, example, example.reference or "", example.gold)
            own_map, _ = _attention_map(translator, example, own, ())
            attends = attends and attends_here
            rows.append(SentenceMaps(reference_map, own_map))
        shown.append(ExplorerSystem(label, attends))
        maps[label] = rows if attends else []
    return Explorer(
        [ExplorerSentence(example.source, example.reference, len(words(example.source))) for example in sentences],
        shown,
        maps,
        {label: list(outputs.get(label, [])) if outputs else [] for label, _ in systems},
    )


def _attention_map(
    translator: "Translator", example: Example, target: str | None, gold: Links
) -> tuple[PackedMap | None, bool]:
    """The map, and whether the system has attention as far as this sentence tells."""
    if target is not None and not words(target):
        return None, True
    try:
        attention = translator.attention(example.source, target)
    except UserError:  # no pieces, or more than the model takes at once
        return None, True
    if attention is None:
        return None, False
    weights = np.asarray(attention.weights, dtype=np.float64)
    merged = merge_pieces(attention.source_pieces, attention.target_pieces, weights)
    # gold links count words between white space: they fit only where the map has exactly these words
    fits = (len(words(example.source)), len(words(target or ""))) == tuple(
        sum(word != END for word in side) for side in (merged.source, merged.target)
    )
    return packed_map(merged, gold if fits else ()), True


def packed_map(map: WordMap, gold: Links = ()) -> PackedMap:
    levels = np.rint(np.clip(map.weights, 0.0, 1.0) * LEVELS).astype(np.uint8)
    packed = base64.b64encode(levels.tobytes()).decode("ascii")
    return PackedMap(map.source, map.target, list(levels.shape), packed, [list(link) for link in gold])
