"""Controls between a fixed vector and attention: they separate the short gradient path from selection.

Both give every encoder state a short gradient path to every target step; neither can select by content.
"""

from __future__ import annotations

import torch
from torch import Tensor

from nmt.models.attention import Attention, Memory, attend_softmax
from nmt.models.ops import upcast

BITS = 32
MASK32 = 2**BITS - 1


class MeanOfStates(Attention):
    """The mean of the encoder states at every step: a fixed-size context, a short gradient path, no selection."""

    def __init__(self, query_size: int, encoder_size: int) -> None:
        super().__init__()
        self.context_size = self.fixed_numbers = encoder_size

    def forward(self, query: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        B, T, _ = query.shape
        return attend_softmax(upcast(query).new_zeros(B, T, memory.mask.size(1)), memory)


class FrozenRandom(Attention):
    """a_t = softmax(sharpness u_t), u_ts uniform on [0, 1), a function of seed, step t and position s alone.

    A different mixture of the states at each step, without parameters: nothing is selected and nothing is learned.
    Of n pieces about 2 n / sharpness have a noticeable weight.
    """

    is_positional = True

    def __init__(self, query_size: int, encoder_size: int, seed: int, sharpness: float) -> None:
        super().__init__()
        self.context_size = encoder_size
        self.seed = seed
        self.sharpness = sharpness

    def forward(self, query: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        positions = torch.arange(memory.mask.size(1), device=memory.mask.device)
        u = hashed_uniform(self.seed, memory.steps[..., None], positions).to(upcast(query).dtype)
        return attend_softmax(self.sharpness * u, memory)


def hashed_uniform(seed: int, steps: Tensor, positions: Tensor) -> Tensor:
    """A number in [0, 1) for each pair, the same on every device: 24 bits of an integer hash."""
    hashed = hash32(positions + hash32(steps + hash32(torch.full_like(steps, seed & MASK32))))
    return (hashed >> (BITS - 24)).float() / 2**24


def hash32(x: Tensor) -> Tensor:
    """A one-to-one map of 32-bit integers, held in int64, in which every bit depends on every other.

    The factors are below 2^31, so that no product leaves an int64.
    """
    x = x & MASK32
    x = x ^ (x >> 16)
    x = (x * 0x21F0AAAD) & MASK32
    x = x ^ (x >> 15)
    x = (x * 0x735A2D97) & MASK32
    return x ^ (x >> 15)
