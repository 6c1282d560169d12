"""Any text in, one clean line out, whatever else is in the batch."""

import random

import pytest
import torch

from nmt.data.tokenizer import BOS, EOS
from nmt.decoding.beam_search import search
from nmt.decoding.translator import Translator
from nmt.errors import UserError
from nmt.settings import SearchSettings

SHORT = SearchSettings.defaults(max_ratio=0.5, max_extra=7)
INVISIBLE = ["", " ", "\t", "\u00a0", "\u3000", "\u200b", "\ufeff", "\u200e", "\u2581", " \u2581 \u200b", "\r"]
ODD = [
    "a \u2581 b",
    "ab\u2581cd",
    'a < b & c > d "e" <b>f</b>',
    "the old\tdog",
    "one\u2029two",
    "three\x0cfour",
    "five\x1csix\x1dsix",
    "seven\reight",
    "\U0001f469\u200d\U0001f52c \U0001f600",
    "قال الرجل",
    "这只老狗在睡觉。",
    "\x00\x01\x02\x7f\x85",
    "\ufffd",
    "</s> <s> <pad> <unk>",
    "the cafe\u0301",
]


def is_one_clean_line(text: str) -> bool:
    return not any(ord(c) < 32 or 127 <= ord(c) < 160 or c in "\u2028\u2029\u2581\ufffd" for c in text)


def test_lines_without_pieces_give_empty_lines_and_never_reach_the_model(translator: Translator):
    def refuse(src: torch.Tensor) -> None:
        raise AssertionError("the model was called")

    translator.model = type("Refusing", (torch.nn.Module,), {"encode": staticmethod(refuse)})()
    assert translator.translate(INVISIBLE) == [""] * len(INVISIBLE)
    assert translator.translate([]) == []


def test_every_line_gives_one_clean_line(translator: Translator):
    lines = [*ODD, *INVISIBLE, "the old dog sleeps"]
    for text, line in zip(translator.translate(lines, SHORT), lines, strict=True):
        assert is_one_clean_line(text), ascii(line)


def test_a_string_gives_a_string_and_a_list_a_list(bahdanau: Translator):
    line = "the old man walks to the market"
    translation = bahdanau.translate(line)
    assert isinstance(translation, str)
    assert bahdanau.translate([line]) == [translation]


def test_six_spellings_of_one_sentence_get_one_translation(translator: Translator):
    spellings = [
        "the dog sees the cafe\u0301",
        "the dog sees the caf\u00e9",
        "the\u00a0dog sees the caf\u00e9",
        "the\u3000dog sees the caf\u00e9",
        "the dog se\u00ades the caf\u00e9",
        "\ufeffthe dog sees the caf\u00e9",
    ]
    assert len(set(translator.translate(spellings, SHORT))) == 1


def mixed_lines(count: int) -> list[str]:
    choose = random.Random(3)
    words = "the old dog sleeps near a house; we like green apples and the market".split()
    lines = [" ".join(choose.choices(words, k=choose.randint(1, 7))) for _ in range(count)]
    return ["1.", "the old dog sleeps", "a", "", *lines, "the man sees the dog and " * 12]


def test_neither_batch_nor_order_changes_any_score_or_translation(translator: Translator):
    lines = mixed_lines(9)
    settings = [SearchSettings.defaults(n_best=3, max_ratio=0.5, max_extra=11, batch=batch) for batch in (1, 2, 64)]
    expected = translator.hypotheses(lines, settings[0])
    for other in settings[1:]:
        assert translator.hypotheses(lines, other) == expected
    order = list(range(len(lines)))
    random.Random(5).shuffle(order)
    shuffled = translator.hypotheses([lines[index] for index in order], settings[2])
    assert shuffled == [expected[index] for index in order]


def test_n_best_texts_are_distinct_and_begin_with_the_best(translator: Translator):
    lines = mixed_lines(7)
    best_only = translator.hypotheses(lines, SearchSettings.defaults(n_best=1, max_ratio=0.5, max_extra=11))
    five_best = translator.hypotheses(lines, SearchSettings.defaults(n_best=5, max_ratio=0.5, max_extra=11))
    for line, best, hypotheses in zip(lines, best_only, five_best, strict=True):
        scores = [hypothesis.score for hypothesis in hypotheses]
        assert hypotheses[0] == best[0]
        assert len(hypotheses) == (5 if line else 1)
        assert len({hypothesis.text for hypothesis in hypotheses}) == len(hypotheses)
        assert scores == sorted(scores, reverse=True)


def test_a_log_probability_is_that_of_teacher_forcing(translator: Translator):
    src = torch.tensor([[*translator.source.encode("the old dog"), EOS]])
    for candidate in search(translator.model, src, SearchSettings.defaults(n_best=5, max_extra=9)):
        for ids, _, log_prob, _ in candidate:
            features = translator.model(src, torch.tensor([[BOS, *ids]]))
            scores = translator.model.project(features).log_softmax(-1)[0]
            expected = scores.gather(1, torch.tensor([*ids, EOS])[:, None]).sum().item()
            assert log_prob == pytest.approx(expected, abs=1e-3)


