"""The data of the attention explorer, from translators whose attention is known."""

import base64
from pathlib import Path

import numpy as np
import torch

from nmt.data.corpus import TestSet
from nmt.decoding.translator import AttentionMap
from nmt.errors import UserError
from nmt.study.attention_maps import WordMap
from nmt.study.explorer import Explorer, SentenceMaps, explore_test_set, packed_map
from nmt.study.results import Result, System


class Looking:
    """A translator whose attention is known: one layer, two heads; blind where it has no weights."""

    def __init__(self, blind: bool = False) -> None:
        self.blind = blind

    def attention(self, source: str, target: str | None = None) -> AttentionMap | None:
        target = target or "own"
        if len(source.split()) > 3:
            raise UserError("too long")
        if self.blind:
            return None
        pieces = [[f"\u2581{word}" for word in text.split()] + ["</s>"] for text in (source, target)]
        weights = torch.zeros(1, 2, len(pieces[1]), len(pieces[0]))
        weights[:, 0, :, 0] = 1.0
        weights[:, 1] = 1 / len(pieces[0])
        return AttentionMap(pieces[0], pieces[1], weights)


def explored(test: TestSet, translators: list[tuple[str, Looking]], hypotheses: list[str]) -> Explorer:
    systems = [System(label, (Result(label, label, Path("r"), hypotheses),)) for label, _ in translators]
    data = explore_test_set(systems, translators, test, 9)  # type: ignore[arg-type]
    assert data is not None
    return data


def test_explorer_data_come_from_translators() -> None:
    test = TestSet("test", ["a b", "a b", "a b c d"], [["x y z", "", "x"]], [((0, 0), (1, 2)), (), ()])
    data = explored(test, [("blind", Looking(True)), ("seeing", Looking())], ["x", "", "y"])
    assert data.maps["blind"] == []
    first, bare, long = data.maps["seeing"]
    assert first.reference is not None
    assert first.own is not None
    assert first.reference.shape == [1, 2, 4, 3]
    assert first.reference.gold == [[0, 0], [1, 2]]
    assert first.own.target == ["x", "</s>"]
    assert first.own.gold == []
    assert long == bare == SentenceMaps(None, None)
    assert [row.words for row in data.sentences] == [2, 2, 4]
    assert data.outputs == {"blind": ["x", "", "y"], "seeing": ["x", "", "y"]}


def test_packed_weights_come_back_within_half_a_level() -> None:
    weights = np.random.default_rng(1).dirichlet([0.3] * 7, size=(3, 4, 5))
    map = packed_map(WordMap(list("abcdefg"), list("vwxyz"), weights))
    levels = np.frombuffer(base64.b64decode(map.weights), dtype=np.uint8).reshape(map.shape)
    assert np.abs(levels / 255 - weights).max() <= 0.5 / 255 + 1e-12


def test_gold_is_left_out_where_its_words_are_not_those_of_the_map() -> None:
    class Merging(Looking):
        def attention(self, source: str, target: str | None = None) -> AttentionMap | None:
            return AttentionMap(["\u2581a", "b", "</s>"], ["\u2581x", "</s>"], torch.full((1, 1, 2, 3), 1 / 3))

    data = explored(TestSet("test", ["a b"], [["x"]], [((1, 0),)]), [("merging", Merging())], ["x"])
    assert data.maps["merging"][0].reference.gold == []  # type: ignore[union-attr]


def test_the_users_sentence_is_the_first_in_the_explorer() -> None:
    test = TestSet("test", ["a b", "c"], [["x y", "z"]])
    systems = [System("seeing", (Result("seeing", "seeing", Path("r"), ["u v", "w"]),))]
    translators = [("seeing", Looking())]
    new = explore_test_set(systems, translators, test, 2, "d e")  # type: ignore[arg-type]
    assert new is not None
    assert [row.source for row in new.sentences] == ["d e", "c", "a b"]
    assert new.opened == 0
    first = new.maps["seeing"][0]
    assert (first.reference, first.own and first.own.target) == (None, ["own", "</s>"])  # translated now
    known = explore_test_set(systems, translators, test, 2, "a b")  # type: ignore[arg-type]
    assert known is not None
    assert [row.source for row in known.sentences] == ["a b", "c"]
    assert known.outputs["seeing"] == ["u v", "w"]
