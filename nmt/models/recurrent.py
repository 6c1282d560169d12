"""The two recurrent systems. They differ in when they look: Bahdanau before the cell, Luong after it.

Everything that does not wait for the recurrence is done for all target steps at once: what the cell reads of the
target embeddings, the readout, the projection, and (without input feeding) Luong's attention.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt.models.attention import Attention, Memory
from nmt.models.cells import Cell, Stack, StackState, cell_class, further_input, top
from nmt.models.dropout import dropout
from nmt.models.encoder import Encoder
from nmt.models.precision import wide
from nmt.models.seq2seq import Seq2Seq, vocabulary


class Bahdanau(Seq2Seq):
    """RNNsearch      arXiv:1409.0473, A.2; with `FixedContext` it is RNNencdec, arXiv:1406.1078.

        s_0 = tanh(W_s backward_h_1)
        c_i = attention(s_(i-1), h)
        s_i = cell([y_(i-1) ; c_i], s_(i-1))
        t_i = maxout(U_o s_i + V_o y_(i-1) + C_o c_i),    p(y_i) = softmax(W_o t_i)

    s_i in the readout is equation 4 of the paper (its appendix writes s_(i-1)). In a stack of layers the top one
    asks and answers. encoder_size is each reading direction's; the readout is as wide as the embeddings.
    """

    def __init__(
        self,
        src_vocab_size: int,
        tgt_vocab_size: int,
        pad_id: int,
        *,
        embedding_size: int,
        encoder_size: int,
        hidden_size: int,
        layers: int,
        cell: str,
        bidirectional: bool,
        dropout: float,
        tie_embeddings: str,
        attention: Callable[..., Attention],
    ) -> None:
        super().__init__()
        self.pad_id = pad_id
        self.dropout = dropout
        self.source, self.target, self.output = vocabulary(
            src_vocab_size, tgt_vocab_size, embedding_size, pad_id, tie_embeddings
        )
        kind = cell_class(cell)
        self.encoder = Encoder(embedding_size, encoder_size, layers, cell, bidirectional, dropout)
        self.attention = attention(query_size=hidden_size, encoder_size=self.encoder.output_size)
        context_size = self.attention.context_size
        # without any context the decoder has nothing but its start: then from both directions
        self.start_size = encoder_size if context_size else self.encoder.output_size
        self.bridge = Bridge(self.start_size, kind, hidden_size, layers)
        self.cells = Stack(kind, embedding_size, hidden_size, layers, dropout)
        self.C = further_input(context_size, kind, hidden_size)
        self.readout = Maxout(hidden_size + context_size + embedding_size, embedding_size)

    def encode(self, src: Tensor) -> Memory:
        mask = src != self.pad_id
        states, summary, _ = self.encoder(self.source(src), mask)
        return Memory(states, self.attention.keys(states), summary, mask)

    def start(self, memory: Memory) -> StackState:
        return self.bridge(memory.summary[:, -self.start_size :])

    def advance(self, read: Tensor, state: StackState, memory: Memory) -> tuple[Tensor, StackState, Tensor]:
        """Look, then step: the projected embedding (B, gates * H) -> context, next state, weights."""
        context, weights = self.attention(top(state)[:, None], memory)
        state = self.cells(read + self.C(context.squeeze(1)), state)
        return context, state, weights

    def teach(self, src: Tensor, tgt_in: Tensor) -> tuple[Tensor, Tensor]:
        """Features (B, T, R) and weights (B, T, S) of given targets."""
        memory = self.encode(src)
        state = self.start(memory)
        previous = dropout(self.target(tgt_in), self.dropout, self.training)
        steps = []
        for read in self.cells.project(previous).unbind(dim=1):
            context, state, weights = self.advance(read, state, memory)
            steps.append((top(state), context, weights))
        tops, contexts, looks = zip(*steps, strict=True)
        features = self.readout(torch.stack(tops, dim=1), torch.cat(contexts, dim=1), previous)
        return dropout(features, self.dropout, self.training), torch.cat(looks, dim=1)

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        return self.teach(src, tgt_in)[0]

    def project(self, features: Tensor) -> Tensor:
        return self.output(features)

    def step(self, token: Tensor, state: StackState, memory: Memory) -> tuple[Tensor, StackState]:
        previous = self.target(token)
        context, state, _ = self.advance(self.cells.project(previous), state, memory)
        return self.output(self.readout(top(state), context.squeeze(1), previous)), state

    def weights(self, src: Tensor, tgt_in: Tensor) -> Tensor | None:
        return self.teach(src, tgt_in)[1][:, None, None] if self.attention.looks else None


class LuongState(NamedTuple):
    """The cells' states and what is fed back: the last attentional vector, or nothing (B, 0)."""

    hidden: StackState
    fed: Tensor


