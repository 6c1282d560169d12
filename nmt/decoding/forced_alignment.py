"""Word alignments from attention: a given translation is forced through the model, and each of its words is aligned
to the source word with the highest attention weight (Luong et al., arXiv:1508.04025, section 5.4).

Shift 0 aligns a piece by the attention that predicts it, shift 1 by the attention that has it as input (footnote 14).
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from nmt.data.corpus import Alignment
from nmt.data.text import words
from nmt.data.tokenizer import BOS, EOS, PAD, UNK
from nmt.data.word_alignment import piece_shares, word_weights
from nmt.decoding.translator import Translator, eval_mode
from nmt.progress import progress

SHIFTS = (0, 1)
MAX_WEIGHTS = 1 << 24  # weights in a batch: layers x heads x target pieces x source pieces, 64 MB
MAX_PAIRS = 64  # pairs in a batch


class AttentionShape(NamedTuple):
    """The number of attention maps of a model."""

    layers: int
    heads: int

    @property
    def layer_names(self) -> list[str]:
        """The maps that are scored: each layer with its heads averaged, and the mean over all."""
        heads = "mean of heads" if self.heads > 1 else ""
        if self.layers == 1:
            return [heads]
        each = [f"layer {layer}, {heads}".removesuffix(", ") for layer in range(1, self.layers + 1)]
        return [*each, f"mean of layers{' and heads' if heads else ''}"]

    @property
    def head_names(self) -> list[str]:
        """The single heads, numbered after those maps; none where a layer has one."""
        if self.heads == 1:
            return []
        pairs = product(range(1, self.layers + 1), range(1, self.heads + 1))
        return [f"layer {layer}, head {head}" for layer, head in pairs]


class ForcedAlignments(NamedTuple):
    """For each pair, layer, shift and target word the source word it is aligned to, -1 where to none.

    A pair is None where it could not be aligned: a side has more pieces than the model's bound, or pieces
    that do not spell its words.
    """

    shape: AttentionShape
    best: list[NDArray[np.int64] | None]  # each (layer names + head names, 2, target words)

    def links(self, layer: int, shift: int) -> list[Alignment]:
        """The links (source word, target word) of each pair, counted from 0; none where it is not aligned."""
        return [
            () if best is None else tuple((int(i), j) for j, i in enumerate(best[layer, shift]) if i >= 0)
            for best in self.best
        ]

    @property
    def left_out(self) -> int:
        return sum(best is None for best in self.best)


def attention_shape(translator: Translator) -> AttentionShape | None:
    """None for a model without attention."""
    src, tgt_in = (torch.tensor([ids], device=translator.device) for ids in ([UNK, EOS], [BOS]))
    with torch.inference_mode(), eval_mode(translator.model):
        weights = translator.model.weights(src, tgt_in)
    return None if weights is None else AttentionShape(*weights.shape[1:3])


def force_align(
    translator: Translator, sources: Sequence[str], targets: Sequence[str], show_bar: bool = False
) -> ForcedAlignments | None:
    """Each source with its given translation, in batches by length; None for a model without attention.

    The end of the sentence is excluded, so that a word is aligned to a word even where </s> has the highest weight, and
    to none only where no word has any. Words are `nmt.data.text.words`.
    """
    shape = attention_shape(translator)
    if shape is None:
        return None
    best: list[NDArray[np.int64] | None] = [None] * len(sources)
    pairs: dict[int, Ids] = {}
    encoded = zip(translator.encode(sources), translator.target.encode_batch(targets), strict=True)
    for index, (src, tgt) in enumerate(encoded):
        target_words = words(targets[index])
        if not (src and tgt and words(sources[index]) and target_words):  # nothing to align, and no word left out
            maps = len(shape.layer_names) + len(shape.head_names)
            best[index] = np.full((maps, len(SHIFTS), len(target_words)), -1)
        elif max(len(src), len(tgt)) <= translator.max_src_pieces:
            pairs[index] = Ids(src, tgt)
    with torch.inference_mode(), eval_mode(translator.model), progress("aligning", len(pairs), show_bar) as advance:
        for group in _batches(pairs, shape):
            for index, weights in zip(group, _forced_weights(translator, [pairs[i] for i in group]), strict=True):
                source = piece_shares(translator.source, sources[index], pairs[index].src)
                target = piece_shares(translator.target, targets[index], pairs[index].tgt)
                if source is not None and target is not None:
                    best[index] = _best_source_words(weights, source, target)
            advance(len(group))
    return ForcedAlignments(shape, best)


class Ids(NamedTuple):
    """A pair in pieces, without special ones."""

    src: list[int]
    tgt: list[int]


def _batches(pairs: dict[int, Ids], shape: AttentionShape) -> Iterator[list[int]]:
    """Pairs whose sources have one length, longest first: as in search, no source is padded."""
    order = sorted(pairs, key=lambda index: (len(pairs[index].src), len(pairs[index].tgt)), reverse=True)
    start = 0
    while start < len(order):
        S, T = (len(side) + 1 for side in pairs[order[start]])
        most = min(MAX_PAIRS, max(1, MAX_WEIGHTS // (shape.layers * shape.heads * S * T)))
        group = [index for index in order[start : start + most] if len(pairs[index].src) + 1 == S]
        yield group
        start += len(group)


def _forced_weights(translator: Translator, pairs: Sequence[Ids]) -> NDArray[np.float64]:
    """The weights of pairs (B, L, H, T + 1, S + 1), padded on the target side.

    Row t predicts target piece t, the last row the end; row t + 1 has piece t as its input.
    """
    longest = max(len(pair.tgt) for pair in pairs)
    src = torch.tensor([[*pair.src, EOS] for pair in pairs], device=translator.device)
    tgt_in = [[BOS, *pair.tgt] + [PAD] * (longest - len(pair.tgt)) for pair in pairs]
    weights = translator.model.weights(src, torch.tensor(tgt_in, device=translator.device))
    assert weights is not None
    return weights.cpu().double().numpy()


def _best_source_words(
    weights: NDArray[np.float64], source_shares: NDArray[np.float64], target_shares: NDArray[np.float64]
) -> NDArray[np.int64]:
    """One pair's weights (L, H, T + 1, S + 1) -> (layer and head names, 2, target words) source words, -1 for none."""
    layers = weights.mean(axis=1)
    maps = layers if len(layers) == 1 else np.concatenate([layers, layers.mean(axis=0, keepdims=True)])
    if weights.shape[1] > 1:
        maps = np.concatenate([maps, weights.reshape(-1, *weights.shape[2:])])
    rows = maps[:, :, : len(source_shares)]  # without </s>
    shifted = np.stack([rows[:, shift : shift + len(target_shares)] for shift in SHIFTS], axis=1)
    word_attention = word_weights(shifted, source_shares, target_shares)
    return np.where(word_attention.max(axis=-1) > 0, word_attention.argmax(axis=-1), -1)
