"""Local attention: only a window of the source is scored      arXiv:1508.04025, 3.2.

Each target step has a centre p. The pieces s with |s - p| <= D, both counted from 0, are gathered into a small
memory, which any content-based scorer attends to; so the cost grows with D and not with the sentence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt.errors import ModelError
from nmt.models.attention import Attention, Memory
from nmt.models.ops import upcast
from nmt.models.rnn import gather_positions


class LocalM(Attention):
    """p_t = t, and past the end of the source its last piece; a_t = softmax of the scores in the window."""

    is_positional = True

    def __init__(self, query_size: int, encoder_size: int, window: int, score: Callable[..., Attention]) -> None:
        super().__init__()
        self.half_width = window
        self.score = content_scorer(score, query_size, encoder_size, window)
        self.context_size = encoder_size

    def keys(self, states: Tensor) -> Tensor:
        return self.score.keys(states)

    def centre(self, query: Tensor, memory: Memory) -> Tensor:
        """p, (B, T)."""
        last = memory.mask.sum(dim=1, keepdim=True) - 1
        return torch.minimum(memory.steps, last).to(upcast(query).dtype)

    def forward(self, query: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        local = score_window(self.score, query, memory, self.centre(query, memory), self.half_width)
        return local.context(local.weights), local.scatter_to_source(local.weights, memory)


class LocalP(Attention):
    """p = S sigma(v . tanh(W s)); a = softmax of the scores in the window x exp(-(s - p)^2 / 2 sigma^2), sigma = D / 2.

    As in the paper the product is not normalised again: its weights sum to less than 1.
    """

    is_positional = True

    def __init__(self, query_size: int, encoder_size: int, window: int, score: Callable[..., Attention]) -> None:
        super().__init__()
        self.half_width = window
        self.score = content_scorer(score, query_size, encoder_size, window)
        self.context_size = encoder_size
        self.W = nn.Linear(query_size, query_size, bias=False)
        self.v = nn.Parameter(torch.empty(query_size))
        nn.init.xavier_uniform_(self.W.weight)
        nn.init.uniform_(self.v, -(query_size**-0.5), query_size**-0.5)

    def keys(self, states: Tensor) -> Tensor:
        return self.score.keys(states)

    def centre(self, query: Tensor, memory: Memory) -> Tensor:
        """p, (B, T)."""
        length = memory.mask.sum(dim=1, keepdim=True)
        hidden = torch.tanh(upcast(self.W(query)))
        return length * torch.sigmoid((hidden * self.v).sum(dim=-1))  # no product: bfloat16 would miss by half a piece

    def forward(self, query: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        centre = self.centre(query, memory)
        local = score_window(self.score, query, memory, centre, self.half_width)
        distance = (local.positions - centre[..., None]) / (self.half_width / 2)
        weights = local.weights * torch.exp(-distance.square() / 2)
        return local.context(weights), local.scatter_to_source(weights, memory)


class LocalWindow(NamedTuple):
    """The W = 2 D + 1 positions around each centre and their weights; 0 for positions outside the sentence."""

    states: Tensor  # (B T, W, E)
    positions: Tensor  # (B, T, W)
    weights: Tensor  # (B, T, W)

    def context(self, weights: Tensor) -> Tensor:
        """(B, T, W) -> (B, T, E)."""
        context = torch.bmm(weights.flatten(0, 1)[:, None].to(self.states.dtype), self.states)
        return context.view(*weights.shape[:2], -1)

    def scatter_to_source(self, weights: Tensor, memory: Memory) -> Tensor:
        """(B, T, W) -> the same weights at their source positions, (B, T, S)."""
        B, T, _ = weights.shape
        return weights.new_zeros(B, T, memory.mask.size(1)).scatter_add(2, self.positions, weights)


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


def content_scorer(score: Callable[..., Attention], query_size: int, encoder_size: int, window: int) -> Attention:
    """The scorer inside a window; ConfigError for what compares no states."""
    scorer = score(query_size=query_size, encoder_size=encoder_size)
    if scorer.is_positional or not scorer.has_weights:
        raise ModelError(
            "a window needs a scorer that compares states (attention@model.attention.score=additive, concat, dot, "
            "scaled_dot or general)"
        )
    return scorer
