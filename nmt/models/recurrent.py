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
from nmt.models.bridge import bridge_class, carried, demand_fit, remember
from nmt.models.cells import Stack, StackState, cell_class, further_input, top
from nmt.models.dropout import dropout
from nmt.models.encoder import Encoder
from nmt.models.initial import set_initial
from nmt.models.seq2seq import Carried, Seq2Seq, vocabulary


class BahdanauState(NamedTuple):
    """What one target step hands the next."""

    hidden: StackState
    steps: Tensor  # (B, 1) which target step comes next


class Bahdanau(Seq2Seq):
    """RNNsearch      arXiv:1409.0473, A.2; with `FixedContext` it is RNNencdec, arXiv:1406.1078.

        s_0 = tanh(W_s backward_h_1)
        c_i = attention(s_(i-1), h)
        s_i = cell([y_(i-1) ; c_i], s_(i-1))
        t_i = maxout(U_o s_i + V_o y_(i-1) + C_o c_i),    p(y_i) = softmax(W_o t_i)

    s_i in the readout is equation 4 of the paper (its appendix writes s_(i-1)). In a stack of layers the top one
    asks and answers. encoder_size is each reading direction's. context_in_readout=False leaves C_o c_i out.
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
        reverse_source: bool,
        summary: str,
        bridge: str,
        context_in_readout: bool,
        readout_size: int | None,
        dropout: float,
        tie_embeddings: str,
        init: str,
        init_range: float,
        attention: Callable[..., Attention],
    ) -> None:
        super().__init__()
        self.pad_id = pad_id
        self.dropout = dropout
        readout_size = readout_size or embedding_size
        self.source, self.target, self.output = vocabulary(
            src_vocab_size, tgt_vocab_size, embedding_size, pad_id, tie_embeddings, readout_size
        )
        kind, carry = cell_class(cell), bridge_class(bridge)
        self.encoder = Encoder(
            embedding_size, encoder_size, layers, cell, bidirectional, dropout,
            reverse_source=reverse_source, summary=summary, keep_last=carry.wants_last,
        )  # fmt: skip
        self.attention = attention(query_size=hidden_size, encoder_size=self.encoder.output_size)
        demand_fit(self.encoder, self.attention, hidden_size)
        context_size = self.attention.context_size
        # without any context the decoder has nothing but its start: then from both directions
        self.bridge = carry(encoder_size if context_size else self.encoder.summary_size, kind, hidden_size, layers)
        self.cells = Stack(kind, embedding_size, hidden_size, layers, dropout)
        self.C = further_input(context_size, kind, hidden_size)
        self.shown_size = context_size if context_in_readout else 0
        self.readout = Maxout(hidden_size + self.shown_size + embedding_size, readout_size)
        set_initial(self, init, init_range)

    def encode(self, src: Tensor) -> Memory:
        return remember(self.source(src), src != self.pad_id, self.encoder, self.attention, self.bridge)

    def start(self, memory: Memory) -> BahdanauState:
        return BahdanauState(memory.start, memory.steps)

    def advance(self, read: Tensor, state: BahdanauState, memory: Memory) -> tuple[Tensor, BahdanauState, Tensor]:
        """Look, then step: the projected embedding (B, gates * H) -> context, next state, weights."""
        context, weights = self.attention(top(state.hidden)[:, None], memory._replace(steps=state.steps))
        hidden = self.cells(read + self.C(context.squeeze(1)), state.hidden)
        return context, BahdanauState(hidden, state.steps + 1), weights

    def teach(self, src: Tensor, tgt_in: Tensor) -> tuple[Tensor, Tensor]:
        """Features (B, T, R) and weights (B, T, S) of given targets."""
        memory = self.encode(src)
        state = self.start(memory)
        previous = dropout(self.target(tgt_in), self.dropout, self.training)
        steps = []
        for read in self.cells.project(previous).unbind(dim=1):
            context, state, weights = self.advance(read, state, memory)
            steps.append((top(state.hidden), context[..., : self.shown_size], weights))
        tops, contexts, looks = zip(*steps, strict=True)
        features = self.readout(torch.stack(tops, dim=1), torch.cat(contexts, dim=1), previous)
        return dropout(features, self.dropout, self.training), torch.cat(looks, dim=1)

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        return self.teach(src, tgt_in)[0]

    def project(self, features: Tensor) -> Tensor:
        return self.output(features)

    def step(self, token: Tensor, state: BahdanauState, memory: Memory) -> tuple[Tensor, BahdanauState]:
        previous = self.target(token)
        context, state, _ = self.advance(self.cells.project(previous), state, memory)
        return self.output(self.readout(top(state.hidden), context[:, 0, : self.shown_size], previous)), state

    def weights(self, src: Tensor, tgt_in: Tensor) -> Tensor | None:
        return self.teach(src, tgt_in)[1][:, None, None] if self.attention.looks else None

    def carried(self) -> Carried:
        return carried(self.encoder, self.attention, self.bridge)


class LuongState(NamedTuple):
    """What one target step hands the next."""

    hidden: StackState
    fed: Tensor  # (B, R) the last attentional vector; (B, 0) without feeding
    steps: Tensor  # (B, 1) which target step comes next


class Luong(Seq2Seq):
    """Attention after the cell, with or without input feeding      arXiv:1508.04025, 3.1 and 3.3.

        h_t  = cell([y_(t-1) ; h~_(t-1)], h_(t-1))           (without feeding: y_(t-1) alone)
        c_t  = attention(h_t, source states)
        h~_t = tanh(W_c [c_t ; h_t]),    p(y_t) = softmax(W_s h~_t)

    The decoder starts from the summary through a learned bridge, so that it may differ from the encoder in size and
    directions; bridge=copy is the paper's. encoder_size is each direction's; h~ is as wide as the embeddings.
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
        reverse_source: bool,
        summary: str,
        bridge: str,
        input_feeding: bool,
        dropout: float,
        tie_embeddings: str,
        init: str,
        init_range: float,
        attention: Callable[..., Attention],
    ) -> None:
        super().__init__()
        self.pad_id = pad_id
        self.dropout = dropout
        self.input_feeding = input_feeding
        self.source, self.target, self.output = vocabulary(
            src_vocab_size, tgt_vocab_size, embedding_size, pad_id, tie_embeddings, embedding_size
        )
        kind, carry = cell_class(cell), bridge_class(bridge)
        self.encoder = Encoder(
            embedding_size, encoder_size, layers, cell, bidirectional, dropout,
            reverse_source=reverse_source, summary=summary, keep_last=carry.wants_last,
        )  # fmt: skip
        self.attention = attention(query_size=hidden_size, encoder_size=self.encoder.output_size)
        demand_fit(self.encoder, self.attention, hidden_size)
        self.bridge = carry(self.encoder.summary_size, kind, hidden_size, layers)
        self.cells = Stack(kind, embedding_size, hidden_size, layers, dropout)
        self.fed_size = embedding_size if input_feeding else 0
        self.feed = further_input(self.fed_size, kind, hidden_size)
        self.combine = nn.Linear(self.attention.context_size + hidden_size, embedding_size, bias=False)
        nn.init.xavier_uniform_(self.combine.weight)
        set_initial(self, init, init_range)

    def encode(self, src: Tensor) -> Memory:
        return remember(self.source(src), src != self.pad_id, self.encoder, self.attention, self.bridge)

    def start(self, memory: Memory) -> LuongState:
        fed = top(memory.start).new_zeros(len(memory.mask), self.fed_size)
        return LuongState(memory.start, fed, memory.steps)

    def look(self, hidden: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        """Outputs of the cells (B, T, H) -> attentional vectors h~ (B, T, R) and weights (B, T, S)."""
        context, weights = self.attention(hidden, memory)
        return torch.tanh(self.combine(torch.cat([context, hidden], dim=-1))), weights

    def advance(self, read: Tensor, state: LuongState, memory: Memory) -> tuple[Tensor, LuongState, Tensor]:
        """Step, then look: the projected embedding (B, gates * H) -> h~ (B, 1, R), next state, weights."""
        hidden = self.cells(read + self.feed(state.fed), state.hidden)
        attentional, weights = self.look(top(hidden)[:, None], memory._replace(steps=state.steps))
        return attentional, LuongState(hidden, attentional[:, 0, : self.fed_size], state.steps + 1), weights

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
        steps = torch.arange(len(reads), device=state.steps.device)
        return self.look(torch.stack(tops, dim=1), memory._replace(steps=state.steps + steps))

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        return self.teach(src, tgt_in)[0]

    def project(self, features: Tensor) -> Tensor:
        return self.output(features)

    def step(self, token: Tensor, state: LuongState, memory: Memory) -> tuple[Tensor, LuongState]:
        attentional, state, _ = self.advance(self.cells.project(self.target(token)), state, memory)
        return self.output(attentional.squeeze(1)), state

    def weights(self, src: Tensor, tgt_in: Tensor) -> Tensor | None:
        return self.teach(src, tgt_in)[1][:, None, None] if self.attention.looks else None

    def carried(self) -> Carried:
        return carried(self.encoder, self.attention, self.bridge)


class Maxout(nn.Module):
    """t = max of pairs of W [s ; c ; y]      arXiv:1409.0473, A.2.2."""

    def __init__(self, input_size: int, size: int) -> None:
        super().__init__()
        self.W = nn.Linear(input_size, 2 * size)
        nn.init.xavier_uniform_(self.W.weight)
        nn.init.zeros_(self.W.bias)

    def forward(self, state: Tensor, context: Tensor, previous: Tensor) -> Tensor:
        return torch.maximum(*self.W(torch.cat([state, context, previous], dim=-1)).chunk(2, dim=-1))
