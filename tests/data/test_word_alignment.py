"""Which pieces spell which word, whatever stands between and inside the words."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.data.text import words
from nmt.data.tokenizer import Tokenizer, train_tokenizer
from nmt.data.word_alignment import piece_shares, word_weights
from nmt.training_settings import TokenizerSettings

LINES = ["the old dog sleeps near the house", "a café", "c d"]
# white space of every kind, what cleaning removes or expands, what it composes, what is no character at all
ODD = " \t\x0b\x1c\x85\u00a0\u1680\u2003\u2028\u3000\u2581\x00\u00ad\u200b\u200d\ufeff\ufffd"
ODD += "\u00b4\ufb01½①\u0301\u0344\ufdfa\uac00\u1100\u1161"


@cache
def tokenizer(normalises: bool) -> Tokenizer:
    return train_tokenizer(LINES, TokenizerSettings.defaults(vocab_size=320, model_type="bpe", shrink=True), normalises)


def shares_of(text: str, normalises: bool) -> np.ndarray:
    pieces = tokenizer(normalises)
    shares = piece_shares(pieces, text, pieces.encode(text))
    assert shares is not None
    return shares


@pytest.mark.parametrize("text", ["the old dog", "unbelievableness dog", " the  dog ", "x", "", "dog ☃s ☃"])
def test_a_piece_belongs_to_the_word_it_spells(text: str) -> None:
    """Between ordinary spaces a word is spelled as it is alone; the lone space before a snowman is the snowman's."""
    for normalises in (True, False):
        lengths = [len(tokenizer(normalises).encode(word)) for word in text.split()]
        expected = np.repeat(np.eye(len(lengths)), lengths, axis=0)
        np.testing.assert_array_equal(shares_of(text, normalises), expected)


def test_white_space_that_is_spelled_goes_with_the_word_after_it() -> None:
    assert tokenizer(False).pieces(tokenizer(False).encode("c\td\t")) == ["▁c", "<0x09>", "d", "<0x09>"]
    assert shares_of("c\td\t", normalises=False).tolist() == [[1, 0], [0, 1], [0, 1], [0, 0]]


def test_a_piece_that_spans_words_is_shared_between_them(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = Tokenizer(tokenizer(False).model, normalises=False)
    monkeypatch.setattr(pieces, "spelled", lambda ids: [b"c", "a\u00a0bcd".encode()])
    assert piece_shares(pieces, "c a\u00a0bcd", [7, 8]).tolist() == [[1, 0, 0], [0, 0.25, 0.75]]  # type: ignore[union-attr]


def test_a_word_is_one_word_whatever_cleaning_makes_of_it() -> None:
    """A word that becomes two, one that becomes nothing, one that expands, one that is composed."""
    assert shares_of("a\x00b c", normalises=True).shape[1] == 2
    assert shares_of("a \u200b b", normalises=True).any(axis=0).tolist() == [True, False, True]
    for text in ("½ c", "\u00b4a c", "cafe\u0301 c", "do\u00adg c"):
        shares = shares_of(text, normalises=True)
        assert shares[:-1].sum(axis=0)[1] == 0
        assert shares[-1].tolist() == [0, 1]


@given(st.text(st.sampled_from(ODD + "abc dog.") | st.characters(exclude_categories=["Cs"]), max_size=30))
@settings(max_examples=60, deadline=None)
def test_every_text_is_mapped_and_no_share_is_lost(text: str) -> None:
    for normalises in (True, False):
        shares = shares_of(text, normalises)
        assert shares.shape == (len(tokenizer(normalises).encode(text)), len(words(text)))
        totals = shares.sum(axis=1)
        last = max(np.flatnonzero(totals), default=-1) + 1  # after it nothing but white space
        np.testing.assert_allclose(totals[:last], 1.0)


def test_pieces_of_another_text_are_not_mapped() -> None:
    pieces = tokenizer(True)
    assert piece_shares(pieces, "the dog", pieces.encode("the cat")) is None
    assert piece_shares(pieces, "the dog", pieces.encode("the")) is None


def test_a_source_word_gets_the_sum_and_a_target_word_the_mean_of_its_pieces() -> None:
    weights = np.array([[0.5, 0.1, 0.4], [0.1, 0.3, 0.6]])
    merged = word_weights(weights, np.array([[1, 0], [1, 0], [0, 1]]), np.array([[1.0, 0], [1, 0]]))
    np.testing.assert_allclose(merged, [[0.5, 0.5], [0, 0]])
