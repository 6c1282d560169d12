"""Attention with several heads: the products around it. How it is computed itself, `backends` know."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt.models.backends.sight import Attend, Sight
from nmt.models.positions import Turn

KeysValues = tuple[Tensor, Tensor]  # each (B, H, S, K)


class Look(NamedTuple):
    """One attention in one batch: computed by `attend`, at what is in `sight`."""

    attend: Attend
    sight: Sight


class SelfAttention(nn.Module):
    """MultiHead(x, x, x), with one product for Q, K and V      arXiv:1706.03762, 3.2.2."""

    def __init__(self, size: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        self.qkv = nn.Linear(size, 3 * size)
        self.out = nn.Linear(size, size)
        for block in self.qkv.weight.chunk(3):
            nn.init.xavier_uniform_(block)
        nn.init.xavier_uniform_(self.out.weight)
        nn.init.zeros_(self.qkv.bias)
        nn.init.zeros_(self.out.bias)

    def forward(self, x: Tensor, look: Look, turn: Turn) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        q, k, v = split(self.qkv(x), 3, self.heads)
        found, _ = look.attend(turn(q), turn(k), v, look.sight, self.dropout if self.training else 0.0)
        return self.out(merge(found))

    def step(self, x: Tensor, past: KeysValues, look: Look, turn: Turn) -> tuple[Tensor, KeysValues]:
        """More positions (B, T, D), usually one, after `past`, which grows by them."""
        q, k, v = split(self.qkv(x), 3, self.heads)
        k, v = torch.cat([past[0], turn(k)], dim=2), torch.cat([past[1], v], dim=2)
        return self.out(merge(look.attend(turn(q), k, v, look.sight, 0.0)[0])), (k, v)


class CrossAttention(nn.Module):
    """MultiHead(x, memory, memory); keys and values are made once a sentence, in one product."""

    def __init__(self, size: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        self.q = nn.Linear(size, size)
        self.kv = nn.Linear(size, 2 * size)
        self.out = nn.Linear(size, size)
        for block in (self.q.weight, *self.kv.weight.chunk(2), self.out.weight):
            nn.init.xavier_uniform_(block)
        for bias in (self.q.bias, self.kv.bias, self.out.bias):
            nn.init.zeros_(bias)

    def keys_values(self, states: Tensor) -> KeysValues:
        """Encoder states (B, S, D) -> keys and values."""
        k, v = split(self.kv(states), 2, self.heads)
        return k, v

    def forward(self, x: Tensor, memory: KeysValues, look: Look) -> tuple[Tensor, Tensor | None]:
        """(B, T, D) -> (B, T, D) and, where `attend` makes them, weights (B, H, T, S)."""
        (q,) = split(self.q(x), 1, self.heads)
        found, weights = look.attend(q, *memory, look.sight, self.dropout if self.training else 0.0)
        return self.out(merge(found)), weights


def split(x: Tensor, parts: int, heads: int) -> tuple[Tensor, ...]:
    """(B, T, parts * D) -> parts of (B, H, T, K)."""
    return x.unflatten(-1, (parts, heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)


def merge(x: Tensor) -> Tensor:
    """(B, H, T, K) -> (B, T, D)."""
    return x.transpose(1, 2).flatten(-2)
