"""The Transformer      arXiv:1706.03762."""

from __future__ import annotations

import math
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from nmt.errors import ConfigError
from nmt.models.backends.choice import Way, choose
from nmt.models.backends.layout import Layout, Padded, Places
from nmt.models.backends.sight import Sight
from nmt.models.dropout import dropout
from nmt.models.layers import DecoderLayer, EncoderLayer, Looks, Parts
from nmt.models.multihead import KeysValues, Look
from nmt.models.positions import Positions, make_positions
from nmt.models.precision import product_type
from nmt.models.seq2seq import Carried, Seq2Seq, vocabulary

TransformerState = tuple[KeysValues, ...]  # for each layer the keys and values of the target pieces so far


class TransformerMemory(NamedTuple):
    """The encoded source batch, as the decoder's layers want it."""

    layers: tuple[KeysValues, ...]  # keys and values of each layer's cross attention
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
            raise ConfigError(
                f"model.heads={heads} does not divide model.embedding_size={embedding_size} (an even number): "
                "change one of them"
            )
        self.pad_id = pad_id
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.source, self.target, self.output = vocabulary(
            src_vocab_size, tgt_vocab_size, embedding_size, pad_id, tie_embeddings
        )
        parts = Parts(embedding_size, heads, feed_forward_size, norm, activation, dropout, attention_dropout)
        self.encoder = nn.ModuleList(EncoderLayer(parts) for _ in range(layers))
        self.decoder = nn.ModuleList(DecoderLayer(parts) for _ in range(layers))
        self.encoder_end = parts.residual().end()
        self.decoder_end = parts.residual().end()
        self.source_positions = make_positions(positions, embedding_size, heads, max_positions)
        self.target_positions = make_positions(positions, embedding_size, heads, max_positions)
        head_size = embedding_size // heads
        self.backend = choose(attention_backend, attention_window, head_size, positions, attention_dropout)

    def decoder_layers(self) -> list[DecoderLayer]:
        return cast("list[DecoderLayer]", list(self.decoder))

    def embed(self, table: nn.Embedding, positions: Positions, ids: Tensor, places: Places) -> Tensor:
        """(B, T) ids -> (B, T, D)."""
        x = positions.add(math.sqrt(table.embedding_dim) * table(ids), places)
        return dropout(x, self.dropout, self.training)

    def read(self, source: Layout, way: Way) -> Tensor:
        """The encoder's states (B, S, D)."""
        x = self.embed(self.source, self.source_positions, source.ids, source.places)
        around = Look(way.around, source.around(self.source_positions.bias()))
        turn = self.source_positions.turner(source.places)
        for layer in self.encoder:
            x = layer(x, around, turn)
        return self.encoder_end(x)

    def teach(self, src: Tensor, tgt_in: Tensor, way: Way) -> tuple[Tensor, list[Tensor | None]]:
        """Features (B, T, D) of given targets, and each layer's weights (B, H, T, S) if the way makes any."""
        source, target = way.layout(src, self.pad_id), way.layout(tgt_in, self.pad_id)
        states = self.read(source, way)
        x = self.embed(self.target, self.target_positions, target.ids, target.places)
        so_far = Look(way.around, target.so_far(self.target_positions.bias()))
        looks = Looks(so_far, self.target_positions.turner(target.places), Look(way.back, target.over(source)))
        weights = []
        for layer in self.decoder_layers():
            x, seen = layer(x, layer.cross.keys_values(states), looks)
            weights.append(seen)
        return target.spread(self.decoder_end(x)), weights

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        way = self.backend.teaching(src.device, product_type(self.output.weight))
        return self.teach(src, tgt_in, way)[0]

    def project(self, features: Tensor) -> Tensor:
        return self.output(features)

    def encode(self, src: Tensor) -> TransformerMemory:
        source = Padded(src, self.pad_id)
        states = self.read(source, self.backend.step_by_step)
        return TransformerMemory(tuple(layer.cross.keys_values(states) for layer in self.decoder_layers()), source.mask)

    def start(self, memory: TransformerMemory) -> TransformerState:
        return tuple((keys[:, :, :0], values[:, :, :0]) for keys, values in memory.layers)

    def step(
        self, token: Tensor, state: TransformerState, memory: TransformerMemory
    ) -> tuple[Tensor, TransformerState]:
        past = state[0][0].size(2)
        places = Places.between(past, past + 1, token.device)
        way, bias = self.backend.step_by_step, self.target_positions.bias()
        looks = Looks(
            Look(way.around, Sight(causal=True, bias=bias)),
            self.target_positions.turner(places),
            Look(way.back, Sight(memory.mask)),
        )
        x = self.embed(self.target, self.target_positions, token[:, None], places)
        grown = []
        for layer, held, keys_values in zip(self.decoder_layers(), state, memory.layers, strict=True):
            x, held = layer.step(x, held, keys_values, looks)
            grown.append(held)
        return self.output(self.decoder_end(x)[:, 0]), tuple(grown)

    def weights(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        looks = self.teach(src, tgt_in, self.backend.explicit)[1]
        return torch.stack([weights for weights in looks if weights is not None], dim=1)

    def carried(self) -> Carried:
        return Carried(0, self.source.embedding_dim)

    def attention_on(self, device: torch.device, dtype: torch.dtype) -> str:
        return self.backend.in_words(device, dtype, self.attention_dropout)
