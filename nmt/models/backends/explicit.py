"""Attention written out: it gives the weights, and every other way is held to it."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.models.backends.sight import Sight
from nmt.models.precision import wide


def attend_explicit(
    q: Tensor, k: Tensor, v: Tensor, sight: Sight, dropout: float = 0.0, window: int | None = None
) -> tuple[Tensor, Tensor]:
    """softmax(q k' / sqrt(K)) v      arXiv:1706.03762, 3.2.1.

    q is scaled rather than the scores, of which there are S / K times as many.
    """
    allowed, bias = sight.allowed(q, k, window), sight.added(q, k)
    scores = wide((q * q.size(-1) ** -0.5) @ k.mT)
    if bias is not None:
        scores = scores + bias
    if allowed is not None:
        # in place: scores are the largest thing there is; the least finite number: a row of them is no NaN
        scores.masked_fill_(~allowed, torch.finfo(scores.dtype).min)
    weights = scores.softmax(dim=-1)
    if allowed is not None and (sight.mask is not None or q.size(2) > k.size(2)):
        weights = weights.masked_fill(~allowed, 0.0)  # a row with nothing to look at
    return F.dropout(weights, dropout).to(v.dtype) @ v, weights
