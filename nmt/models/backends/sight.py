"""What is asked of every way to compute attention.

T queries are the last T of S places (the causal mask is aligned to the bottom right), so that a piece decoded with a
cache of earlier keys, or several at once, gets what teacher forcing gives.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import NamedTuple

import torch
from torch import Tensor

# Places of queries (..., T) and of keys (..., S) -> what is added to their scaled scores, (H, ..., T, S).
# It has no gradient. It is asked for block by block, so it never needs to exist for all places at once.
Bias = Callable[[Tensor, Tensor], Tensor]


class Spans(NamedTuple):
    """Where sentences begin in tokens that lie end to end."""

    queries: Tensor  # (B + 1,) int32; the last one is the number of tokens
    keys: Tensor
    longest_query: int
    longest_key: int


class Sight(NamedTuple):
    """What a query may look at. A query with nothing to look at finds zeros, and passes no gradient."""

    mask: Tensor | None = None  # (B, S) True where a key is real
    causal: bool = False  # no key after the query's own place
    bias: Bias | None = None
    spans: Spans | None = None  # of tokens without padding; only `varlen` takes them

    def added(self, q: Tensor, k: Tensor) -> Tensor | None:
        """The bias of queries (B, H, T, K) and keys (B, H, S, K), (H, T, S)."""
        if self.bias is None:
            return None
        T, S = q.size(2), k.size(2)
        return self.bias(torch.arange(S - T, S, device=q.device), torch.arange(S, device=q.device))

    def allowed(self, q: Tensor, k: Tensor, window: int | None = None) -> Tensor | None:
        """Which keys a query may see, (B or 1, 1, T, S); None: all. With a window, those fewer places away."""
        T, S = q.size(2), k.size(2)
        seen = None if self.mask is None else self.mask[:, None, None]
        if self.causal and T > 1:  # a single query is the last, and sees all
            seen = _both(seen, _true(T, S, q.device).tril(S - T))
        if window is not None:
            seen = _both(seen, _true(T, S, q.device).tril(S - T + window - 1).triu(S - T - window + 1))
        return seen


def _true(T: int, S: int, device: torch.device) -> Tensor:
    return torch.ones(T, S, dtype=torch.bool, device=device)


def _both(seen: Tensor | None, more: Tensor) -> Tensor:
    return more[None, None] if seen is None else seen & more


# (q (B, H, T, K), k and v (B, H, S, K), sight, dropout on the weights) -> heads' outputs (B, H, T, K) in v's type,
# and the weights (B, H, T, S) from a way that makes any
Attend = Callable[[Tensor, Tensor, Tensor, Sight, float], tuple[Tensor, Tensor | None]]


def plainly(x: Tensor) -> AbstractContextManager[object]:
    """On x's device, products in the type of their factors."""
    return torch.autocast(x.device.type, enabled=False)
