"""How the pieces of a batch lie in memory: in rows padded to one length, or end to end without padding.

Everything but attention treats pieces one by one and never asks. A layout says what attention needs to know.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple, Self

import torch
from torch import Tensor

from nmt.models.backends.sight import Bias, Sight, Spans


class Places(NamedTuple):
    """Where in their sentences the pieces stand."""

    numbers: Tensor  # (T,) for rows, (1, N) end to end
    end: int  # one more than the last of them

    @classmethod
    def between(cls, first: int, end: int, device: torch.device) -> Places:
        return cls(torch.arange(first, end, device=device), end)


class Layout(ABC):
    """Made of ids (B, T), padded on the right."""

    ids: Tensor  # (B, T), or (1, N) end to end
    places: Places

    @abstractmethod
    def around(self, bias: Bias | None) -> Sight:
        """All of the own sentence."""

    @abstractmethod
    def so_far(self, bias: Bias | None) -> Sight:
        """The own sentence up to the own place."""

    @abstractmethod
    def over(self, source: Self) -> Sight:
        """All of another sentence."""

    @abstractmethod
    def spread(self, x: Tensor) -> Tensor:
        """What was made of `ids`, as rows (B, T, D)."""


class Padded(Layout):
    """Rows as they come.

    Padding is on the right, so causality alone keeps it out of what a piece sees so far: that needs no mask, and stays
    on the fastest kernel everywhere.
    """

    def __init__(self, ids: Tensor, pad_id: int) -> None:
        self.ids = ids
        self.mask = ids != pad_id  # (B, T)
        self.places = Places.between(0, ids.size(1), ids.device)

    def around(self, bias: Bias | None) -> Sight:
        return Sight(mask=self.mask, bias=bias)

    def so_far(self, bias: Bias | None) -> Sight:
        return Sight(causal=True, bias=bias)

    def over(self, source: Self) -> Sight:
        return Sight(mask=source.mask)

    def spread(self, x: Tensor) -> Tensor:
        return x


class Packed(Layout):
    """The real pieces of all rows end to end. No padding is computed anywhere."""

    def __init__(self, ids: Tensor, pad_id: int) -> None:
        self.shape = ids.shape
        real = ids != pad_id
        lengths = real.sum(dim=1)
        self.starts = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)]).to(torch.int32)
        self.cells = real.flatten().nonzero()[:, 0]  # (N,) where the pieces were; waits for the device, once
        self.ids = ids.flatten()[self.cells][None]
        self.places = Places((self.cells % ids.size(1))[None], ids.size(1))

    def around(self, bias: Bias | None) -> Sight:
        return Sight(bias=bias, spans=self._spans(self))

    def so_far(self, bias: Bias | None) -> Sight:
        return Sight(causal=True, bias=bias, spans=self._spans(self))

    def over(self, source: Self) -> Sight:
        return Sight(spans=self._spans(source))

    def _spans(self, keys: Packed) -> Spans:
        return Spans(self.starts, keys.starts, self.shape[1], keys.shape[1])

    def spread(self, x: Tensor) -> Tensor:
        cells = x.new_zeros(self.shape.numel(), x.size(-1))
        return cells.index_copy(0, self.cells, x[0]).view(*self.shape, -1)
