"""FlashAttention's algorithm in plain tensor operations      arXiv:2205.14135, arXiv:2307.08691.

Keys come in blocks. A running maximum m and a running sum l make each block's part of the softmax fit the ones before
it, so that no more than T x block scores exist at any time. Backward keeps the output and, for each query, the
log-sum-exp of its scores, and recomputes the weights from it, block by block.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nmt.models.backends.masks import AttentionMask, Bias, no_autocast
from nmt.models.ops import upcast

BLOCK = 128  # keys


def attend_tiled(
    q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, dropout: float = 0.0, block: int = BLOCK
) -> tuple[Tensor, None]:
    """softmax(q k' / sqrt(K)) v in memory that grows with T + S; `Backend` refuses dropout on the weights."""
    with no_autocast(q):
        output = _Tiled.apply(upcast(q), upcast(k), upcast(v), mask.key_mask, mask.causal, mask.bias, block)
    return output.to(v.dtype), None


class Tile(NamedTuple):
    """The scores of one block of keys, for the queries that may attend to some of it."""

    rows: slice
    keys: slice
    scores: Tensor  # (B, H, rows, keys); -inf where a query may not attend


def tiles(q: Tensor, k: Tensor, mask: Tensor | None, causal: bool, bias: Bias | None, block: int) -> Iterator[Tile]:
    """All tiles, one after the other; q is already scaled."""
    T, S = q.size(2), k.size(2)
    offset = S - T  # the position of query 0
    for start in range(0, S, block):
        keys = slice(start, min(start + block, S))
        rows = slice(max(0, start - offset) if causal else 0, T)  # from the first that is not before all of these keys
        scores = q[:, :, rows] @ k[:, :, keys].mT
        if bias is not None:
            scores += bias(
                torch.arange(offset + rows.start, S, device=q.device), torch.arange(S, device=q.device)[keys]
            )
        if mask is not None:
            scores.masked_fill_(~mask[:, None, None, keys], -torch.inf)
        if causal:  # queries before the last of these keys
            corner = scores[:, :, : max(0, keys.stop - offset - rows.start)]
            visible = torch.ones(corner.shape[2:], dtype=torch.bool, device=q.device).tril(offset + rows.start - start)
            corner.masked_fill_(~visible, -torch.inf)
        yield Tile(rows, keys, scores)


class _Tiled(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, bias: Bias | None, block: int
    ) -> Tensor:
        scale = q.size(-1) ** -0.5
        output = torch.zeros(*q.shape[:-1], v.size(-1), dtype=v.dtype, device=v.device)
        m = torch.full_like(output[..., :1], torch.finfo(v.dtype).min)  # finite: the exp below is never of inf - inf
        l = torch.zeros_like(m)  # noqa: E741
        for rows, keys, scores in tiles(q * scale, k, mask, causal, bias, block):
            m_next = torch.maximum(m[:, :, rows], scores.amax(dim=-1, keepdim=True))
            p = scores.sub_(m_next).exp_()
            correction = (m[:, :, rows] - m_next).exp_()
            l[:, :, rows] = l[:, :, rows] * correction + p.sum(dim=-1, keepdim=True)
            output[:, :, rows] = output[:, :, rows] * correction + p @ v[:, :, keys]
            m[:, :, rows] = m_next
        # a query that may attend to nothing: zeros, and a log-sum-exp beside which every weight vanishes
        output = torch.where(l > 0, output / l, 0.0)
        ctx.save_for_backward(q, k, v, mask, output, torch.where(l > 0, m + l.log(), torch.inf))
        ctx.rest = (causal, bias, block)
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        """dv = p' do, ds = p (do v' - sum(do output)), dq = ds k, dk = ds' q: p is recomputed for each block."""
        q, k, v, mask, output, logsumexp = ctx.saved_tensors
        (grad_output,), scale = grad_outputs, q.size(-1) ** -0.5
        dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        with no_autocast(q):
            q = q * scale
            delta = (grad_output * output).sum(dim=-1, keepdim=True)
            for rows, keys, scores in tiles(q, k, mask, *ctx.rest):
                p = scores.sub_(logsumexp[:, :, rows]).exp_()
                dv[:, :, keys] = p.mT @ grad_output[:, :, rows]
                ds = (grad_output[:, :, rows] @ v[:, :, keys].mT).sub_(delta[:, :, rows]).mul_(p)
                dq[:, :, rows] += ds @ k[:, :, keys]
                dk[:, :, keys] = ds.mT @ q[:, :, rows]
        return dq * scale, dk, dv, None, None, None, None
