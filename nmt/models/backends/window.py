"""Sliding-window attention: each position attends to those fewer than `width` away      arXiv:2004.05150, 3.1.

Exact within the window. Queries are computed in blocks of at most `width`, each with the span of keys that it can
reach, so that time and memory grow with length x width.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.models.backends.explicit import attend_explicit
from nmt.models.backends.masks import AttentionMask
from nmt.models.backends.sdpa import attend_sdpa, combine_masks, fused_sdpa


@dataclass(frozen=True)
class SlidingWindow:
    """Attention within a window, and the same as a band of the full matrix."""

    width: int

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, dropout: float = 0.0) -> tuple[Tensor, None]:
        T, S = q.size(2), k.size(2)
        if max(T, S) <= self.width:  # the window covers everything
            return attend_sdpa(q, k, v, mask, dropout)
        blocks = QueryBlocks(q.size(0), T, S, min(T, self.width), self.width - 1, 0 if mask.causal else self.width - 1)
        attn_mask = combine_masks(blocks.bias(mask, q.device), blocks.allowed(mask, q.device))
        return blocks.merge(
            fused_sdpa(blocks.split_queries(q), blocks.split_keys(k), blocks.split_keys(v), attn_mask, dropout)
        ), None

    def attend_explicit(
        self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, dropout: float = 0.0
    ) -> tuple[Tensor, Tensor]:
        return attend_explicit(q, k, v, mask, dropout, self.width)


@dataclass(frozen=True)
class QueryBlocks:
    """T queries, the last of S positions, cut into N blocks; each is a row of a batch (B * N, H, ...)."""

    B: int
    T: int
    S: int
    queries_per_block: int
    before: int  # positions before its own that a query attends to
    after: int

    @property
    def num_blocks(self) -> int:
        return -(-self.T // self.queries_per_block)

    @property
    def keys_per_block(self) -> int:
        """The span of keys of one block of queries."""
        return self.before + self.queries_per_block + self.after

    @property
    def key_padding(self) -> tuple[int, int]:
        """Keys to pad on the left of the first span and on the right of the last; below 0: keys to cut."""
        first = self.S - self.T
        return self.before - first, self.num_blocks * self.queries_per_block - self.T + self.after

    def split_queries(self, q: Tensor) -> Tensor:
        """(B, H, T, K) -> (B * N, H, block, K)."""
        q = F.pad(q, (0, 0, 0, self.num_blocks * self.queries_per_block - self.T))
        return q.unflatten(2, (self.num_blocks, self.queries_per_block)).transpose(1, 2).flatten(0, 1)

    def split_keys(self, x: Tensor) -> Tensor:
        """(B, H, S, K) -> (B * N, H, span, K); neighbouring spans overlap."""
        x = F.pad(x, (0, 0, *self.key_padding))
        return x.unfold(2, self.keys_per_block, self.queries_per_block).permute(0, 2, 1, 4, 3).flatten(0, 1)

    def merge(self, output: Tensor) -> Tensor:
        """(B * N, H, block, K) -> (B, H, T, K)."""
        return output.unflatten(0, (self.B, self.num_blocks)).transpose(1, 2).flatten(2, 3)[:, :, : self.T]

    def allowed(self, mask: AttentionMask, device: torch.device) -> Tensor:
        """(B * N, 1, block, span), True where a query may attend."""
        real = torch.ones(self.B, self.S, dtype=torch.bool, device=device) if mask.key_mask is None else mask.key_mask
        real = F.pad(real, self.key_padding).unfold(1, self.keys_per_block, self.queries_per_block)  # (B, N, span)
        query = torch.arange(self.queries_per_block, device=device)[:, None] + self.before
        distance = query - torch.arange(self.keys_per_block, device=device)
        within_reach = (distance <= self.before) & (distance >= -self.after)
        return (real[:, :, None] & within_reach).flatten(0, 1)[:, None]

    def bias(self, mask: AttentionMask, device: torch.device) -> Tensor | None:
        """(B * N, H, block, span)."""
        if mask.bias is None:
            return None
        starts = self.queries_per_block * torch.arange(self.num_blocks, device=device)[:, None]
        first = self.S - self.T + starts  # (N, 1)
        queries = first + torch.arange(self.queries_per_block, device=device)
        keys = first - self.before + torch.arange(self.keys_per_block, device=device)
        bias = mask.bias(queries, keys).transpose(0, 1)  # (N, H, block, span)
        return bias.expand(self.B, *bias.shape).flatten(0, 1)
