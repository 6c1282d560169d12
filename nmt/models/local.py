"""Local attention: a window of the source is scored, and the rest is not looked at      arXiv:1508.04025, 3.2.

Each target step has a centre p. The pieces s with |s - p| <= D, both counted from 0, are gathered into a small
memory, and any scorer of contents looks at that; so its cost grows with D and not with the sentence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt.errors import ConfigError, require_whole
from nmt.models.attention import Attention, Memory
from nmt.models.encoder import pick
from nmt.models.precision import wide


class LocalM(Attention):
    """p_t = t, and past the end of the source its last piece; a_t = softmax of the scores in the window."""

    by_place = True

    def __init__(self, query_size: int, encoder_size: int, window: int, score: Callable[..., Attention]) -> None:
        super().__init__()
        self.reach = window
        self.score = content_score(score, query_size, encoder_size, window)
        self.context_size = encoder_size

    def keys(self, states: Tensor) -> Tensor:
        return self.score.keys(states)

    def centre(self, query: Tensor, memory: Memory) -> Tensor:
        """p, (B, T)."""
        last = memory.mask.sum(dim=1, keepdim=True) - 1
        return torch.minimum(memory.steps, last).to(wide(query).dtype)

    def forward(self, query: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        near = look_near(self.score, query, memory, self.centre(query, memory), self.reach)
        return near.context(near.weights), near.spread(near.weights, memory)


class LocalP(Attention):
    """p = S sigma(v . tanh(W s)); a = softmax of the scores in the window x exp(-(s - p)^2 / 2 sigma^2), sigma = D / 2.

    As in the paper the product is not normalised again: its weights sum to less than 1.
    """

    by_place = True

    def __init__(self, query_size: int, encoder_size: int, window: int, score: Callable[..., Attention]) -> None:
        super().__init__()
        self.reach = window
        self.score = content_score(score, query_size, encoder_size, window)
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
        hidden = torch.tanh(wide(self.W(query)))
        return length * torch.sigmoid((hidden * self.v).sum(dim=-1))  # no product: bfloat16 would miss by half a piece

    def forward(self, query: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        centre = self.centre(query, memory)
        near = look_near(self.score, query, memory, centre, self.reach)
        distance = (near.places - centre[..., None]) / (self.reach / 2)
        weights = near.weights * torch.exp(-distance.square() / 2)
        return near.context(weights), near.spread(weights, memory)


class Near(NamedTuple):
    """W = 2 D + 1 places for each query, and what the scorer gave them; weights of places that do not exist are 0."""

    states: Tensor  # (B T, W, E)
    places: Tensor  # (B, T, W)
    weights: Tensor  # (B, T, W)

    def context(self, weights: Tensor) -> Tensor:
        """(B, T, W) -> (B, T, E)."""
        found = torch.bmm(weights.flatten(0, 1)[:, None].to(self.states.dtype), self.states)
        return found.view(*weights.shape[:2], -1)

    def spread(self, weights: Tensor, memory: Memory) -> Tensor:
        """(B, T, W) -> the same weights where they belong in the sentence, (B, T, S)."""
        B, T, _ = weights.shape
        return weights.new_zeros(B, T, memory.mask.size(1)).scatter_add(2, self.places, weights)


def look_near(score: Attention, query: Tensor, memory: Memory, centre: Tensor, reach: int) -> Near:
    """What `score` makes of the pieces within `reach` of the centres (B, T), one query (B, T, D) for each."""
    B, T, D = query.shape
    S = memory.mask.size(1)
    window = torch.ceil(centre.detach() - reach)[..., None] + torch.arange(2 * reach + 1, device=centre.device)
    inside = (window <= centre[..., None] + reach) & (window >= 0) & (window < S)
    places = window.clamp(0, S - 1).long()
    flat = places.flatten(1)
    inside &= memory.mask.gather(1, flat).view_as(places)
    small = memory._replace(
        states=pick(memory.states, flat).view(B * T, -1, memory.states.size(2)),
        keys=pick(memory.keys, flat).view(B * T, 2 * reach + 1, memory.keys.size(2)),
        mask=inside.flatten(0, 1),
        steps=memory.steps.reshape(B * T, 1),
    )
    _, weights = score(query.reshape(B * T, 1, D), small)
    return Near(small.states, places, weights.view(B, T, -1))


def content_score(score: Callable[..., Attention], query_size: int, encoder_size: int, window: int) -> Attention:
    """The scorer inside a window; ConfigError for what compares no states."""
    require_whole("model.attention.window", window)
    made = score(query_size=query_size, encoder_size=encoder_size)
    if made.by_place or not made.looks:
        raise ConfigError(
            "a window needs a score that compares states: attention@model.attention.score=additive, concat, dot, "
            "scaled_dot or general"
        )
    return made
