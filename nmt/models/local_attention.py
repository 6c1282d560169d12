"""Local attention: only a window of the source is scored      arXiv:1508.04025, 3.2.

Each target step has a centre p. The pieces s with |s - p| <= D, both counted from 0, are gathered into a small
memory, which any content-based scorer attends to; so the cost grows with D and not with the sentence.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt.errors import ModelError
from nmt.models.attention import Attention, Memory
from nmt.models.ops import upcast
from nmt.models.rnn import gather_positions


class LocalWindow(NamedTuple):
    """The W = 2 D + 1 positions around each centre and their weights; 0 for positions outside the sentence."""

    states: Tensor  # (B T, W, E)
    positions: Tensor  # (B, T, W)
    weights: Tensor  # (B, T, W)


class LocalAttention(Attention):
    """What both share; `window` is D. ModelError for a scorer that compares no states."""

    is_positional = True

    def __init__(self, query_size: int, encoder_size: int, window: int, score: Callable[..., Attention]) -> None:
        super().__init__()
        self.context_size = encoder_size
        self.half_width = window
        self.score = score(query_size=query_size, encoder_size=encoder_size)
        if self.score.is_positional or not self.score.has_weights:
            raise ModelError(
                "a window needs a scorer that compares states (attention@model.attention.score=additive, concat, dot, "
                "scaled_dot or general)"
            )

    def keys(self, states: Tensor) -> Tensor:
        return self.score.keys(states)

    @abstractmethod
    def centre(self, query: Tensor, memory: Memory) -> Tensor:
        """p, (B, T)."""

    @abstractmethod
    def window_weights(self, local: LocalWindow, centre: Tensor) -> Tensor:
        """a, (B, T, W), from the softmax of the scores in the window."""

    def forward(self, query: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        centre = self.centre(query, memory)
        local = score_window(self.score, query, memory, centre, self.half_width)
        weights = self.window_weights(local, centre)
        context = torch.bmm(weights.flatten(0, 1)[:, None].to(local.states.dtype), local.states)
        at_positions = weights.new_zeros(*query.shape[:2], memory.mask.size(1)).scatter_add(2, local.positions, weights)
        return context.view(*query.shape[:2], -1), at_positions


class LocalM(LocalAttention):
    """p_t = t, and past the end of the source its last piece; a_t = softmax of the scores in the window."""

    def centre(self, query: Tensor, memory: Memory) -> Tensor:
        last = memory.mask.sum(dim=1, keepdim=True) - 1
        return torch.minimum(memory.steps, last).to(upcast(query).dtype)

    def window_weights(self, local: LocalWindow, centre: Tensor) -> Tensor:
        return local.weights


class LocalP(LocalAttention):
    """p = S sigma(v . tanh(W s)); a = softmax of the scores in the window x exp(-(s - p)^2 / 2 sigma^2), sigma = D / 2.

    As in the paper the product is not normalised again: its weights sum to less than 1.
    """

    def __init__(self, query_size: int, encoder_size: int, window: int, score: Callable[..., Attention]) -> None:
        super().__init__(query_size, encoder_size, window, score)
        self.W = nn.Linear(query_size, query_size, bias=False)
        self.v = nn.Parameter(torch.empty(query_size))
        nn.init.xavier_uniform_(self.W.weight)
        nn.init.uniform_(self.v, -(query_size**-0.5), query_size**-0.5)

    def centre(self, query: Tensor, memory: Memory) -> Tensor:
        length = memory.mask.sum(dim=1, keepdim=True)
        hidden = torch.tanh(upcast(self.W(query)))
        return length * torch.sigmoid((hidden * self.v).sum(dim=-1))  # no product: bfloat16 would miss by half a piece

    def window_weights(self, local: LocalWindow, centre: Tensor) -> Tensor:
        distance = (local.positions - centre[..., None]) / (self.half_width / 2)
        return local.weights * torch.exp(-distance.square() / 2)


def score_window(score: Attention, query: Tensor, memory: Memory, centre: Tensor, half_width: int) -> LocalWindow:
    """Weights by `score` of the positions within `half_width` of each centre (B, T), for queries (B, T, D)."""
    B, T, D = query.shape
    S = memory.mask.size(1)
    half_width = min(half_width, S)  # which reaches both ends from anywhere
    window = torch.ceil(centre.detach() - half_width)[..., None] + torch.arange(
        2 * half_width + 1, device=centre.device
    )
    inside = (window <= centre[..., None] + half_width) & (window >= 0) & (window < S)
    positions = window.clamp(0, S - 1).long()
    flat = positions.flatten(1)
    inside &= memory.mask.gather(1, flat).view_as(positions)
    local_memory = memory._replace(
        states=gather_positions(memory.states, flat).view(B * T, -1, memory.states.size(2)),
        keys=gather_positions(memory.keys, flat).view(B * T, 2 * half_width + 1, memory.keys.size(2)),
        mask=inside.flatten(0, 1),
        steps=memory.steps.reshape(B * T, 1),
    )
    _, weights = score(query.reshape(B * T, 1, D), local_memory)
    return LocalWindow(local_memory.states, positions, weights.view(B, T, -1))
