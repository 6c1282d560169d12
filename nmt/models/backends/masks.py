"""Interface of the attention backends.

The T queries are the last T of S positions (the causal mask is aligned to the bottom right), so that one or several
pieces decoded with a cache of earlier keys get what teacher forcing gives.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import reduce
from typing import NamedTuple

import torch
from torch import Tensor

# Positions of queries (..., T) and of keys (..., S) -> what is added to their scaled scores, (H, ..., T, S), without
# gradient. Kernels ask for it block by block, so it never needs to exist for all pairs of positions at once.
Bias = Callable[[Tensor, Tensor], Tensor]


class CuSeqlens(NamedTuple):
    """Where the sentences of a packed batch begin, as `varlen_attn` takes it."""

    cu_seqlens_q: Tensor  # (B + 1,) int32; the last entry is the number of tokens
    cu_seqlens_k: Tensor
    max_seqlen_q: int
    max_seqlen_k: int


class AttentionMask(NamedTuple):
    """What a query may attend to. A query that may attend to nothing gets zeros, and passes no gradient."""

    key_mask: Tensor | None = None  # (B, S) True where a key is real
    causal: bool = False  # no key after the query's own position
    bias: Bias | None = None
    cu_seqlens: CuSeqlens | None = None  # of packed tokens; only `varlen` takes them

    def bias_matrix(self, q: Tensor, k: Tensor) -> Tensor | None:
        """The bias of queries (B, H, T, K) and keys (B, H, S, K), (H, T, S)."""
        if self.bias is None:
            return None
        T, S = q.size(2), k.size(2)
        return self.bias(torch.arange(S - T, S, device=q.device), torch.arange(S, device=q.device))

    def allowed(self, q: Tensor, k: Tensor, window: int | None = None) -> Tensor | None:
        """Which keys a query may attend to, (B or 1, 1, T, S); None: all. With a window, those fewer positions away."""
        T, S = q.size(2), k.size(2)
        limits = [] if self.key_mask is None else [self.key_mask[:, None, None]]
        if self.causal and T > 1:  # a single query is the last, and attends to all
            limits.append(q.new_ones(1, 1, T, S, dtype=torch.bool).tril(S - T))
        if window is not None:
            band = q.new_ones(1, 1, T, S, dtype=torch.bool).tril(S - T + window - 1).triu(S - T - window + 1)
            limits.append(band)
        return reduce(torch.logical_and, limits) if limits else None


# q (B, H, T, K), k and v (B, H, S, K), mask, dropout on the weights -> outputs (B, H, T, K) in v's dtype, and the
# weights (B, H, T, S) from a kernel that computes them
Attend = Callable[[Tensor, Tensor, Tensor, AttentionMask, float], tuple[Tensor, Tensor | None]]


def no_autocast(x: Tensor) -> AbstractContextManager[object]:
    """On x's device, products in the dtype of their factors."""
    return torch.autocast(x.device.type, enabled=False)
