"""Attention written out: it returns the weights, and every other backend is tested against it."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.models.backends.masks import AttentionMask
from nmt.models.ops import upcast


def attend_explicit(
    q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, dropout: float = 0.0, window: int | None = None
) -> tuple[Tensor, Tensor]:
    """softmax(q k' / sqrt(K)) v      arXiv:1706.03762, 3.2.1.

    q is scaled rather than the scores, of which there are S / K times as many.
    """
    allowed, bias = mask.allowed(q, k, window), mask.bias_matrix(q, k)
    scores = upcast((q * q.size(-1) ** -0.5) @ k.mT)
    if bias is not None:
        scores = scores + bias
    if allowed is not None:
        # in place, since scores are the largest tensor; the lowest finite number, since a row of -inf would give NaN
        scores.masked_fill_(~allowed, torch.finfo(scores.dtype).min)
    weights = scores.softmax(dim=-1)
    if allowed is not None and (mask.key_mask is not None or q.size(2) > k.size(2)):
        weights = weights.masked_fill(~allowed, 0.0)  # a row that may attend to nothing
    return F.dropout(weights, dropout).to(v.dtype) @ v, weights
