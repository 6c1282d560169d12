"""Any text goes in, one clean line comes out, and the target is kept as it was written."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.data.tokenizer import BOS, EOS, PAD, UNK, Tokenizer, train_tokenizer
from nmt.errors import ConfigError, UserError
from nmt.training_settings import TokenizerSettings

LINES = [f"the man number {i} sees the dog {i % 17} near the house" for i in range(400)]
THREE = ["the dog sleeps", "a cat runs", "we eat"]
ODD = ["x…", "½ tasse", "10\u00a0000 euros", "می\u200cخواهم", "m²", "Ａ１", "👩\u200d🔬", "C™"]
INVISIBLE = [" ", "\t", "\u00a0", "\u3000", "\u200b", "\ufeff", "\u200e", "\u2581", ""]


def train(lines: list[str], normalises: bool = False, **changes: object) -> Tokenizer:
    return train_tokenizer(lines, TokenizerSettings.defaults(**{"vocab_size": 310, **changes}), normalises)  # type: ignore[arg-type]


SOURCE, TARGET = train(LINES, normalises=True), train(LINES + ODD, shrink=True, vocab_size=8000)


@pytest.mark.parametrize("text", [*ODD, "quyé", "日本", "\U0001f600"])
def test_the_target_survives_encoding_and_decoding(text: str) -> None:
    assert TARGET.decode(TARGET.encode(text)) == text


@pytest.mark.parametrize("text", [*ODD, "quyé", "日本", "a\x00b"])
def test_no_input_is_unknown(text: str) -> None:
    ids = SOURCE.encode(text)
    assert not {PAD, UNK, BOS, EOS} & set(ids)


@pytest.mark.parametrize("text", INVISIBLE)
def test_what_a_reader_cannot_see_has_no_pieces(text: str) -> None:
    assert SOURCE.encode(text) == []


def test_six_spellings_of_a_sentence_are_one_source() -> None:
    spellings = [
        "the old dog sleeps at the cafe\u0301",
        "the old dog sleeps at the café",
        "the\u00a0old dog sleeps at the café",
        "the\u3000old dog sleeps at the café",
        "the old dog sle\u00adeps at the café",
        "\ufeffthe old dog sleeps at the café\r",
    ]
    assert len({tuple(SOURCE.encode(text)) for text in spellings}) == 1


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, TARGET.vocab_size - 1), max_size=17))
def test_whatever_pieces_come_out_make_one_clean_line(ids: list[int]) -> None:
    text = TARGET.decode(ids)
    assert not set(text) & {"\n", "\r", "\u2581", "\ufffd", "\x85", "\u2028", "\u2029", "\x0b", "\x0c", "\t"}


@pytest.mark.parametrize(
    ("lines", "size", "model_type"),
    [
        (LINES, 200, "unigram"),
        (LINES, 9000, "unigram"),
        (LINES, 9000, "bpe"),
        (THREE, 8000, "unigram"),
        (THREE[:1], 200, "bpe"),
    ],
)
def test_a_size_that_does_not_fit_is_refused_with_one_that_does(lines: list[str], size: int, model_type: str) -> None:
    with pytest.raises(ConfigError, match=r"(smallest|largest) that works is \d+") as caught:
        train(lines, vocab_size=size, model_type=model_type)
    works = int(str(caught.value).split("that works is ")[1].split()[0])
    assert train(lines, vocab_size=works, model_type=model_type).vocab_size == works
    too_far = works + (1 if size > works else -1)
    with pytest.raises(ConfigError):
        train(lines, vocab_size=too_far, model_type=model_type)


def test_shrink_takes_what_the_corpus_supports() -> None:
    assert train(THREE, vocab_size=8000, shrink=True).vocab_size < 400


def test_a_corpus_without_words_is_refused() -> None:
    with pytest.raises(UserError, match="no text to learn pieces from"):
        train(["", " ", "\u200b"], normalises=True)


def test_lines_beyond_the_libraries_own_limit_are_learned_from() -> None:
    long = [" ".join(f"word{i}" for i in range(n, n + 900)) for n in range(0, 30)]
    assert train(long, vocab_size=300).vocab_size == 300


def test_the_same_text_gives_the_same_pieces() -> None:
    assert train(LINES).model == train(LINES).model


def test_duplicates_change_nothing() -> None:
    assert train(LINES * 12).model == train(LINES).model
