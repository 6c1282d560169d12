"""Word alignments from models with prescribed attention, and from untrained ones on any text."""

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.data.corpus import Alignment
from nmt.data.grammar import GrammarCorpus
from nmt.data.text import words
from nmt.data.tokenizer import train_tokenizer
from nmt.decoding.forced_alignment import AttentionShape, force_align
from nmt.decoding.translator import Translator
from nmt.training_settings import TokenizerSettings
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


class PrescribedAttention(torch.nn.Module):
    """Attention weights (L, H, T, S) by the pieces of source and target."""

    def __init__(self) -> None:
        super().__init__()
        self.prescribed: dict[tuple[tuple[int, ...], tuple[int, ...]], torch.Tensor] = {}

    def weights(self, src: torch.Tensor, tgt_in: torch.Tensor) -> torch.Tensor:
        rows = []
        for source, target in zip(src.tolist(), tgt_in.tolist(), strict=True):
            key = tuple(source), tuple(i for i in target[1:] if i)
            weights = self.prescribed.get(key, torch.ones(1, 1, 1, len(source)))
            rows.append(torch.nn.functional.pad(weights, (0, 0, 0, len(target) - weights.shape[2])))
        return torch.stack(rows)


def attending_to(pairs: list[tuple[str, str, Alignment]], shift: int) -> Translator:
    """Each target word attends to the pieces of the source word that it is linked to, `shift` rows later."""
    source = train_tokenizer(
        [s for s, _, _ in pairs], TokenizerSettings.defaults(vocab_size=330, shrink=True), normalises=True
    )
    target = train_tokenizer(
        [t for _, t, _ in pairs], TokenizerSettings.defaults(vocab_size=330, shrink=True), normalises=False
    )
    model = PrescribedAttention()
    for src_text, tgt_text, links in pairs:
        src, tgt = source.encode(src_text), target.encode(tgt_text)
        spans = [
            [len(side.encode(word)) for word in text.split()] for side, text in ((source, src_text), (target, tgt_text))
        ]
        weights = torch.zeros(len(tgt) + 1, len(src) + 1)
        weights[:, -1] = 0.5  # the largest weight falls on </s>
        for i, j in links:
            left, top = sum(spans[0][:i]), sum(spans[1][:j]) + shift
            weights[top : top + spans[1][j], left : left + spans[0][i]] = 0.4 / spans[0][i]
        model.prescribed[(*src, 3), tuple(tgt)] = weights[None, None]
    return Translator(model, source, target, 1000)  # type: ignore[arg-type]


@pytest.mark.parametrize("shift", [0, 1])
def test_attention_to_the_right_words_gives_the_gold_links(shift: int) -> None:
    test = GrammarCorpus(train_pairs=1, valid_pairs=1, test_pairs=150).test_sets()["test"]
    assert test.alignments is not None
    pairs = [
        (source, target, links)
        for source, target, links in zip(test.sources, test.references[0], test.alignments, strict=True)
        if sorted(j for _, j in links) == list(range(len(target.split())))  # one link for each target word
    ]
    assert len(pairs) > 10
    aligned = force_align(attending_to(pairs, shift), [pair[0] for pair in pairs], [pair[1] for pair in pairs])
    assert aligned is not None
    assert (aligned.shape, aligned.left_out) == (AttentionShape(1, 1), 0)
    assert [sorted(links) for links in aligned.links(0, shift)] == [sorted(pair[2]) for pair in pairs]
    assert aligned.links(0, 1 - shift) != aligned.links(0, shift)


def test_source_words_without_attention_have_no_link() -> None:
    aligned = force_align(
        attending_to([("the old dog", "der Hund", ((2, 1),))], shift=0), ["the old dog"], ["der Hund"]
    )
    assert aligned is not None
    assert aligned.links(0, 0) == [((2, 1),)]


