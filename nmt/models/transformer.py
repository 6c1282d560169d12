"""The Transformer      arXiv:1706.03762."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nmt.errors import ConfigError
from nmt.models.dropout import dropout
from nmt.models.multihead import Attend, CrossAttention, KeysValues, SelfAttention, attend, attend_explicit
from nmt.models.seq2seq import Seq2Seq, vocabulary

TransformerState = tuple[KeysValues, ...]  # for each layer the keys and values of the target pieces so far


class TransformerMemory(NamedTuple):
    """The encoded source batch, as the decoder's layers want it."""

    layers: tuple[KeysValues, ...]  # keys and values of each layer's cross attention
    mask: Tensor  # (B, S) True where a piece is real


class Transformer(Seq2Seq):
    """x_0 = sqrt(D) embedding + position; then layers of attention and feed-forward, D the embedding size.

    Target pieces are padded on the right, so causality alone keeps padding out of the decoder's self-attention:
    it needs no mask, and stays on the fastest kernel everywhere.
    """

    def __init__(
        self,
        src_vocab_size: int,
        tgt_vocab_size: int,
        pad_id: int,
        *,
        embedding_size: int,
        heads: int,
        feed_forward_size: int,
        layers: int,
        norm: str,
        activation: str,
        dropout: float,
        attention_dropout: float,
        tie_embeddings: str,
    ) -> None:
        super().__init__()
        if embedding_size % heads or embedding_size % 2:
            raise ConfigError(
                f"model.heads={heads} does not divide model.embedding_size={embedding_size} (an even number): "
                "change one of them"
            )
        self.pad_id = pad_id
        self.dropout = dropout
        self.source, self.target, self.output = vocabulary(
            src_vocab_size, tgt_vocab_size, embedding_size, pad_id, tie_embeddings
        )
        parts = Parts(embedding_size, heads, feed_forward_size, norm, activation, dropout, attention_dropout)
        self.encoder = nn.ModuleList(EncoderLayer(parts) for _ in range(layers))
        self.decoder = nn.ModuleList(DecoderLayer(parts) for _ in range(layers))
        self.encoder_end = parts.residual().end()
        self.decoder_end = parts.residual().end()

    def decoder_layers(self) -> list[DecoderLayer]:
        return cast("list[DecoderLayer]", list(self.decoder))

    def embed(self, table: nn.Embedding, ids: Tensor, first: int = 0) -> Tensor:
        """(B, T) ids at positions first, first + 1, ... -> (B, T, D)."""
        x = math.sqrt(table.embedding_dim) * table(ids)
        return dropout(x + sinusoids(first, x), self.dropout, self.training)

    def encode(self, src: Tensor) -> TransformerMemory:
        return self.read(src, attend)

    def read(self, src: Tensor, attend: Attend) -> TransformerMemory:
        """`encode` by a given path."""
        mask = src != self.pad_id
        x = self.embed(self.source, src)
        for layer in self.encoder:
            x = layer(x, mask, attend)
        x = self.encoder_end(x)
        return TransformerMemory(tuple(layer.cross.keys_values(x) for layer in self.decoder_layers()), mask)

    def teach(self, src: Tensor, tgt_in: Tensor, attend: Attend) -> tuple[Tensor, list[Tensor | None]]:
        """Features (B, T, D) of given targets, and each layer's weights (B, H, T, S) if `attend` makes any."""
        memory = self.read(src, attend)
        x = self.embed(self.target, tgt_in)
        looks = []
        for layer, keys_values in zip(self.decoder_layers(), memory.layers, strict=True):
            x, weights = layer(x, keys_values, memory.mask, attend)
            looks.append(weights)
        return self.decoder_end(x), looks

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        return self.teach(src, tgt_in, attend)[0]

    def project(self, features: Tensor) -> Tensor:
        return self.output(features)

    def start(self, memory: TransformerMemory) -> TransformerState:
        return tuple((keys[:, :, :0], values[:, :, :0]) for keys, values in memory.layers)

    def step(
        self, token: Tensor, state: TransformerState, memory: TransformerMemory
    ) -> tuple[Tensor, TransformerState]:
        position = state[0][0].size(2)
        x = self.embed(self.target, token[:, None], position)
        grown = []
        for layer, past, keys_values in zip(self.decoder_layers(), state, memory.layers, strict=True):
            x, past = layer.step(x, past, keys_values, memory.mask)
            grown.append(past)
        return self.output(self.decoder_end(x)[:, 0]), tuple(grown)

    def weights(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        looks = self.teach(src, tgt_in, attend_explicit)[1]
        return torch.stack([weights for weights in looks if weights is not None], dim=1)


class Parts(NamedTuple):
    """The settings of a layer, and the parts made from them."""

    size: int
    heads: int
    feed_forward_size: int
    norm: str
    activation: str
    dropout: float
    attention_dropout: float

    def residual(self) -> PreNorm | PostNorm:
        kinds: dict[str, type[PreNorm] | type[PostNorm]] = {"pre": PreNorm, "post": PostNorm}
        if self.norm not in kinds:
            raise ConfigError(f"model.norm={self.norm} is unknown: use pre or post")
        return kinds[self.norm](self.size, self.dropout)

    def around(self) -> SelfAttention:
        return SelfAttention(self.size, self.heads, self.attention_dropout)

    def back(self) -> CrossAttention:
        return CrossAttention(self.size, self.heads, self.attention_dropout)

    def feed_forward(self) -> FeedForward:
        return FeedForward(self.size, self.feed_forward_size, self.activation, self.dropout)


class PreNorm(nn.Module):
    """x + sublayer(norm(x)), and one more norm after the last layer      arXiv:2002.04745."""

    def __init__(self, size: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.dropout = dropout

    def enter(self, x: Tensor) -> Tensor:
        """What the sublayer reads."""
        return self.norm(x)

    def leave(self, x: Tensor, update: Tensor) -> Tensor:
        """x and what the sublayer found, put together."""
        return x + dropout(update, self.dropout, self.training)

    def end(self) -> nn.Module:
        return self.norm


class PostNorm(nn.Module):
    """norm(x + sublayer(x))      arXiv:1706.03762, 3.1."""

    def __init__(self, size: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.dropout = dropout

    def enter(self, x: Tensor) -> Tensor:
        """What the sublayer reads."""
        return x

    def leave(self, x: Tensor, update: Tensor) -> Tensor:
        """x and what the sublayer found, put together."""
        return self.norm(x + dropout(update, self.dropout, self.training))

    def end(self) -> nn.Module:
        return nn.Identity()


class FeedForward(nn.Module):
    """W_2 act(W_1 x + b_1) + b_2      arXiv:1706.03762, 3.3."""

    def __init__(self, size: int, inner_size: int, activation: str, dropout: float) -> None:
        super().__init__()
        kinds: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu}
        if activation not in kinds:
            raise ConfigError(f"model.activation={activation} is unknown: use one of {', '.join(kinds)}")
        self.act = kinds[activation]
        self.dropout = dropout
        self.W_1 = nn.Linear(size, inner_size)
        self.W_2 = nn.Linear(inner_size, size)
        for linear in (self.W_1, self.W_2):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.W_2(dropout(self.act(self.W_1(x)), self.dropout, self.training))


class EncoderLayer(nn.Module):
    """Self-attention over the whole source, then feed-forward."""

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        self.around, self.around_residual = parts.around(), parts.residual()
        self.feed_forward, self.feed_forward_residual = parts.feed_forward(), parts.residual()

    def forward(self, x: Tensor, mask: Tensor, attend: Attend) -> Tensor:
        """(B, S, D) -> (B, S, D)."""
        x = self.around_residual.leave(x, self.around(self.around_residual.enter(x), mask, False, attend))
        return self.feed_forward_residual.leave(x, self.feed_forward(self.feed_forward_residual.enter(x)))


class DecoderLayer(nn.Module):
    """Self-attention over earlier target pieces, attention over the source, feed-forward."""

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        self.around, self.around_residual = parts.around(), parts.residual()
        self.cross, self.cross_residual = parts.back(), parts.residual()
        self.feed_forward, self.feed_forward_residual = parts.feed_forward(), parts.residual()

    def forward(self, x: Tensor, memory: KeysValues, mask: Tensor, attend: Attend) -> tuple[Tensor, Tensor | None]:
        """All target positions at once: (B, T, D) -> (B, T, D), and weights (B, H, T, S) if `attend` makes any."""
        found = self.around(self.around_residual.enter(x), None, True, attend)
        return self.rest(self.around_residual.leave(x, found), memory, mask, attend)

    def step(self, x: Tensor, past: KeysValues, memory: KeysValues, mask: Tensor) -> tuple[Tensor, KeysValues]:
        """One position (B, 1, D) after `past` -> (B, 1, D), and `past` longer by it."""
        found, past = self.around.step(self.around_residual.enter(x), past)
        return self.rest(self.around_residual.leave(x, found), memory, mask, attend)[0], past

    def rest(self, x: Tensor, memory: KeysValues, mask: Tensor, attend: Attend) -> tuple[Tensor, Tensor | None]:
        """What follows self-attention."""
        found, weights = self.cross(self.cross_residual.enter(x), memory, mask, attend)
        x = self.cross_residual.leave(x, found)
        return self.feed_forward_residual.leave(x, self.feed_forward(self.feed_forward_residual.enter(x))), weights


def sinusoids(first: int, like: Tensor) -> Tensor:
    """sin and cos of position / 10000^(2i/D)      arXiv:1706.03762, 3.5; (T, D) for `like` (B, T, D).

    All sines come before all cosines: a fixed permutation of the paper's numbers, which the weights absorb.
    """
    T, D = like.shape[1:]
    positions = torch.arange(first, first + T, device=like.device, dtype=torch.float32)
    rates = torch.exp(torch.arange(D // 2, device=like.device) * (-2 * math.log(10_000) / D))
    angles = positions[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], dim=-1).to(like.dtype)
