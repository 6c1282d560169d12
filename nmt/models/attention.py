"""Where a recurrent decoder looks: scorers, and the controls that look nowhere.

A scorer turns the encoder states into keys once a sentence; then each query gives a context. Queries are
(B, T, D): T is 1 inside a recurrence and the whole sentence where the decoder does not feed its look back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt.errors import ConfigError, UserError, require_whole
from nmt.models.additive import additive_scores
from nmt.models.cells import StackState
from nmt.models.precision import wide


class Memory(NamedTuple):
    """The encoded source batch; made once, read at every target step, which alone fills in `steps` anew."""

    states: Tensor  # (B, S, E)
    keys: Tensor  # (B, S, A) the states as the scorer wants them
    summary: Tensor  # (B, E) the whole sentence in one vector
    start: StackState  # the decoder's cells before the first target piece
    mask: Tensor  # (B, S) True where a piece is real
    steps: Tensor  # (B, T) which target steps the queries are of; the first is 0


class Attention(nn.Module, ABC):
    """Built by the decoder as Attention(query_size=D, encoder_size=E); further settings come from its YAML."""

    context_size: int  # width of the context it gives
    looks: bool = True  # False where there are no weights to show
    fixed_size: bool = False  # True where the decoder gets one vector of the sentence, however long that is
    is_summary: bool = False  # True where that vector is the encoder's summary
    by_place: bool = False  # True where a weight depends on where a piece stands

    @abstractmethod
    def keys(self, states: Tensor) -> Tensor:
        """Encoder states (B, S, E) -> what is compared with queries, (B, S, A)."""

    @abstractmethod
    def forward(self, query: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        """Queries (B, T, D) -> contexts (B, T, context_size) and weights (B, T, S)."""


def look(scores: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
    """Scores (B, T, S) -> context = sum_s w_s h_s, (B, T, E), and w = softmax(scores) over real pieces, (B, T, S).

    A row without a real piece gives zeros: the lowest finite number, not -inf, goes in before the softmax.
    """
    padding = ~memory.mask[:, None, :]
    scores = wide(scores)
    weights = scores.masked_fill(padding, torch.finfo(scores.dtype).min).softmax(dim=-1).masked_fill(padding, 0.0)
    return torch.bmm(weights.to(memory.states.dtype), memory.states), weights


class Additive(Attention):
    """score(s, h) = v . tanh(W s + U h)      arXiv:1409.0473, A.1.2.

    The plain form of Luong's concat, v . tanh(W [s; h]), is the same function: W and U are its two halves.
    """

    def __init__(self, query_size: int, encoder_size: int, size: int) -> None:
        super().__init__()
        self.context_size = encoder_size
        self.W = nn.Linear(query_size, size, bias=False)
        self.U = nn.Linear(encoder_size, size, bias=False)
        self.v = nn.Parameter(torch.empty(size))
        nn.init.xavier_uniform_(self.W.weight)
        nn.init.xavier_uniform_(self.U.weight)
        nn.init.uniform_(self.v, -(size**-0.5), size**-0.5)

    def keys(self, states: Tensor) -> Tensor:
        return wide(self.U(states))  # scores are made in float32: the CPU's sigmoid is fastest there

    def forward(self, query: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        return look(additive_scores(wide(self.W(query)), memory.keys, self.v), memory)


class Dot(Attention):
    """score(s, h) = s . h      arXiv:1508.04025, 3.1."""

    def __init__(self, query_size: int, encoder_size: int) -> None:
        super().__init__()
        demand_equal("dot", query_size, encoder_size)
        self.context_size = encoder_size

    def keys(self, states: Tensor) -> Tensor:
        return states

    def forward(self, query: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        return look(torch.bmm(query.to(memory.keys.dtype), memory.keys.mT), memory)


class ScaledDot(Attention):
    """score(s, h) = s . h / sqrt(D)      arXiv:1706.03762, 3.2.1."""

    def __init__(self, query_size: int, encoder_size: int) -> None:
        super().__init__()
        demand_equal("scaled_dot", query_size, encoder_size)
        self.context_size = encoder_size
        self.scale = query_size**-0.5

    def keys(self, states: Tensor) -> Tensor:
        return states

    def forward(self, query: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        return look(torch.bmm((self.scale * query).to(memory.keys.dtype), memory.keys.mT), memory)


class General(Attention):
    """score(s, h) = s . W h      arXiv:1508.04025, 3.1."""

    def __init__(self, query_size: int, encoder_size: int) -> None:
        super().__init__()
        self.context_size = encoder_size
        self.W = nn.Linear(encoder_size, query_size, bias=False)
        nn.init.xavier_uniform_(self.W.weight)

    def keys(self, states: Tensor) -> Tensor:
        return self.W(states)

    def forward(self, query: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        return look(torch.bmm(query.to(memory.keys.dtype), memory.keys.mT), memory)


class Location(Attention):
    """a = softmax(W s): a weight for each place, whatever stands there      arXiv:1508.04025, 3.1."""

    by_place = True

    def __init__(self, query_size: int, encoder_size: int, max_pieces: int) -> None:
        super().__init__()
        require_whole("model.attention.max_pieces", max_pieces)
        self.context_size = encoder_size
        self.places = max_pieces + 1  # and the end of the sentence
        self.W = nn.Linear(query_size, self.places, bias=False)
        nn.init.xavier_uniform_(self.W.weight)

    def keys(self, states: Tensor) -> Tensor:
        return states[..., :0]

    def forward(self, query: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        beyond = memory.mask.size(1) - self.places  # columns that have no weight: padding, or too long a sentence
        if beyond > 0 and memory.mask[:, self.places :].any():
            raise UserError(
                f"attention=location has weights for {self.places - 1} source pieces, and a sentence here has "
                f"{int(memory.mask.sum(dim=1).max()) - 1}: train with a larger model.attention.max_pieces, "
                f"or translate with max_src_pieces={self.places - 1}"
            )
        scores = self.W(query)
        scores = nn.functional.pad(scores, (0, beyond)) if beyond > 0 else scores[..., : memory.mask.size(1)]
        return look(scores, memory)


class FixedContext(Attention):
    """No attention: the same summary at every step. This is the bottleneck under study (arXiv:1406.1078)."""

    looks = False
    fixed_size = True
    is_summary = True

    def __init__(self, query_size: int, encoder_size: int) -> None:
        super().__init__()
        self.context_size = encoder_size

    def keys(self, states: Tensor) -> Tensor:
        return states[..., :0]

    def forward(self, query: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        nowhere = memory.mask.new_zeros(1, 1, 1, dtype=torch.float32).expand(*query.shape[:2], memory.mask.size(1))
        return memory.summary[:, None].expand(-1, query.size(1), -1), nowhere


class InitialStateOnly(Attention):
    """No attention and no context: the summary only starts the decoder (arXiv:1409.3215)."""

    looks = False
    fixed_size = True
    context_size = 0

    def __init__(self, query_size: int, encoder_size: int) -> None:
        super().__init__()

    def keys(self, states: Tensor) -> Tensor:
        return states[..., :0]

    def forward(self, query: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        nowhere = memory.mask.new_zeros(1, 1, 1, dtype=torch.float32).expand(*query.shape[:2], memory.mask.size(1))
        return query[..., :0], nowhere


def demand_equal(name: str, query_size: int, encoder_size: int) -> None:
    """A dot product needs two vectors of one length."""
    if query_size != encoder_size:
        raise ConfigError(
            f"attention={name} compares decoder states of {query_size} numbers with encoder states of {encoder_size}: "
            "make them equal (model.hidden_size = 2 x model.encoder_size if bidirectional) or use attention=general"
        )
