"""Attention of the recurrent decoders: scorers, and the baselines without attention.

A scorer turns the encoder states into keys once a sentence; then each query gives a context. Queries are
(B, T, D): T is 1 inside a recurrence, and the whole sentence without input feeding. Shapes: see `seq2seq.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from nmt.errors import ModelError
from nmt.models.ops import upcast
from nmt.models.rnn import StackState


class Memory(NamedTuple):
    """The encoded source batch: computed once, read at every target step (which replaces `steps` alone)."""

    states: Tensor  # (B, S, E)
    keys: Tensor  # (B, S, A) the states as the scorer compares them
    summary: Tensor  # (B, E) the whole sentence in one vector
    initial_state: StackState  # the decoder's cells before the first target piece
    mask: Tensor  # (B, S) True where a piece is real
    steps: Tensor  # (B, T) the target steps of the queries; the first is 0


class Attention(nn.Module, ABC):
    """Built by the decoder as Attention(query_size=D, encoder_size=E); further settings come from its YAML."""

    context_size: int  # size of the context
    has_weights: bool = True  # False where there is no distribution over the source
    fixed_numbers: int | None = None  # numbers of the source that reach the decoder; None: they grow with the source
    is_summary: bool = False  # True where that vector is the encoder's summary
    is_positional: bool = False  # True where weights depend on positions

    def keys(self, states: Tensor) -> Tensor:
        """Encoder states (B, S, E) -> keys (B, S, A); A = 0 where a subclass compares no states."""
        return states[..., :0]

    @abstractmethod
    def forward(self, query: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        """Queries (B, T, D) -> contexts (B, T, context_size) and weights (B, T, S)."""


def attend_softmax(scores: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
    """Scores (B, T, S) -> context = sum_s w_s h_s, (B, T, E), and w = softmax(scores) over real pieces, (B, T, S).

    A row without a real piece gives zeros, not NaN: padding gets the lowest finite number, not -inf.
    """
    padding = ~memory.mask[:, None, :]
    scores = upcast(scores)
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
        return upcast(self.U(states))  # scores in float32, where the CPU's sigmoid is fastest

    def forward(self, query: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        return attend_softmax(additive_scores(upcast(self.W(query)), memory.keys, self.v), memory)


class Dot(Attention):
    """score(s, h) = s . h      arXiv:1508.04025, 3.1."""

    def __init__(self, query_size: int, encoder_size: int) -> None:
        super().__init__()
        check_equal_sizes("dot", query_size, encoder_size)
        self.context_size = encoder_size

    def keys(self, states: Tensor) -> Tensor:
        return states

    def forward(self, query: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        return attend_softmax(torch.bmm(query.to(memory.keys.dtype), memory.keys.mT), memory)


class ScaledDot(Attention):
    """score(s, h) = s . h / sqrt(D)      arXiv:1706.03762, 3.2.1."""

    def __init__(self, query_size: int, encoder_size: int) -> None:
        super().__init__()
        check_equal_sizes("scaled_dot", query_size, encoder_size)
        self.context_size = encoder_size
        self.scale = query_size**-0.5

    def keys(self, states: Tensor) -> Tensor:
        return states

    def forward(self, query: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        return attend_softmax(torch.bmm((self.scale * query).to(memory.keys.dtype), memory.keys.mT), memory)


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
        return attend_softmax(torch.bmm(query.to(memory.keys.dtype), memory.keys.mT), memory)


class Location(Attention):
    """a = softmax(W s): weights by source position, whatever the pieces      arXiv:1508.04025, 3.1."""

    is_positional = True

    def __init__(self, query_size: int, encoder_size: int, max_pieces: int) -> None:
        super().__init__()
        self.context_size = encoder_size
        self.num_positions = max_pieces + 1  # and </s>
        self.W = nn.Linear(query_size, self.num_positions, bias=False)
        nn.init.xavier_uniform_(self.W.weight)

    def forward(self, query: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        excess = memory.mask.size(1) - self.num_positions  # positions without a weight: padding, or too long a source
        if excess > 0 and memory.mask[:, self.num_positions :].any():
            raise ModelError(
                f"attention=location has weights for {self.num_positions - 1} source pieces, and a sentence here has "
                f"{int(memory.mask.sum(dim=1).max()) - 1}: train with a larger max_pieces=..., "
                f"or translate with max_src_pieces={self.num_positions - 1}"
            )
        scores = self.W(query)
        scores = nn.functional.pad(scores, (0, excess)) if excess > 0 else scores[..., : memory.mask.size(1)]
        return attend_softmax(scores, memory)


class FixedContext(Attention):
    """No attention: the same summary at every step. This is the bottleneck under study (arXiv:1406.1078)."""

    has_weights = False
    is_summary = True

    def __init__(self, query_size: int, encoder_size: int) -> None:
        super().__init__()
        self.context_size = self.fixed_numbers = encoder_size

    def forward(self, query: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        no_weights = memory.mask.new_zeros(1, 1, 1, dtype=torch.float32).expand(*query.shape[:2], memory.mask.size(1))
        return memory.summary[:, None].expand(-1, query.size(1), -1), no_weights


class InitialStateOnly(Attention):
    """No attention and no context: the summary only starts the decoder (arXiv:1409.3215)."""

    has_weights = False
    fixed_numbers = 0
    context_size = 0

    def __init__(self, query_size: int, encoder_size: int) -> None:
        super().__init__()

    def forward(self, query: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        no_weights = memory.mask.new_zeros(1, 1, 1, dtype=torch.float32).expand(*query.shape[:2], memory.mask.size(1))
        return query[..., :0], no_weights


def check_equal_sizes(name: str, query_size: int, encoder_size: int) -> None:
    """A dot product needs two vectors of one size."""
    if query_size != encoder_size:
        raise ModelError(
            f"attention={name} compares decoder states of size {query_size} with encoder states of {encoder_size}: "
            "make them equal (hidden_size = 2 x encoder_size if bidirectional) or use attention=general"
        )


def additive_scores_explicit(query: Tensor, keys: Tensor, v: Tensor) -> Tensor:
    """v . tanh(q_t + k_s) in plain operations: (B, T, A), (B, S, A), (A,) -> (B, T, S), by way of (B, T, S, A)."""
    return torch.tanh(query[:, :, None] + keys[:, None]) @ v


class AdditiveScores(torch.autograd.Function):
    """The same by tanh z = 2 sigma(2z) - 1, whose derivative is 4 sigma (1 - sigma); backward recomputes sigma.

    tanh over (B, S, A) would be the most expensive part of a Bahdanau step on a CPU; its sigmoid is six times faster.
    Faster than the composed operations, and no (B, T, S, A) is kept for backward.
    """

    @staticmethod
    def forward(ctx: Any, query: Tensor, keys: Tensor, v: Tensor) -> Tensor:
        ctx.save_for_backward(query, keys, v)
        with torch.autocast(query.device.type, enabled=False):
            columns = [sigmoid_of_twice(q, keys) @ v for q in query.unbind(1)]
            return 2 * torch.stack(columns, dim=1) - v.sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        query, keys, v = ctx.saved_tensors
        grad_queries, grad_keys, grad_v = [], torch.zeros(()), -grad.sum()
        with torch.autocast(query.device.type, enabled=False):
            for q, g in zip(query.unbind(1), grad.unsqueeze(-1).unbind(1), strict=True):  # (B, A), (B, S, 1)
                sigma = sigmoid_of_twice(q, keys)
                grad_v = grad_v + 2 * (g.flatten() @ sigma.flatten(0, 1))
                derivative = torch.addcmul(sigma, sigma, sigma, value=-1)  # sigma (1 - sigma), (B, S, A)
                grad_queries.append(torch.bmm(g.mT, derivative))
                grad_keys = derivative.mul_(g) if len(grad_queries) == 1 else grad_keys.add_(derivative.mul_(g))
            return torch.cat(grad_queries, dim=1) * (4 * v), grad_keys.mul_(4 * v), grad_v


additive_scores = AdditiveScores.apply


def sigmoid_of_twice(query: Tensor, keys: Tensor) -> Tensor:
    """sigma(2 (q + k_s)): (B, A), (B, S, A) -> (B, S, A)."""
    return torch.add(2 * query[:, None], keys, alpha=2).sigmoid_()
