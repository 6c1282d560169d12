"""Linear attention: the score is a product of features, f(q) . f(k)      arXiv:2006.16236.

f(x) = elu(x) + 1 > 0. Sums over keys are computed once and shared by all queries, so time and memory grow with T + S.
It is another model than softmax attention, not a faster kernel for it.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.models.backends.masks import AttentionMask, no_autocast
from nmt.models.ops import upcast

CHUNK = 64  # positions
CHUNKS_AT_ONCE = 8  # more of them do not fit in the processor's cache


def attend_linear(
    q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, dropout: float = 0.0, chunk: int = CHUNK
) -> tuple[Tensor, None]:
    """f(q) (f(k)' v) / f(q) (f(k)' 1); causal by sums over the keys so far. `Backend` refuses dropout."""
    with no_autocast(q):
        ones = torch.ones_like(v[..., :1], dtype=upcast(v).dtype)
        sums = torch.cat([upcast(v), ones], dim=-1)  # numerator and denominator together: (B, H, S, K + 1)
        f_q, f_k = feature_map(q), feature_map(k)
        if mask.key_mask is not None:
            f_k = f_k * mask.key_mask[:, None, :, None]
        products = _prefix_sums(f_q, f_k, sums, chunk) if mask.causal else f_q @ (f_k.mT @ sums)
        output, total = products[..., :-1], products[..., -1:]
        return (output / torch.where(total > 0, total, 1.0)).to(v.dtype), None


def attend_linear_explicit(
    q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, dropout: float = 0.0
) -> tuple[Tensor, Tensor]:
    """The same by the full matrix of weights f(q) f(k)', each row divided by its sum."""
    with no_autocast(q):
        allowed = mask.allowed(q, k)
        weights = feature_map(q) @ feature_map(k).mT
        if allowed is not None:
            weights = weights.masked_fill(~allowed, 0.0)
        total = weights.sum(dim=-1, keepdim=True)
        weights = weights / torch.where(total > 0, total, 1.0)
        return (weights @ upcast(v)).to(v.dtype), weights


def feature_map(x: Tensor) -> Tensor:
    return F.elu(upcast(x)) + 1.0


def _prefix_sums(f_q: Tensor, f_k: Tensor, sums: Tensor, chunk: int) -> Tensor:
    """sum over j <= i of (f_q_i . f_k_j) sums_j, by chunks: earlier chunks as one matrix, the same chunk pairwise.

    There is one K x K matrix a chunk, so memory grows with the length and not with length x K x K.
    """
    T, S = f_q.size(2), f_k.size(2)
    if T > S:  # queries before the first key
        f_k, sums = F.pad(f_k, (0, 0, T - S, 0)), F.pad(sums, (0, 0, T - S, 0))
    early = max(0, S - T)  # keys before the first query
    start = f_k[:, :, :early].mT @ sums[:, :, :early]  # (B, H, K, K + 1)
    size = min(chunk, T)
    q, k, v = (_chunks(x, size) for x in (f_q, f_k[:, :, early:], sums[:, :, early:]))  # (B, H, N, size, ...)
    output = []
    for q_chunks, k_chunks, v_chunks in zip(*(x.split(CHUNKS_AT_ONCE, dim=2) for x in (q, k, v)), strict=True):
        within_chunk = (q_chunks @ k_chunks.mT).tril() @ v_chunks
        state = k_chunks.mT @ v_chunks  # (B, H, N, K, K + 1)
        earlier = torch.cat([start[:, :, None], state[:, :, :-1]], dim=2).cumsum(dim=2)
        output.append(q_chunks @ earlier + within_chunk)
        start = earlier[:, :, -1] + state[:, :, -1]
    return torch.cat(output, dim=2).flatten(2, 3)[:, :, :T]


def _chunks(x: Tensor, size: int) -> Tensor:
    """(B, H, T, K) -> (B, H, N, size, K), zeros at the end."""
    return F.pad(x, (0, 0, 0, -x.size(2) % size)).unflatten(2, (-1, size))