class Luong(Seq2Seq):
    """Global attention, with or without input feeding      arXiv:1508.04025, 3.1 and 3.3.

        h_t  = cell([y_(t-1) ; h~_(t-1)], h_(t-1))           (without feeding: y_(t-1) alone)
        c_t  = attention(h_t, source states)
        h~_t = tanh(W_c [c_t ; h_t]),    p(y_t) = softmax(W_s h~_t)

    The decoder starts from the encoder's last states through a learned bridge, so that it may differ from the
    encoder in size and directions. encoder_size is each direction's; h~ is as wide as the embeddings.
    """

    def __init__(
        self,
        src_vocab_size: int,
        tgt_vocab_size: int,
        pad_id: int,
        *,
        embedding_size: int,
        encoder_size: int,
        hidden_size: int,
        layers: int,
        cell: str,
        bidirectional: bool,
        input_feeding: bool,
        dropout: float,
        tie_embeddings: str,
        attention: Callable[..., Attention],
    ) -> None:
        super().__init__()
        self.pad_id = pad_id
        self.dropout = dropout
        self.input_feeding = input_feeding
        self.source, self.target, self.output = vocabulary(
            src_vocab_size, tgt_vocab_size, embedding_size, pad_id, tie_embeddings
        )
        kind = cell_class(cell)
        self.encoder = Encoder(embedding_size, encoder_size, layers, cell, bidirectional, dropout)
        self.attention = attention(query_size=hidden_size, encoder_size=self.encoder.output_size)
        self.bridge = Bridge(self.encoder.output_size, kind, hidden_size, layers)
        self.cells = Stack(kind, embedding_size, hidden_size, layers, dropout)
        self.fed_size = embedding_size if input_feeding else 0
        self.feed = further_input(self.fed_size, kind, hidden_size)
        self.combine = nn.Linear(self.attention.context_size + hidden_size, embedding_size, bias=False)
        nn.init.xavier_uniform_(self.combine.weight)

    def encode(self, src: Tensor) -> Memory:
        mask = src != self.pad_id
        states, summary, _ = self.encoder(self.source(src), mask)
        return Memory(states, self.attention.keys(states), summary, mask)

    def start(self, memory: Memory) -> LuongState:
        hidden = self.bridge(memory.summary)
        return LuongState(hidden, top(hidden).new_zeros(len(memory.mask), self.fed_size))

    def look(self, hidden: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        """Outputs of the cells (B, T, H) -> attentional vectors h~ (B, T, R) and weights (B, T, S)."""
        context, weights = self.attention(hidden, memory)
        return torch.tanh(self.combine(torch.cat([context, hidden], dim=-1))), weights

    def advance(self, read: Tensor, state: LuongState, memory: Memory) -> tuple[Tensor, LuongState, Tensor]:
        """Step, then look: the projected embedding (B, gates * H) -> h~ (B, 1, R), next state, weights."""
        hidden = self.cells(read + self.feed(state.fed), state.hidden)
        attentional, weights = self.look(top(hidden)[:, None], memory)
        return attentional, LuongState(hidden, attentional.squeeze(1)[:, : self.fed_size]), weights

    def teach(self, src: Tensor, tgt_in: Tensor) -> tuple[Tensor, Tensor]:
        """Features (B, T, R) and weights (B, T, S) of given targets."""
        memory = self.encode(src)
        state = self.start(memory)
        previous = dropout(self.target(tgt_in), self.dropout, self.training)
        reads = self.cells.project(previous).unbind(dim=1)
        attentional, weights = (self.fed if self.input_feeding else self.unfed)(reads, state, memory)
        return dropout(attentional, self.dropout, self.training), weights

    def fed(self, reads: tuple[Tensor, ...], state: LuongState, memory: Memory) -> tuple[Tensor, Tensor]:
        """Each look waits for the one before."""
        steps = []
        for read in reads:
            attentional, state, weights = self.advance(read, state, memory)
            steps.append((attentional, weights))
        attentionals, looks = zip(*steps, strict=True)
        return torch.cat(attentionals, dim=1), torch.cat(looks, dim=1)

    def unfed(self, reads: tuple[Tensor, ...], state: LuongState, memory: Memory) -> tuple[Tensor, Tensor]:
        """The cells run through the sentence alone; then all steps look at once."""
        hidden, tops = state.hidden, []
        for read in reads:
            hidden = self.cells(read, hidden)
            tops.append(top(hidden))
        return self.look(torch.stack(tops, dim=1), memory)

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        return self.teach(src, tgt_in)[0]

    def project(self, features: Tensor) -> Tensor:
        return self.output(features)

    def step(self, token: Tensor, state: LuongState, memory: Memory) -> tuple[Tensor, LuongState]:
        attentional, state, _ = self.advance(self.cells.project(self.target(token)), state, memory)
        return self.output(attentional.squeeze(1)), state

    def weights(self, src: Tensor, tgt_in: Tensor) -> Tensor | None:
        return self.teach(src, tgt_in)[1][:, None, None] if self.attention.looks else None


class Bridge(nn.Module):
    """s_0 = tanh(W_s h), for each tensor of each layer of the decoder's state      arXiv:1409.0473, A.2.2."""

    def __init__(self, input_size: int, cell: type[Cell], size: int, layers: int) -> None:
        super().__init__()
        self.shape = (layers, cell.tensors, size)
        self.W = nn.Linear(input_size, layers * cell.tensors * size, bias=False)
        nn.init.xavier_uniform_(self.W.weight)

    def forward(self, summary: Tensor) -> StackState:
        started = torch.tanh(wide(self.W(summary))).unflatten(-1, self.shape)
        return tuple(tuple(layer.unbind(dim=1)) for layer in started.unbind(dim=1))


class Maxout(nn.Module):
    """t = max of pairs of W [s ; c ; y]      arXiv:1409.0473, A.2.2."""

    def __init__(self, input_size: int, size: int) -> None:
        super().__init__()
        self.W = nn.Linear(input_size, 2 * size)
        nn.init.xavier_uniform_(self.W.weight)
        nn.init.zeros_(self.W.bias)

    def forward(self, state: Tensor, context: Tensor, previous: Tensor) -> Tensor:
        return torch.maximum(*self.W(torch.cat([state, context, previous], dim=-1)).chunk(2, dim=-1))
