"""Links between words, from models that look where they are told and from untrained ones on any text."""

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.data.corpus import Alignment
from nmt.data.grammar import GrammarCorpus
from nmt.data.text import words
from nmt.data.tokenizer import TokenizerSettings, train_tokenizer
from nmt.decoding.alignment import Looks, align
from nmt.decoding.translator import Translator
from tests.decoding.conftest import LONGEST, SOURCES, SYSTEMS, TARGETS, untrained

ATTENDING = [system for system in SYSTEMS if system != "rnn"]
ODD = [
    "unbelievableness dog",
    "the  old\tdog",
    "",
    "a\u00a0b c",
    "x",
    "\u200b",
    "\u1680",
    "a\x00b \u00b4",
    "\u3000 \u2581 é",
]


class Looking(torch.nn.Module):
    """Looks where it is told: weights (L, H, T, S) by the pieces of source and target."""

    def __init__(self) -> None:
        super().__init__()
        self.told: dict[tuple[tuple[int, ...], tuple[int, ...]], torch.Tensor] = {}

    def weights(self, src: torch.Tensor, tgt_in: torch.Tensor) -> torch.Tensor:
        rows = []
        for source, target in zip(src.tolist(), tgt_in.tolist(), strict=True):
            told = self.told.get((tuple(source), tuple(i for i in target[1:] if i)), torch.ones(1, 1, 1, len(source)))
            rows.append(torch.nn.functional.pad(told, (0, 0, 0, len(target) - told.shape[2])))
        return torch.stack(rows)


def told(pairs: list[tuple[str, str, Alignment]], shift: int) -> Translator:
    """Each target word looks at the pieces of the source word that it is linked to, `shift` rows late."""
    source = train_tokenizer([s for s, _, _ in pairs], TokenizerSettings(vocab_size=330, shrink=True), normalises=True)
    target = train_tokenizer([t for _, t, _ in pairs], TokenizerSettings(vocab_size=330, shrink=True), normalises=False)
    model = Looking()
    for src_text, tgt_text, links in pairs:
        src, tgt = source.encode(src_text), target.encode(tgt_text)
        spans = [
            [len(side.encode(word)) for word in text.split()] for side, text in ((source, src_text), (target, tgt_text))
        ]
        weights = torch.zeros(len(tgt) + 1, len(src) + 1)
        weights[:, -1] = 0.5  # most of it falls on the end of the sentence
        for i, j in links:
            left, top = sum(spans[0][:i]), sum(spans[1][:j]) + shift
            weights[top : top + spans[1][j], left : left + spans[0][i]] = 0.4 / spans[0][i]
        model.told[(*src, 3), tuple(tgt)] = weights[None, None]
    return Translator(model, source, target, 1000)  # type: ignore[arg-type]


@pytest.mark.parametrize("shift", [0, 1])
def test_a_model_that_looks_at_the_right_words_gives_the_gold_links(shift: int) -> None:
    test = GrammarCorpus(train_pairs=1, valid_pairs=1, test_pairs=150).test_sets()["test"]
    assert test.alignments is not None
    pairs = [
        (source, target, links)
        for source, target, links in zip(test.sources, test.references[0], test.alignments, strict=True)
        if sorted(j for _, j in links) == list(range(len(target.split())))  # one link for each target word
    ]
    assert len(pairs) > 10
    aligned = align(told(pairs, shift), [pair[0] for pair in pairs], [pair[1] for pair in pairs])
    assert aligned is not None
    assert (aligned.looks, aligned.left_out) == (Looks(1, 1), 0)
    assert [sorted(links) for links in aligned.links(0, shift)] == [sorted(pair[2]) for pair in pairs]
    assert aligned.links(0, 1 - shift) != aligned.links(0, shift)


def test_words_that_nothing_looks_at_have_no_link() -> None:
    aligned = align(told([("the old dog", "der Hund", ((2, 1),))], shift=0), ["the old dog"], ["der Hund"])
    assert aligned is not None
    assert aligned.links(0, 0) == [((2, 1),)]


