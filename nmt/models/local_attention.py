"""Local attention: only a window of the source is scored      arXiv:1508.04025, 3.2.

Each target step has a centre p. The pieces s with |s - p| <= D, both counted from 0, are gathered into a small
memory, which any content-based scorer attends to; so the cost grows with D and not with the sentence.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor, nn

from nmt.errors import ModelError
from nmt.models.attention import Attention, Memory
from nmt.models.ops import upcast
from nmt.models.rnn import gather_positions


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

    def reweight(self, weights: Tensor, offsets: Tensor) -> Tensor:
        """a from the softmax of the scores in the window: weights and s - p, each (B, T, W) -> (B, T, W)."""
        return weights

    def forward(self, query: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        B, T, D = query.shape
        S = memory.mask.size(1)
        half_width = min(self.half_width, S)  # which reaches both ends from anywhere
        centre = self.centre(query, memory)[..., None]
        first = torch.ceil(centre.detach() - half_width)
        window = first + torch.arange(2 * half_width + 1, device=centre.device)  # (B, T, W)
        positions = window.clamp(0, S - 1).long()
        flat = positions.flatten(1)
        inside = (window <= centre + half_width) & (window >= 0) & (window < S)
        inside &= memory.mask.gather(1, flat).view_as(positions)

        local_memory = memory._replace(
            states=gather_positions(memory.states, flat).view(B * T, -1, memory.states.size(2)),
            keys=gather_positions(memory.keys, flat).view(B * T, 2 * half_width + 1, memory.keys.size(2)),
            mask=inside.flatten(0, 1),
            steps=memory.steps.reshape(B * T, 1),
        )
        _, weights = self.score(query.reshape(B * T, 1, D), local_memory)
        weights = self.reweight(weights.view(B, T, -1), positions - centre)
        context = torch.bmm(weights.flatten(0, 1)[:, None].to(memory.states.dtype), local_memory.states)
        return context.view(B, T, -1), weights.new_zeros(B, T, S).scatter_add(2, positions, weights)


class LocalM(LocalAttention):
    """p_t = t, and past the end of the source its last piece; a_t = softmax of the scores in the window."""

    def centre(self, query: Tensor, memory: Memory) -> Tensor:
        last = memory.mask.sum(dim=1, keepdim=True) - 1
        return torch.minimum(memory.steps, last).to(upcast(query).dtype)


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

    def reweight(self, weights: Tensor, offsets: Tensor) -> Tensor:
        distance = offsets / (self.half_width / 2)
        return weights * torch.exp(-distance.square() / 2)