def test_layers_are_aligned_one_by_one_and_averaged() -> None:
    translator = attending_to([("the dog", "der Hund", ((0, 0), (1, 1)))], shift=0)
    [(key, weights)] = translator.model.prescribed.items()  # type: ignore[union-attr, operator]
    crossed = attending_to([("the dog", "der Hund", ((1, 0), (0, 1)))], shift=0)
    [other] = crossed.model.prescribed.values()  # type: ignore[union-attr, operator]
    layers = torch.cat([torch.cat([weights, 0.5 * other], dim=1), torch.cat([0.1 * weights, other], dim=1)])
    translator.model.prescribed[key] = layers  # type: ignore[union-attr, operator, index]
    translator.model.weights = lambda src, tgt_in: layers[None].expand(len(src), -1, -1, -1, -1)  # type: ignore[assignment]
    aligned = force_align(translator, ["the dog"], ["der Hund"])
    assert aligned is not None
    assert aligned.shape.layer_names == ["layer 1, mean of heads", "layer 2, mean of heads", "mean of layers and heads"]
    straight, cross = ((0, 0), (1, 1)), ((1, 0), (0, 1))
    assert [aligned.links(layer, 0) for layer in range(3)] == [[straight], [cross], [cross]]


def test_layer_names_say_what_is_averaged() -> None:
    assert AttentionShape(1, 1).layer_names == [""]
    assert AttentionShape(1, 4).layer_names == ["mean of heads"]
    assert AttentionShape(2, 1).layer_names == ["layer 1", "layer 2", "mean of layers"]


def test_a_system_without_attention_has_no_alignments() -> None:
    assert force_align(untrained("rnn"), SOURCES, TARGETS) is None


@pytest.mark.parametrize("system", ATTENDING)
def test_links_stay_within_the_words_of_any_text(system: str) -> None:
    aligned = force_align(untrained(system), [*ODD, "the dog"] * 2, [*ODD, *ODD, "der Hund", "x"])
    assert aligned is not None
    assert aligned.left_out == 0
    for shift in (0, 1):
        for layer in range(len(aligned.shape.layer_names)):
            check_links(aligned.links(layer, shift), [*ODD, "the dog"] * 2, [*ODD, *ODD, "der Hund", "x"])
    assert all(links == () for links in aligned.links(0, 0)[2::10])
    assert len(aligned.links(0, 0)[0]) == 2


def check_links(alignments: list[Alignment], sources: list[str], targets: list[str]) -> None:
    for links, source, target in zip(alignments, sources, targets, strict=True):
        assert all(0 <= i < len(words(source)) and 0 <= j < len(target.split()) for i, j in links)


@given(st.text(max_size=12), st.text(max_size=12))
@settings(max_examples=12, deadline=None)
def test_links_stay_within_the_words_of_random_text(source: str, target: str) -> None:
    aligned = force_align(untrained("bahdanau"), [source], [target])
    assert aligned is not None
    check_links(aligned.links(0, 1), [source], [target])


@pytest.mark.parametrize("system", ATTENDING)
def test_batches_change_no_link(system: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = [*SOURCES, "", *(f"{line} the dog" for line in SOURCES), *SOURCES]
    targets = [*TARGETS, "x", *reversed(TARGETS), *reversed(TARGETS)]
    together = force_align(untrained(system), sources, targets)
    monkeypatch.setattr("nmt.decoding.forced_alignment.MAX_WEIGHTS", 1)
    assert together is not None
    for index, (source, target) in enumerate(zip(sources, targets, strict=True)):
        alone = force_align(untrained(system), [source], [target])
        assert alone is not None
        assert (alone.best[0] is None) == (together.best[index] is None)
        for shift in (0, 1):
            assert alone.links(0, shift) == [together.links(0, shift)[index]]


def test_sides_longer_than_max_src_pieces_are_left_out_and_counted() -> None:
    translator = copy.copy(untrained("bahdanau"))
    assert translator.max_src_pieces == LONGEST
    long = "dog " * 3 * LONGEST
    aligned = force_align(translator, ["the dog", long, "the dog", long], ["der Hund", "der Hund", long, ""])
    assert aligned is not None
    assert aligned.left_out == 2
    assert [bool(links) for links in aligned.links(0, 0)] == [True, False, False, False]
