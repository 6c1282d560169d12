"""Controls between a fixed vector and attention: they tell gradient path from selection.

Both give every encoder state a short way to every target step; neither can choose by content.
"""

from __future__ import annotations

import torch
from torch import Tensor

from nmt.errors import require_whole
from nmt.models.attention import Attention, Memory, look
from nmt.models.precision import wide

BITS = 32
ONES = 2**BITS - 1


class MeanOfStates(Attention):
    """The mean of the encoder states at every step: a fixed-size context with a short gradient path, and no choice."""

    fixed_size = True

    def __init__(self, query_size: int, encoder_size: int) -> None:
        super().__init__()
        self.context_size = encoder_size

    def keys(self, states: Tensor) -> Tensor:
        return states[..., :0]

    def forward(self, query: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        B, T, _ = query.shape
        return look(wide(query).new_zeros(B, T, memory.mask.size(1)), memory)


class FrozenRandom(Attention):
    """a_t = softmax(sharpness u_t), u_ts uniform on [0, 1), a function of seed, target step t and source place s alone.

    Another mixture of the states at each step, without any parameter: nothing is chosen and nothing is learned.
    Of n pieces about 2 n / sharpness carry a weight.
    """

    by_place = True

    def __init__(self, query_size: int, encoder_size: int, seed: int, sharpness: float) -> None:
        super().__init__()
        require_whole("model.attention.seed", seed, least=0)
        self.context_size = encoder_size
        self.seed = seed
        self.sharpness = sharpness

    def keys(self, states: Tensor) -> Tensor:
        return states[..., :0]

    def forward(self, query: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        places = torch.arange(memory.mask.size(1), device=memory.mask.device)
        u = uniform(self.seed, memory.steps[..., None], places).to(wide(query).dtype)
        return look(self.sharpness * u, memory)


def uniform(seed: int, steps: Tensor, places: Tensor) -> Tensor:
    """A number in [0, 1) for each pair, the same on every device: 24 bits of an integer hash."""
    mixed = scrambled(places + scrambled(steps + scrambled(torch.full_like(steps, seed & ONES))))
    return (mixed >> (BITS - 24)).float() / 2**24


def scrambled(x: Tensor) -> Tensor:
    """A one-to-one map of 32-bit integers, held in int64, in which every bit depends on every other.

    The factors are below 2^31, so that no product leaves an int64.
    """
    x = x & ONES
    x = x ^ (x >> 16)
    x = (x * 0x21F0AAAD) & ONES
    x = x ^ (x >> 15)
    x = (x * 0x735A2D97) & ONES
    return x ^ (x >> 15)
