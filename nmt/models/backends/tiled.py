"""FlashAttention's algorithm in plain tensor operations      arXiv:2205.14135, arXiv:2307.08691.

Keys come in blocks. A running maximum m and a running sum l make each block's part of the softmax fit the ones before
it, so that no more than T x block scores exist at any time. What is kept for the way back is the output and, for each
query, the logarithm of its sum; the weights are made again from it, block by block.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nmt.models.backends.sight import Bias, Sight, plainly
from nmt.models.precision import wide

BLOCK = 128  # keys


def attend_tiled(
    q: Tensor, k: Tensor, v: Tensor, sight: Sight, dropout: float = 0.0, block: int = BLOCK
) -> tuple[Tensor, None]:
    """softmax(q k' / sqrt(K)) v in memory that grows with T + S; dropout on the weights is refused at the door."""
    with plainly(q):
        found = _Tiled.apply(wide(q), wide(k), wide(v), sight.mask, sight.causal, sight.bias, block)
    return found.to(v.dtype), None


class Tile(NamedTuple):
    """The scores of one block of keys, for those queries that may see some of it."""

    rows: slice
    keys: slice
    scores: Tensor  # (B, H, rows, keys); -inf where a query may not look


def tiles(q: Tensor, k: Tensor, mask: Tensor | None, causal: bool, bias: Bias | None, block: int) -> Iterator[Tile]:
    """All of them, one after the other; q is scaled already."""
    T, S = q.size(2), k.size(2)
    ahead = S - T  # query 0 stands at this place
    for start in range(0, S, block):
        keys = slice(start, min(start + block, S))
        rows = slice(max(0, start - ahead) if causal else 0, T)  # from the first that is not before all of these keys
        scores = q[:, :, rows] @ k[:, :, keys].mT
        if bias is not None:
            scores += bias(torch.arange(ahead + rows.start, S, device=q.device), torch.arange(S, device=q.device)[keys])
        if mask is not None:
            scores.masked_fill_(~mask[:, None, None, keys], -torch.inf)
        if causal:  # queries before the last of these keys
            corner = scores[:, :, : max(0, keys.stop - ahead - rows.start)]
            seen = torch.ones(corner.shape[2:], dtype=torch.bool, device=q.device).tril(ahead + rows.start - start)
            corner.masked_fill_(~seen, -torch.inf)
        yield Tile(rows, keys, scores)


class _Tiled(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, bias: Bias | None, block: int
    ) -> Tensor:
        scale = q.size(-1) ** -0.5
        found = torch.zeros(*q.shape[:-1], v.size(-1), dtype=v.dtype, device=v.device)
        m = torch.full_like(found[..., :1], torch.finfo(v.dtype).min)  # finite: the exp below is never of inf - inf
        l = torch.zeros_like(m)  # noqa: E741
        for rows, keys, scores in tiles(q * scale, k, mask, causal, bias, block):
            m_next = torch.maximum(m[:, :, rows], scores.amax(dim=-1, keepdim=True))
            p = scores.sub_(m_next).exp_()
            fits = (m[:, :, rows] - m_next).exp_()
            l[:, :, rows] = l[:, :, rows] * fits + p.sum(dim=-1, keepdim=True)
            found[:, :, rows] = found[:, :, rows] * fits + p @ v[:, :, keys]
            m[:, :, rows] = m_next
        # a query that saw nothing: zeros, and a normaliser beside which every weight vanishes
        found = torch.where(l > 0, found / l, 0.0)
        ctx.save_for_backward(q, k, v, mask, found, torch.where(l > 0, m + l.log(), torch.inf))
        ctx.rest = (causal, bias, block)
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        """dv = p' do, ds = p (do v' - sum(do found)), dq = ds k, dk = ds' q: p made again for each block."""
        q, k, v, mask, found, normaliser = ctx.saved_tensors
        (slope,), scale = slopes, q.size(-1) ** -0.5
        dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        with plainly(q):
            q = q * scale
            share = (slope * found).sum(dim=-1, keepdim=True)
            for rows, keys, scores in tiles(q, k, mask, *ctx.rest):
                p = scores.sub_(normaliser[:, :, rows]).exp_()
                dv[:, :, keys] = p.mT @ slope[:, :, rows]
                ds = (slope[:, :, rows] @ v[:, :, keys].mT).sub_(share[:, :, rows]).mul_(p)
                dq[:, :, rows] += ds @ k[:, :, keys]
                dk[:, :, keys] = ds.mT @ q[:, :, rows]
        return dq * scale, dk, dv, None, None, None, None
