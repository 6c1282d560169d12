"""The data of the report's attention explorer: every layer's and head's weights over words, small enough to embed."""

import base64
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nmt.data.text import words
from nmt.errors import UserError
from nmt.study.sentence import Example
from nmt.study.words import END, WordMap, merge_pieces

if TYPE_CHECKING:
    from nmt.decoding.translator import Translator

LEVELS = 255  # a weight is read to 1/255
BLIND: dict[str, Any] = {}  # what is seen by a model that does not look

Links = Sequence[tuple[int, int]]


def explorer_data(
    sentences: Sequence[Example],
    systems: Sequence[tuple[str, "Translator"]],
    own: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Any]:
    """Where each system looks while it is made to write the references and, where given, its own translations.

    own[label][i] is the system's translation of sentence i. The result is plain values:

        {"sentences": [{"source", "reference", "words"}],
         "systems": [{"system", "attention": bool}],
         "maps": {label: [{"reference": map | None, "own": map | None}]}}    one a sentence; see `packed`

    A map is None where there is no text or the source is too long for the system to be looked at whole; a
    system without attention has no maps.
    """
    shown, maps = [], {}
    for label, translator in systems:
        found = [
            {
                "reference": _look(translator, example.source, example.reference, example.gold),
                "own": _look(translator, example.source, own[label][place], ()) if own and label in own else None,
            }
            for place, example in enumerate(sentences)
        ]
        blind = any(map == BLIND for row in found for map in row.values())
        shown.append({"system": label, "attention": not blind})
        maps[label] = [] if blind else found
    return {
        "sentences": [
            {"source": example.source, "reference": example.reference, "words": len(words(example.source))}
            for example in sentences
        ],
        "systems": shown,
        "maps": maps,
    }


def _look(translator: "Translator", source: str, target: str | None, gold: Links) -> dict[str, Any] | None:
    if not target or not words(target):
        return None
    try:
        seen = translator.attention(source, target)
    except UserError:  # no pieces, or more than the model takes at once
        return None
    if seen is None:
        return BLIND
    merged = merge_pieces(seen.source_pieces, seen.target_pieces, np.asarray(seen.weights, dtype=np.float64))
    counted = (len(words(source)), len(words(target))) == tuple(
        sum(word != END for word in side) for side in (merged.source, merged.target)
    )
    return packed(merged, gold if counted else ())


def packed(map: WordMap, gold: Links = ()) -> dict[str, Any]:
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
