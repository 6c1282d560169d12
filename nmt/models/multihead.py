"""Attention with several heads. `attend` is the fast path, `attend_explicit` the same written out."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nmt.models.precision import wide

# (q, k, v, mask, causal, dropout) -> (heads' outputs (B, H, T, K), weights (B, H, T, S) if the path makes any)
Attend = Callable[[Tensor, Tensor, Tensor, Tensor | None, bool, float], tuple[Tensor, Tensor | None]]
KeysValues = tuple[Tensor, Tensor]  # each (B, H, S, K)


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, dropout: float) -> tuple[Tensor, None]:
    """Fused softmax(q k' / sqrt(K)) v      arXiv:1706.03762, 3.2.1.

    q is (B, H, T, K), k and v are (B, H, S, K); mask (B, S) is True where a key is real. causal needs T = S.
    A mask rules CUDA's flash kernel out (another fused one runs); dropout on weights rules the CPU's fused one out.
    The CPU's kernel goes backward in bfloat16 at a third of its float32 speed (33 keys), so there it gets float32.
    """
    on_cpu = q.device.type == "cpu"
    if on_cpu:
        q, k, v = wide(q), wide(k), wide(v)
    allowed = None if mask is None else mask[:, None, None, :]
    with torch.autocast("cpu", enabled=False) if on_cpu else nullcontext():
        return F.scaled_dot_product_attention(q, k, v, attn_mask=allowed, dropout_p=dropout, is_causal=causal), None


def attend_explicit(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, dropout: float
) -> tuple[Tensor, Tensor]:
    """The same written out, with the weights (B, H, T, S); a row with no key to look at gives zeros."""
    T, S = q.size(2), k.size(2)
    allowed = torch.ones(1, 1, T, S, dtype=torch.bool, device=q.device)
    if causal:
        allowed = allowed.tril()
    if mask is not None:
        allowed = allowed & mask[:, None, None, :]
    scores = wide((q * q.size(-1) ** -0.5) @ k.mT)
    scores = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)
    weights = scores.softmax(dim=-1).masked_fill(~allowed, 0.0)
    return F.dropout(weights, dropout).to(v.dtype) @ v, weights


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

    def forward(self, x: Tensor, mask: Tensor | None, causal: bool, attend: Attend) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        q, k, v = split(self.qkv(x), 3, self.heads)
        return self.out(merge(attend(q, k, v, mask, causal, self.dropout if self.training else 0.0)[0]))

    def step(self, x: Tensor, past: KeysValues) -> tuple[Tensor, KeysValues]:
        """One more position (B, 1, D) after `past`, which grows by it."""
        q, k, v = split(self.qkv(x), 3, self.heads)
        k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        return self.out(merge(attend(q, k, v, None, False, 0.0)[0])), (k, v)


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

    def forward(self, x: Tensor, memory: KeysValues, mask: Tensor, attend: Attend) -> tuple[Tensor, Tensor | None]:
        """(B, T, D) -> (B, T, D) and, where `attend` makes them, weights (B, H, T, S)."""
        (q,) = split(self.q(x), 1, self.heads)
        found, weights = attend(q, *memory, mask, False, self.dropout if self.training else 0.0)
        return self.out(merge(found)), weights


def split(x: Tensor, parts: int, heads: int) -> tuple[Tensor, ...]:
    """(B, T, parts * D) -> parts of (B, H, T, K)."""
    return x.unflatten(-1, (parts, heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)


def merge(x: Tensor) -> Tensor:
    """(B, H, T, K) -> (B, T, D)."""
    return x.transpose(1, 2).flatten(-2)
