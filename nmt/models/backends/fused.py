"""Attention in one kernel of the library's, which never stores the weights."""

from __future__ import annotations

from contextlib import nullcontext

import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.models.backends.sight import Sight, plainly
from nmt.models.precision import wide


def attend_fused(q: Tensor, k: Tensor, v: Tensor, sight: Sight, dropout: float = 0.0) -> tuple[Tensor, None]:
    """softmax(q k' / sqrt(K)) v by F.scaled_dot_product_attention; a bias is made whole, (H, T, S), for it."""
    if sight.causal and q.size(2) == k.size(2) and sight.mask is sight.bias is None:
        return fuse(q, k, v, None, dropout, square=True), None
    bias = sight.added(q, k)
    mask = in_one(None if bias is None else bias[None], sight.allowed(q, k))
    return fuse(q, k, v, mask, dropout), None


def in_one(bias: Tensor | None, allowed: Tensor | None) -> Tensor | None:
    """A mask, a bias or both in one, as the kernel takes them."""
    if bias is None or allowed is None:
        return allowed if bias is None else bias
    return bias.masked_fill(~allowed, -torch.inf)


def fuse(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float, square: bool = False) -> Tensor:
    """The kernel. `square`: causal; its own causal mask is aligned to the top left, so it serves where T = S only.

    A mask rules CUDA's flash kernel out (another fused one runs); dropout on weights rules the CPU's fused one out.
    The CPU's kernel goes backward in bfloat16 at a third of its float32 speed (33 keys), so there it gets float32.
    """
    kind, on_cpu = v.dtype, q.device.type == "cpu"
    if on_cpu:
        q, k, v = wide(q), wide(k), wide(v)
    if mask is not None and mask.is_floating_point():
        mask = mask.to(q.dtype)
    with plainly(q) if on_cpu else nullcontext():
        found = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout, is_causal=square)
    return found.to(kind)
