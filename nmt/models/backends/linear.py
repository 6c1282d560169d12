"""Attention whose score is a product of features, f(q) . f(k)      arXiv:2006.16236.

f(x) = elu(x) + 1 > 0. Sums over keys are made once and shared by all queries, so time and memory grow with T + S. It is
another mechanism than softmax, not a faster way to it.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.models.backends.sight import Sight, plainly
from nmt.models.precision import wide

CHUNK = 64  # places
TOGETHER = 8  # chunks: what is made of more of them leaves the processor's cache


def attend_linear(
    q: Tensor, k: Tensor, v: Tensor, sight: Sight, dropout: float = 0.0, chunk: int = CHUNK
) -> tuple[Tensor, None]:
    """f(q) (f(k)' v) / f(q) (f(k)' 1); causal by sums over the keys so far. Dropout is refused at the door."""
    with plainly(q):
        one = torch.ones_like(v[..., :1], dtype=wide(v).dtype)
        sums = torch.cat([wide(v), one], dim=-1)  # numerator and denominator together: (B, H, S, K + 1)
        f_q, f_k = features(q), _real(features(k), sight)
        both = _prefix_sums(f_q, f_k, sums, chunk) if sight.causal else f_q @ (f_k.mT @ sums)
        found, total = both[..., :-1], both[..., -1:]
        return (found / torch.where(total > 0, total, 1.0)).to(v.dtype), None


def attend_linear_explicit(
    q: Tensor, k: Tensor, v: Tensor, sight: Sight, dropout: float = 0.0
) -> tuple[Tensor, Tensor]:
    """The same by the full matrix of weights f(q) f(k)', each row divided by its sum."""
    with plainly(q):
        allowed = sight.allowed(q, k)
        weights = features(q) @ features(k).mT
        if allowed is not None:
            weights = weights.masked_fill(~allowed, 0.0)
        total = weights.sum(dim=-1, keepdim=True)
        weights = weights / torch.where(total > 0, total, 1.0)
        return (weights @ wide(v)).to(v.dtype), weights


def features(x: Tensor) -> Tensor:
    return F.elu(wide(x)) + 1.0


def _real(f_k: Tensor, sight: Sight) -> Tensor:
    """A key that is not real weighs nothing."""
    return f_k if sight.mask is None else f_k * sight.mask[:, None, :, None]


def _prefix_sums(f_q: Tensor, f_k: Tensor, sums: Tensor, chunk: int) -> Tensor:
    """sum over j <= i of (f_q_i . f_k_j) sums_j, by chunks: the chunks before as one matrix, the own one pairwise.

    There is one K x K matrix a chunk, so memory grows with the length and not with length x K x K.
    """
    T, S = f_q.size(2), f_k.size(2)
    if T > S:  # queries from before the first key
        f_k, sums = F.pad(f_k, (0, 0, T - S, 0)), F.pad(sums, (0, 0, T - S, 0))
    early = max(0, S - T)  # keys before the first query
    start = f_k[:, :, :early].mT @ sums[:, :, :early]  # (B, H, K, K + 1)
    size = min(chunk, T)
    q, k, v = (_chunks(x, size) for x in (f_q, f_k[:, :, early:], sums[:, :, early:]))  # (B, H, N, size, ...)
    found = []
    for q_some, k_some, v_some in zip(*(x.split(TOGETHER, dim=2) for x in (q, k, v)), strict=True):
        own = (q_some @ k_some.mT).tril() @ v_some
        state = k_some.mT @ v_some  # (B, H, N, K, K + 1)
        before = torch.cat([start[:, :, None], state[:, :, :-1]], dim=2).cumsum(dim=2)
        found.append(q_some @ before + own)
        start = before[:, :, -1] + state[:, :, -1]
    return torch.cat(found, dim=2).flatten(2, 3)[:, :, :T]


def _chunks(x: Tensor, size: int) -> Tensor:
    """(B, H, T, K) -> (B, H, N, size, K), zeros at the end."""
    return F.pad(x, (0, 0, 0, -x.size(2) % size)).unflatten(2, (-1, size))
