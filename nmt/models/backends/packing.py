"""Batches as the Transformer computes them: rows padded to one length, or packed (unpadded) tokens.

Only attention mixes positions, so a token batch provides its masks; every other layer treats tokens one by one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple, Self

import torch
from torch import Tensor

from nmt.models.backends.masks import AttentionMask, Bias, CuSeqlens


class PositionIds(NamedTuple):
    """The positions of pieces in their sentences."""

    ids: Tensor  # (T,) padded, (1, N) packed
    stop: int  # one more than the largest of them

    @classmethod
    def range(cls, first: int, end: int, device: torch.device) -> PositionIds:
        return cls(torch.arange(first, end, device=device), end)


class TokenBatch(ABC):
    """Made from ids (B, T), padded on the right."""

    ids: Tensor  # (B, T) padded, (1, N) packed
    position_ids: PositionIds

    @abstractmethod
    def attention_mask(self, keys: Self, *, causal: bool = False, bias: Bias | None = None) -> AttentionMask:
        """Attention of these pieces over those of `keys`; causal, over themselves up to the query's own position."""

    @abstractmethod
    def unpack(self, x: Tensor) -> Tensor:
        """Features of `ids` as padded rows (B, T, D)."""


class PaddedBatch(TokenBatch):
    """Padded rows.

    Padding is on the right, so the causal mask alone keeps it out of decoder self-attention, which needs no key mask
    and stays on the fastest kernel everywhere.
    """

    def __init__(self, ids: Tensor, pad_id: int) -> None:
        self.ids = ids
        self.mask = ids != pad_id  # (B, T)
        self.position_ids = PositionIds.range(0, ids.size(1), ids.device)

    def attention_mask(self, keys: Self, *, causal: bool = False, bias: Bias | None = None) -> AttentionMask:
        return AttentionMask(None if causal else keys.mask, causal, bias)

    def unpack(self, x: Tensor) -> Tensor:
        return x


class PackedBatch(TokenBatch):
    """The real pieces of all rows, packed: nothing is computed for padding anywhere."""

    def __init__(self, ids: Tensor, pad_id: int) -> None:
        self.shape = ids.shape
        real = ids != pad_id
        lengths = real.sum(dim=1)
        self.cu_seqlens = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)]).to(torch.int32)
        self.token_index = real.flatten().nonzero()[:, 0]  # (N,) into the flat rows; synchronises with the device, once
        self.ids = ids.flatten()[self.token_index][None]
        self.position_ids = PositionIds((self.token_index % ids.size(1))[None], ids.size(1))

    def attention_mask(self, keys: Self, *, causal: bool = False, bias: Bias | None = None) -> AttentionMask:
        cu_seqlens = CuSeqlens(self.cu_seqlens, keys.cu_seqlens, self.shape[1], keys.shape[1])
        return AttentionMask(causal=causal, bias=bias, cu_seqlens=cu_seqlens)

    def unpack(self, x: Tensor) -> Tensor:
        rows = x.new_zeros(self.shape.numel(), x.size(-1))
        return rows.index_copy(0, self.token_index, x[0]).view(*self.shape, -1)
