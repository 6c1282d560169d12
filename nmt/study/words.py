"""Pieces to words, and attention over pieces to attention over words."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmt.data.tokenizer import SPACE
from nmt.data.word_pieces import word_weights

BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
END = "</s>"
PIECES_A_WORD = 5.0  # more on average: a script without spaces, where pieces say more than "words"


class WordMap(NamedTuple):
    """Attention with the labels of its axes."""

    source: list[str]
    target: list[str]
    weights: NDArray[np.float64]  # (L, H, T, S)


def merge_pieces(source: Sequence[str], target: Sequence[str], weights: NDArray[np.float64]) -> WordMap:
    """Attention over pieces (L, H, T, S) -> over words, on each side that is written in words.

    The source side is summed (how much of the look falls on the word), the target side averaged (the look
    while the word was written): each row still sums to what it did.
    """
    source_groups, target_groups = word_groups(source), word_groups(target)
    return WordMap(
        [piece_text([source[index] for index in group]) for group in source_groups],
        [piece_text([target[index] for index in group]) for group in target_groups],
        word_weights(weights, _shares(source_groups), _shares(target_groups)),
    )


def _shares(groups: Sequence[Sequence[int]]) -> NDArray[np.float64]:
    """(pieces, words) 1 where a piece is part of a word."""
    return np.repeat(np.eye(len(groups)), [len(group) for group in groups], axis=0)


def word_groups(pieces: Sequence[str]) -> list[list[int]]:
    """Indices of the pieces of each word; each piece alone where the text is not written in words."""
    groups: list[list[int]] = []
    for index, piece in enumerate(pieces):
        if not groups or piece.startswith(SPACE) or piece == END:
            groups.append([index])
        else:
            groups[-1].append(index)
    plain = sum(piece != END for piece in pieces)
    words = sum(pieces[group[0]] != END for group in groups)
    if words and plain / words > PIECES_A_WORD:
        return [[index] for index in range(len(pieces))]
    return groups


def piece_text(pieces: Sequence[str]) -> str:
    """Pieces as readable text: bytes decoded, the space mark gone; what shows nothing is a middle dot."""
    data = b"".join(_bytes(piece) for piece in pieces)
    text = data.decode("utf-8", errors="replace").replace(SPACE, " ").strip()
    return "".join(letter if letter.isprintable() else "�" for letter in text) or "·"


def _bytes(piece: str) -> bytes:
    byte = BYTE.fullmatch(piece)
    return bytes([int(byte[1], 16)]) if byte else piece.encode("utf-8")
