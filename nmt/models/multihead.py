"""Multi-head attention: the projections; the attention itself is computed by one of `backends`."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt.models.backends.masks import Attend, AttentionMask
from nmt.models.positions import Rotate

KeysValues = tuple[Tensor, Tensor]  # each (B, H, S, K)


class AttentionCall(NamedTuple):
    """The kernel and the mask of one attention in one batch."""

    attend: Attend
    mask: AttentionMask


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

    def forward(
        self, x: Tensor, attention: AttentionCall, rotate: Rotate, cache: KeysValues | None = None
    ) -> tuple[Tensor, KeysValues]:
        """(B, T, D) -> (B, T, D), and the keys and values: with a cache, of its positions and the T after them."""
        q, k, v = split_heads(self.qkv(x), 3, self.heads)
        q, k = rotate(q), rotate(k)
        if cache is not None:
            k, v = torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2)
        output, _ = attention.attend(q, k, v, attention.mask, self.dropout if self.training else 0.0)
        return self.out(merge_heads(output)), (k, v)


class CrossAttention(nn.Module):
    """MultiHead(x, memory, memory); keys and values are computed once a sentence, in one product."""

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
        k, v = split_heads(self.kv(states), 2, self.heads)
        return k, v

    def forward(self, x: Tensor, memory: KeysValues, attention: AttentionCall) -> tuple[Tensor, Tensor | None]:
        """(B, T, D) -> (B, T, D) and, where the kernel returns them, weights (B, H, T, S)."""
        (q,) = split_heads(self.q(x), 1, self.heads)
        output, weights = attention.attend(q, *memory, attention.mask, self.dropout if self.training else 0.0)
        return self.out(merge_heads(output)), weights


def split_heads(x: Tensor, parts: int, heads: int) -> tuple[Tensor, ...]:
    """(B, T, parts * D) -> parts of (B, H, T, K)."""
    return x.unflatten(-1, (parts, heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)


def merge_heads(x: Tensor) -> Tensor:
    """(B, H, T, K) -> (B, T, D)."""
    return x.transpose(1, 2).flatten(-2)
