"""Sliding-window attention: each place sees those fewer than `width` places away      arXiv:2004.05150, 3.1.

Exact within the window. Queries go in blocks of at most `width`, each beside the stretch of keys that it can see, so
that time and memory grow with length x width.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.models.backends.explicit import attend_explicit
from nmt.models.backends.fused import attend_fused, fuse, in_one
from nmt.models.backends.sight import Sight


@dataclass(frozen=True)
class Window:
    """Attention within a window, and the same as a band of the full matrix."""

    width: int

    def attend(self, q: Tensor, k: Tensor, v: Tensor, sight: Sight, dropout: float = 0.0) -> tuple[Tensor, None]:
        T, S = q.size(2), k.size(2)
        if max(T, S) <= self.width:  # everything is near everything
            return attend_fused(q, k, v, sight, dropout)
        blocks = Blocks(q.size(0), T, S, min(T, self.width), self.width - 1, 0 if sight.causal else self.width - 1)
        mask = in_one(blocks.bias(sight, q.device), blocks.allowed(sight, q.device))
        return blocks.joined(fuse(blocks.queries(q), blocks.keys(k), blocks.keys(v), mask, dropout)), None

    def attend_explicit(
        self, q: Tensor, k: Tensor, v: Tensor, sight: Sight, dropout: float = 0.0
    ) -> tuple[Tensor, Tensor]:
        return attend_explicit(q, k, v, sight, dropout, self.width)


@dataclass(frozen=True)
class Blocks:
    """T queries, the last of S places, cut into N blocks; each is a row of a batch (B * N, H, ...) of its own."""

    B: int
    T: int
    S: int
    block: int  # queries
    before: int  # places that a query sees before its own
    after: int

    @property
    def number(self) -> int:
        return -(-self.T // self.block)

    @property
    def stretch(self) -> int:
        """Keys beside a block of queries."""
        return self.before + self.block + self.after

    @property
    def margins(self) -> tuple[int, int]:
        """Keys missing on the left of the first stretch and on the right of the last; below 0: keys too many."""
        first = self.S - self.T
        return self.before - first, self.number * self.block - self.T + self.after

    def queries(self, q: Tensor) -> Tensor:
        """(B, H, T, K) -> (B * N, H, block, K)."""
        q = F.pad(q, (0, 0, 0, self.number * self.block - self.T))
        return q.unflatten(2, (self.number, self.block)).transpose(1, 2).flatten(0, 1)

    def keys(self, x: Tensor) -> Tensor:
        """(B, H, S, K) -> (B * N, H, stretch, K); neighbouring stretches overlap."""
        x = F.pad(x, (0, 0, *self.margins))
        return x.unfold(2, self.stretch, self.block).permute(0, 2, 1, 4, 3).flatten(0, 1)

    def joined(self, found: Tensor) -> Tensor:
        """(B * N, H, block, K) -> (B, H, T, K)."""
        return found.unflatten(0, (self.B, self.number)).transpose(1, 2).flatten(2, 3)[:, :, : self.T]

    def allowed(self, sight: Sight, device: torch.device) -> Tensor:
        """(B * N, 1, block, stretch), True where a query may look."""
        real = torch.ones(self.B, self.S, dtype=torch.bool, device=device) if sight.mask is None else sight.mask
        real = F.pad(real, self.margins).unfold(1, self.stretch, self.block)  # (B, N, stretch)
        query = torch.arange(self.block, device=device)[:, None] + self.before
        distance = query - torch.arange(self.stretch, device=device)
        near = (distance <= self.before) & (distance >= -self.after)
        return (real[:, :, None] & near).flatten(0, 1)[:, None]

    def bias(self, sight: Sight, device: torch.device) -> Tensor | None:
        """(B * N, H, block, stretch)."""
        if sight.bias is None:
            return None
        first = self.S - self.T + self.block * torch.arange(self.number, device=device)[:, None]  # (N, 1)
        queries = first + torch.arange(self.block, device=device)
        keys = first - self.before + torch.arange(self.stretch, device=device)
        bias = sight.bias(queries, keys).transpose(0, 1)  # (N, H, block, stretch)
        return bias.expand(self.B, *bias.shape).flatten(0, 1)