def test_layers_are_read_one_by_one_and_together() -> None:
    translator = told([("the dog", "der Hund", ((0, 0), (1, 1)))], shift=0)
    [(key, weights)] = translator.model.told.items()  # type: ignore[union-attr, operator]
    crossed = told([("the dog", "der Hund", ((1, 0), (0, 1)))], shift=0)
    [other] = crossed.model.told.values()  # type: ignore[union-attr, operator]
    layers = torch.cat([torch.cat([weights, 0.5 * other], dim=1), torch.cat([0.1 * weights, other], dim=1)])
    translator.model.told[key] = layers  # type: ignore[union-attr, operator, index]
    translator.model.weights = lambda src, tgt_in: layers[None].expand(len(src), -1, -1, -1, -1)  # type: ignore[assignment]
    aligned = align(translator, ["the dog"], ["der Hund"])
    assert aligned is not None
    assert aligned.looks.ways == ["layer 1, mean of heads", "layer 2, mean of heads", "mean of layers and heads"]
    straight, cross = ((0, 0), (1, 1)), ((1, 0), (0, 1))
    assert [aligned.links(way, 0) for way in range(3)] == [[straight], [cross], [cross]]


def test_ways_are_named_by_what_there_is_to_choose() -> None:
    assert Looks(1, 1).ways == [""]
    assert Looks(1, 4).ways == ["mean of heads"]
    assert Looks(2, 1).ways == ["layer 1", "layer 2", "mean of layers"]


def test_a_system_without_attention_has_no_alignments() -> None:
    assert align(untrained("rnn"), SOURCES, TARGETS) is None


@pytest.mark.parametrize("system", ATTENDING)
def test_links_stay_inside_the_words_whatever_the_words_are(system: str) -> None:
    aligned = align(untrained(system), [*ODD, "the dog"] * 2, [*ODD, *ODD, "der Hund", "x"])
    assert aligned is not None
    assert aligned.left_out == 0
    for shift in (0, 1):
        for way in range(len(aligned.looks.ways)):
            check(aligned.links(way, shift), [*ODD, "the dog"] * 2, [*ODD, *ODD, "der Hund", "x"])
    assert all(links == () for links in aligned.links(0, 0)[2::10])
    assert len(aligned.links(0, 0)[0]) == 2


def check(found: list[Alignment], sources: list[str], targets: list[str]) -> None:
    for links, source, target in zip(found, sources, targets, strict=True):
        assert all(0 <= i < len(words(source)) and 0 <= j < len(target.split()) for i, j in links)


@given(st.text(max_size=12), st.text(max_size=12))
@settings(max_examples=12, deadline=None)
def test_no_text_leads_out_of_its_words(source: str, target: str) -> None:
    aligned = align(untrained("bahdanau"), [source], [target])
    assert aligned is not None
    check(aligned.links(0, 1), [source], [target])


@pytest.mark.parametrize("system", ATTENDING)
def test_batches_change_no_link(system: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = [*SOURCES, "", *(f"{line} the dog" for line in SOURCES), *SOURCES]
    targets = [*TARGETS, "x", *reversed(TARGETS), *reversed(TARGETS)]
    together = align(untrained(system), sources, targets)
    monkeypatch.setattr("nmt.decoding.alignment.WEIGHTS", 1)
    assert together is not None
    for index, (source, target) in enumerate(zip(sources, targets, strict=True)):
        alone = align(untrained(system), [source], [target])
        assert alone is not None
        assert (alone.best[0] is None) == (together.best[index] is None)
        for shift in (0, 1):
            assert alone.links(0, shift) == [together.links(0, shift)[index]]


def test_sides_longer_than_the_model_reads_are_left_out_and_counted() -> None:
    translator = copy.copy(untrained("bahdanau"))
    assert translator.max_src_pieces == LONGEST
    long = "dog " * 3 * LONGEST
    aligned = align(translator, ["the dog", long, "the dog", long], ["der Hund", "der Hund", long, ""])
    assert aligned is not None
    assert aligned.left_out == 2
    assert [bool(links) for links in aligned.links(0, 0)] == [True, False, False, False]
