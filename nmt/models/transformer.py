"""The Transformer      arXiv:1706.03762. Shapes: see `seq2seq.py`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nmt.errors import ModelError
from nmt.models.backends import Kernels, choose_backend
from nmt.models.backends.masks import AttentionMask
from nmt.models.backends.packing import PaddedBatch, PositionIds, TokenBatch
from nmt.models.multihead import AttentionCall, CrossAttention, KeysValues, SelfAttention
from nmt.models.ops import autocast_dtype, dropout
from nmt.models.positions import Positions, Rotate, make_positions
from nmt.models.seq2seq import BottleneckSize, Seq2Seq, embedding_tables


class LayerSettings(NamedTuple):
    """The settings of every layer."""

    size: int
    heads: int
    feed_forward_size: int
    norm: str
    activation: str
    dropout: float
    attention_dropout: float


class Residual(nn.Module):
    """The residual connection around a sublayer f, with its layer normalisation.

    norm=pre: x + f(norm(x)), and one more norm after the last layer, arXiv:2002.04745; norm=post: norm(x + f(x)),
    arXiv:1706.03762, 3.1.
    """

    def __init__(self, settings: LayerSettings) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(settings.size)
        self.is_pre_norm = settings.norm == "pre"
        self.dropout = settings.dropout

    def pre_norm(self, x: Tensor) -> Tensor:
        """The input of f."""
        return self.norm(x) if self.is_pre_norm else x

    def add_and_norm(self, x: Tensor, f_x: Tensor) -> Tensor:
        """x, and the output of f."""
        total = x + dropout(f_x, self.dropout, self.training)
        return total if self.is_pre_norm else self.norm(total)


class FeedForward(nn.Module):
    """W_2 act(W_1 x + b_1) + b_2      arXiv:1706.03762, 3.3."""

    def __init__(self, settings: LayerSettings) -> None:
        super().__init__()
        activations: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu}
        self.act = activations[settings.activation]
        self.dropout = settings.dropout
        self.W_1 = nn.Linear(settings.size, settings.feed_forward_size)
        self.W_2 = nn.Linear(settings.feed_forward_size, settings.size)
        for linear in (self.W_1, self.W_2):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.W_2(dropout(self.act(self.W_1(x)), self.dropout, self.training))


class EncoderLayer(nn.Module):
    """Self-attention over the whole source, then feed-forward."""

    def __init__(self, settings: LayerSettings) -> None:
        super().__init__()
        self.self_attention = SelfAttention(settings.size, settings.heads, settings.attention_dropout)
        self.self_attention_residual = Residual(settings)
        self.feed_forward = FeedForward(settings)
        self.feed_forward_residual = Residual(settings)

    def forward(self, x: Tensor, attention: AttentionCall, rotate: Rotate) -> Tensor:
        """(B, S, D) -> (B, S, D)."""
        y, _ = self.self_attention(self.self_attention_residual.pre_norm(x), attention, rotate)
        x = self.self_attention_residual.add_and_norm(x, y)
        y = self.feed_forward(self.feed_forward_residual.pre_norm(x))
        return self.feed_forward_residual.add_and_norm(x, y)


class DecoderMasks(NamedTuple):
    """The masks, kernels and rotation of a decoder layer."""

    self_attention: AttentionCall
    rotate: Rotate
    cross_attention: AttentionCall


class DecoderLayer(nn.Module):
    """Self-attention over earlier target pieces, attention over the source, feed-forward."""

    def __init__(self, settings: LayerSettings) -> None:
        super().__init__()
        self.self_attention = SelfAttention(settings.size, settings.heads, settings.attention_dropout)
        self.self_attention_residual = Residual(settings)
        self.cross_attention = CrossAttention(settings.size, settings.heads, settings.attention_dropout)
        self.cross_attention_residual = Residual(settings)
        self.feed_forward = FeedForward(settings)
        self.feed_forward_residual = Residual(settings)

    def forward(
        self, x: Tensor, memory: KeysValues, masks: DecoderMasks, cache: KeysValues | None = None
    ) -> tuple[Tensor, KeysValues, Tensor | None]:
        """(B, T, D) -> (B, T, D), keys and values, and cross-attention weights (B, H, T, S) if computed.

        The T positions are all, or those after the positions of `cache`, which comes back with them.
        """
        y, cache = self.self_attention(
            self.self_attention_residual.pre_norm(x), masks.self_attention, masks.rotate, cache
        )
        x = self.self_attention_residual.add_and_norm(x, y)
        y, weights = self.cross_attention(self.cross_attention_residual.pre_norm(x), memory, masks.cross_attention)
        x = self.cross_attention_residual.add_and_norm(x, y)
        y = self.feed_forward(self.feed_forward_residual.pre_norm(x))
        return self.feed_forward_residual.add_and_norm(x, y), cache, weights


TransformerState = tuple[KeysValues, ...]  # for each layer the keys and values of the target pieces so far


class TransformerMemory(NamedTuple):
    """The encoded source batch, projected for each decoder layer."""

    layers: tuple[KeysValues, ...]  # keys and values of each layer's cross-attention
    mask: Tensor  # (B, S) True where a piece is real


class Transformer(Seq2Seq):
    """x_0 = sqrt(D) embedding + position; then layers of attention and feed-forward, D the embedding size."""

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
        attention_backend: str,
        attention_window: int,
        positions: str,
        max_positions: int,
    ) -> None:
        super().__init__()
        if embedding_size % heads or embedding_size % 2:
            raise ModelError(
                f"heads={heads} does not divide embedding_size={embedding_size} (an even number): change one of them"
            )
        self.pad_id = pad_id
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.source_embedding, self.target_embedding, self.output_layer = embedding_tables(
            src_vocab_size, tgt_vocab_size, embedding_size, pad_id, tie_embeddings
        )
        settings = LayerSettings(embedding_size, heads, feed_forward_size, norm, activation, dropout, attention_dropout)
        self.encoder_layers = nn.ModuleList(EncoderLayer(settings) for _ in range(layers))
        decoder_layers = nn.ModuleList(DecoderLayer(settings) for _ in range(layers))
        self.decoder_layers = cast("Sequence[DecoderLayer]", decoder_layers)
        self.encoder_norm = nn.LayerNorm(embedding_size) if norm == "pre" else nn.Identity()
        self.decoder_norm = nn.LayerNorm(embedding_size) if norm == "pre" else nn.Identity()
        self.source_positions = make_positions(positions, embedding_size, heads, max_positions)
        self.target_positions = make_positions(positions, embedding_size, heads, max_positions)
        head_size = embedding_size // heads
        self.backend = choose_backend(attention_backend, attention_window, head_size, positions, attention_dropout)

    def embed(self, table: nn.Embedding, positions: Positions, ids: Tensor, position_ids: PositionIds) -> Tensor:
        """(B, T) ids -> (B, T, D)."""
        x = positions.add(math.sqrt(table.embedding_dim) * table(ids), position_ids)
        return dropout(x, self.dropout, self.training)

    def encode_states(self, source: TokenBatch, kernels: Kernels) -> Tensor:
        """The encoder states (B, S, D)."""
        x = self.embed(self.source_embedding, self.source_positions, source.ids, source.position_ids)
        attention = AttentionCall(
            kernels.self_attention, source.attention_mask(source, bias=self.source_positions.bias())
        )
        rotate = self.source_positions.rotary(source.position_ids)
        for layer in self.encoder_layers:
            x = layer(x, attention, rotate)
        return self.encoder_norm(x)

    def teacher_force(self, src: Tensor, tgt_in: Tensor, kernels: Kernels) -> tuple[Tensor, list[Tensor | None]]:
        """Features (B, T, D) of given targets, and each layer's weights (B, H, T, S) if the kernel returns any."""
        source, target = kernels.make_batch(src, self.pad_id), kernels.make_batch(tgt_in, self.pad_id)
        states = self.encode_states(source, kernels)
        x = self.embed(self.target_embedding, self.target_positions, target.ids, target.position_ids)
        causal_mask = target.attention_mask(target, causal=True, bias=self.target_positions.bias())
        masks = DecoderMasks(
            AttentionCall(kernels.self_attention, causal_mask),
            self.target_positions.rotary(target.position_ids),
            AttentionCall(kernels.cross_attention, target.attention_mask(source)),
        )
        all_weights = []
        for layer in self.decoder_layers:
            x, _, weights = layer(x, layer.cross_attention.keys_values(states), masks)
            all_weights.append(weights)
        return target.unpack(self.decoder_norm(x)), all_weights

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        kernels = self.backend.for_training(src.device, autocast_dtype(self.output_layer.weight))
        return self.teacher_force(src, tgt_in, kernels)[0]

    def project(self, features: Tensor) -> Tensor:
        return self.output_layer(features)

    def encode(self, src: Tensor) -> TransformerMemory:
        source = PaddedBatch(src, self.pad_id)
        states = self.encode_states(source, self.backend.for_search)
        return TransformerMemory(
            tuple(layer.cross_attention.keys_values(states) for layer in self.decoder_layers), source.mask
        )

    def start(self, memory: TransformerMemory) -> TransformerState:
        return tuple((keys[:, :, :0], values[:, :, :0]) for keys, values in memory.layers)

    def step(
        self, token: Tensor, state: TransformerState, memory: TransformerMemory
    ) -> tuple[Tensor, TransformerState]:
        position = state[0][0].size(2)
        position_ids = PositionIds.range(position, position + 1, token.device)
        kernels, bias = self.backend.for_search, self.target_positions.bias()
        masks = DecoderMasks(
            AttentionCall(kernels.self_attention, AttentionMask(causal=True, bias=bias)),
            self.target_positions.rotary(position_ids),
            AttentionCall(kernels.cross_attention, AttentionMask(memory.mask)),
        )
        x = self.embed(self.target_embedding, self.target_positions, token[:, None], position_ids)
        caches = []
        for layer, cache, keys_values in zip(self.decoder_layers, state, memory.layers, strict=True):
            x, cache, _ = layer(x, keys_values, masks, cache)
            caches.append(cache)
        return self.output_layer(self.decoder_norm(x)[:, 0]), tuple(caches)

    def weights(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        all_weights = self.teacher_force(src, tgt_in, self.backend.explicit)[1]
        return torch.stack([weights for weights in all_weights if weights is not None], dim=1)

    def bottleneck_size(self) -> BottleneckSize:
        return BottleneckSize(0, self.source_embedding.embedding_dim)

    def describe_attention(self, device: torch.device, dtype: torch.dtype) -> str:
        return self.backend.describe(device, dtype, self.attention_dropout)
