"""The data of the report's attention explorer: every layer's and head's weights over words, small enough to embed."""

import base64
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nmt.data.corpus import TestSet
from nmt.data.text import words
from nmt.errors import UserError
from nmt.evaluation.by_length import source_length
from nmt.study.attention_maps import END, WordMap, merge_pieces
from nmt.study.results import System
from nmt.study.samples import Example, example_at, spread_over_lengths

if TYPE_CHECKING:
    from nmt.decoding.translator import Translator

LEVELS = 255  # weights are rounded to 1/255
NO_ATTENTION: dict[str, Any] = {}  # the map of a model without attention

Links = Sequence[tuple[int, int]]


def explore_test_set(
    systems: Sequence[System], translators: Sequence[tuple[str, "Translator"]], test: TestSet, count: int
) -> dict[str, Any] | None:
    """`explorer_data` of `count` sentences from the shortest to the longest; None where no model can be loaded."""
    if not translators or not count:
        return None
    indices = spread_over_lengths([source_length(source) for source in test.sources], count)
    hypotheses = {system.label: [system.results[0].hypotheses[index] for index in indices] for system in systems}
    return explorer_data([example_at(test, index) for index in indices], translators, hypotheses)


def explorer_data(
    sentences: Sequence[Example],
    systems: Sequence[tuple[str, "Translator"]],
    hypotheses: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Any]:
    """Each system's attention in forced decoding of the references and, where given, of its own translations.

    hypotheses[label][i] is the system's translation of sentence i. The result is plain values:

        {"sentences": [{"source", "reference", "words"}],
         "systems": [{"system", "attention": bool}],
         "maps": {label: [{"reference": map | None, "own": map | None}]}}    one a sentence; see `packed_map`

    A map is None where there is no text, or the source is too long for the model; a system without attention has no
    maps.
    """
    shown, maps = [], {}
    for label, translator in systems:
        targets = hypotheses.get(label) if hypotheses else None
        system_maps = [
            {
                "reference": _attention_map(translator, example.source, example.reference, example.gold),
                "own": _attention_map(translator, example.source, targets[index], ()) if targets else None,
            }
            for index, example in enumerate(sentences)
        ]
        attends = all(map != NO_ATTENTION for row in system_maps for map in row.values())
        shown.append({"system": label, "attention": attends})
        maps[label] = system_maps if attends else []
    return {
        "sentences": [
            {"source": example.source, "reference": example.reference, "words": len(words(example.source))}
            for example in sentences
        ],
        "systems": shown,
        "maps": maps,
    }


def _attention_map(translator: "Translator", source: str, target: str | None, gold: Links) -> dict[str, Any] | None:
    if not target or not words(target):
        return None
    try:
        attention = translator.attention(source, target)
    except UserError:  # no pieces, or more than the model takes at once
        return None
    if attention is None:
        return NO_ATTENTION
    weights = np.asarray(attention.weights, dtype=np.float64)
    merged = merge_pieces(attention.source_pieces, attention.target_pieces, weights)
    # gold links count words between white space: they fit only where the map has exactly these words
    fits = (len(words(source)), len(words(target))) == tuple(
        sum(word != END for word in side) for side in (merged.source, merged.target)
    )
    return packed_map(merged, gold if fits else ())


def packed_map(map: WordMap, gold: Links = ()) -> dict[str, Any]:
    """A map as plain values: words, shape (L, H, T, S), weights as base64 of bytes in that order (0 to 255 for
    0 to 1), and gold links (source word, target word) from 0."""
    levels = np.rint(np.clip(map.weights, 0.0, 1.0) * LEVELS).astype(np.uint8)
    return {
        "source": map.source,
        "target": map.target,
        "shape": list(levels.shape),
        "weights": base64.b64encode(levels.tobytes()).decode("ascii"),
        "gold": [list(link) for link in gold],
    }
