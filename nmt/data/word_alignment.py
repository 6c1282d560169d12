"""Which pieces spell which whitespace word of a line as it stands, whatever cleaning made of it before encoding.

And attention over pieces as attention over words.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nmt.data.text import words
from nmt.data.tokenizer import SPACE, Tokenizer


def piece_shares(tokenizer: Tokenizer, text: str, ids: Sequence[int]) -> NDArray[np.float64] | None:
    """(pieces, words) how much of each piece belongs to each of `words(text)`; `ids` are the tokenizer's for it.

    A piece belongs to the word whose letters it spells; in equal parts by bytes where it spans several (a
    no-break space may stand inside a piece); to the next word where it spells none, as a lone space does. A word
    of which cleaning leaves nothing has no pieces. None where the pieces do not spell the text.
    """
    text_bytes, owners = _letters(tokenizer, text)
    spelled = tokenizer.spelled(ids)
    if b"".join(spelled) != text_bytes:
        return None
    shares = np.zeros((len(ids), len(words(text))))
    position = 0
    for index, piece in enumerate(spelled):
        inside = [owner for owner in owners[position : position + len(piece)] if owner is not None]
        position += len(piece)
        for owner in inside:
            shares[index, owner] += 1 / len(inside)
    for index in reversed(range(len(ids) - 1)):
        if not shares[index].any():
            shares[index] = shares[index + 1]
    return shares


def word_weights(
    weights: NDArray[np.float64], source_shares: NDArray[np.float64], target_shares: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Weights over pieces (..., T, S) -> over words (..., target words, source words).

    Shares are (pieces, words). The source side is summed (how much of the attention falls on the word), the target
    side averaged (the attention while the word was written): each row still sums to what it did. A target word
    without pieces has a row of zeros.
    """
    means = target_shares / np.maximum(target_shares.sum(axis=0), 1e-12)
    return means.T @ (weights @ source_shares)


def _letters(tokenizer: Tokenizer, text: str) -> tuple[bytes, list[int | None]]:
    """The cleaned text in bytes without its spaces, and of each byte the word it comes from; None between words.

    Cleaning a line is cleaning its words and what stands between them: no character composes with white space.
    """
    segments: list[str] = []
    numbers: list[int | None] = []
    end = 0
    for number, word in enumerate(words(text)):
        start = text.index(word, end)
        segments += [text[end:start], word]
        numbers += [None, number]
        end = start + len(word)
    cleaned = tokenizer.cleaned([*segments, text[end:]])
    spelled = [part.replace(" ", "").replace(SPACE, "").encode("utf-8") for part in cleaned]
    owners = [number for number, part in zip([*numbers, None], spelled, strict=True) for _ in part]
    return b"".join(spelled), owners
