"""The data of the attention explorer, from translators whose attention is known."""

import base64

import numpy as np
import torch

from nmt.decoding.translator import AttentionMap
from nmt.errors import UserError
from nmt.study.attention_maps import WordMap
from nmt.study.explorer import explorer_data, packed_map
from nmt.study.samples import Example


class Looking:
    """A translator whose attention is known: one layer, two heads; blind where it has no weights."""

    def __init__(self, blind: bool = False) -> None:
        self.blind = blind

    def attention(self, source: str, target: str) -> AttentionMap | None:
        if len(source.split()) > 3:
            raise UserError("too long")
        if self.blind:
            return None
        pieces = [[f"\u2581{word}" for word in text.split()] + ["</s>"] for text in (source, target)]
        weights = torch.zeros(1, 2, len(pieces[1]), len(pieces[0]))
        weights[:, 0, :, 0] = 1.0
        weights[:, 1] = 1 / len(pieces[0])
        return AttentionMap(pieces[0], pieces[1], weights)


def test_explorer_data_come_from_translators() -> None:
    sentences = [
        Example("a b", "x y z", ((0, 0), (1, 2))),
        Example("a b c d", "x"),
        Example("a b", None),
    ]
    own = {"seeing": ["x", "y", ""]}
    data = explorer_data(sentences, [("blind", Looking(True)), ("seeing", Looking())], own)  # type: ignore[list-item]
    assert data["systems"] == [{"system": "blind", "attention": False}, {"system": "seeing", "attention": True}]
    assert data["maps"]["blind"] == []
    first, long, bare = data["maps"]["seeing"]
    assert first["reference"]["shape"] == [1, 2, 4, 3]
    assert first["reference"]["gold"] == [[0, 0], [1, 2]]
    assert first["own"]["target"] == ["x", "</s>"]
    assert first["own"]["gold"] == []
    assert long == {"reference": None, "own": None}
    assert bare == {"reference": None, "own": None}
    assert [row["words"] for row in data["sentences"]] == [2, 4, 2]


def test_packed_weights_come_back_within_half_a_level() -> None:
    weights = np.random.default_rng(1).dirichlet([0.3] * 7, size=(3, 4, 5))
    map = packed_map(WordMap(list("abcdefg"), list("vwxyz"), weights))
    levels = np.frombuffer(base64.b64decode(map["weights"]), dtype=np.uint8).reshape(map["shape"])
    assert np.abs(levels / 255 - weights).max() <= 0.5 / 255 + 1e-12


def test_gold_is_left_out_where_its_words_are_not_those_of_the_map() -> None:
    class Merging(Looking):
        def attention(self, source: str, target: str) -> AttentionMap | None:
            return AttentionMap(["\u2581a", "b", "</s>"], ["\u2581x", "</s>"], torch.full((1, 1, 2, 3), 1 / 3))

    data = explorer_data([Example("a b", "x", ((1, 0),))], [("merging", Merging())])  # type: ignore[list-item]
    assert data["maps"]["merging"][0]["reference"]["gold"] == []
