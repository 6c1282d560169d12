"""Fused attention: torch's scaled_dot_product_attention, which never stores the weights."""

from __future__ import annotations

from contextlib import nullcontext

import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.models.backends.masks import AttentionMask, no_autocast
from nmt.models.ops import upcast


def attend_sdpa(q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, dropout: float = 0.0) -> tuple[Tensor, None]:
    """softmax(q k' / sqrt(K)) v by F.scaled_dot_product_attention; a bias is materialised, (H, T, S), for it."""
    if mask.causal and q.size(2) == k.size(2) and mask.key_mask is mask.bias is None:
        return fused_sdpa(q, k, v, None, dropout, is_causal=True), None
    bias = mask.bias_matrix(q, k)
    attn_mask = combine_masks(None if bias is None else bias[None], mask.allowed(q, k))
    return fused_sdpa(q, k, v, attn_mask, dropout), None


def combine_masks(bias: Tensor | None, allowed: Tensor | None) -> Tensor | None:
    """A boolean mask, a bias, or both as one bias, as the kernel takes them."""
    if bias is None or allowed is None:
        return allowed if bias is None else bias
    return bias.masked_fill(~allowed, -torch.inf)


def fused_sdpa(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float, is_causal: bool = False) -> Tensor:
    """The kernel. Its own causal mask (`is_causal`) is aligned to the top left, so it is used where T = S only.

    A mask rules out CUDA's flash kernel (another fused one runs); dropout on weights rules out the CPU's fused one.
    The CPU kernel's backward in bfloat16 takes three times as long as in float32 (33 keys), so there it gets float32.
    """
    dtype, on_cpu = v.dtype, q.device.type == "cpu"
    if on_cpu:
        q, k, v = upcast(q), upcast(k), upcast(v)
    if mask is not None and mask.is_floating_point():
        mask = mask.to(q.dtype)
    with no_autocast(q) if on_cpu else nullcontext():
        output = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout, is_causal=is_causal)
    return output.to(dtype)