def test_a_beam_of_one_is_an_argmax_at_each_step(translator: Translator):
    src = torch.tensor([[*translator.source.encode("we like the dog"), EOS]])
    ids: list[int] = []
    with torch.inference_mode():
        while len(ids) < 13:
            logits = translator.model.project(translator.model(src, torch.tensor([[BOS, *ids]])))[0, -1]
            logits[:EOS] = -torch.inf
            ids.append(int(logits.argmax()))
            if ids[-1] == EOS:
                break
    [[candidate]] = search(translator.model, src, SearchSettings.defaults(beam=1, max_ratio=0, max_extra=13))
    assert candidate.ids == [piece for piece in ids if piece != EOS]


def test_a_beam_wider_than_the_vocabulary_works(bahdanau: Translator):
    [hypotheses] = bahdanau.hypotheses(["a"], SearchSettings.defaults(beam=600, n_best=600, max_ratio=0, max_extra=2))
    assert len(hypotheses) > 128  # fewer than 600: many single bytes spell no text
    assert all(hypothesis.score > float("-inf") for hypothesis in hypotheses)


def test_long_lines_are_split_translated_in_parts_and_joined(bahdanau: Translator):
    settings = SearchSettings.defaults(beam=2, max_ratio=0, max_extra=2)
    sentence = "the old dog sleeps near the house. "
    lines = ["a", sentence * 40, "b" * 20_000, "http://example.org/?q=" + "x%20" * 300, "\U0001f600" * 97]
    best = [hypotheses[0] for hypotheses in bahdanau.hypotheses(lines, settings)]
    assert best[0].source_split == 1
    assert all(hypothesis.source_split > 2 for hypothesis in best[1:])
    assert all(is_one_clean_line(hypothesis.text) for hypothesis in best)
    part = bahdanau.translate([sentence], settings)[0]
    assert part in best[1].text or best[1].source_split < 40


def test_hypotheses_of_a_line_in_parts_are_sorted_by_score(bahdanau: Translator):
    settings = SearchSettings.defaults(beam=4, n_best=4, max_ratio=0, max_extra=5)
    [hypotheses] = bahdanau.hypotheses(["the old dog sleeps near the house. " * 9], settings)
    scores = [hypothesis.score for hypothesis in hypotheses]
    assert len(hypotheses) == 4
    assert scores == sorted(scores, reverse=True)


def test_capped_outputs_are_those_of_the_maximum_length(translator: Translator):
    translator.text = lambda ids: str(len(ids))  # type: ignore[method-assign]
    for hypotheses in translator.hypotheses(
        ["the dog", "a"], SearchSettings.defaults(n_best=5, max_ratio=0, max_extra=17)
    ):
        assert all(hypothesis.capped == (hypothesis.text == "17") for hypothesis in hypotheses)


def test_scores_that_are_not_finite_are_a_clear_error(bahdanau: Translator):
    model = bahdanau.model

    class Broken(torch.nn.Module):
        encode = staticmethod(model.encode)
        start = staticmethod(model.start)

        def step(self, *arguments):
            logits, state = model.step(*arguments)
            return logits * torch.nan, state

    bahdanau.model = Broken()  # type: ignore[assignment]
    with pytest.raises(UserError, match="NaN"):
        bahdanau.translate(["the dog"])


def test_translating_restores_training_mode(bahdanau: Translator):
    bahdanau.model.train()
    bahdanau.translate(["the dog"], SHORT)
    assert bahdanau.model.training
    bahdanau.model.eval()


def test_an_attention_map_has_a_row_for_each_target_piece_and_the_end(translator: Translator):
    attention_map = translator.attention("the old dog", "der Hund")
    if attention_map is None:
        return
    source, target = translator.source.encode("the old dog"), translator.target.encode("der Hund")
    layers, _, rows, columns = attention_map.weights.shape
    assert layers >= 1
    assert (rows, columns) == (len(target) + 1, len(source) + 1)
    assert attention_map.source_pieces == [*translator.source.pieces(source), "</s>"]
    assert attention_map.target_pieces == [*translator.target.pieces(target), "</s>"]
    torch.testing.assert_close(attention_map.weights.sum(-1), torch.ones(attention_map.weights.shape[:-1]))


def test_only_the_system_without_attention_has_no_attention_map(translator: Translator, request):
    has_none = translator.attention("the dog") is None
    assert has_none == ("rnn" in request.node.name)


@pytest.mark.parametrize("text", ["", "\u200b", "the old dog " * 50])
def test_attention_over_nothing_or_too_much_is_refused(bahdanau: Translator, text: str):
    with pytest.raises(UserError, match="source pieces"):
        bahdanau.attention(text)
