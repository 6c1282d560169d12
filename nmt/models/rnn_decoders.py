"""The two recurrent systems: Bahdanau's decoder attends before its cell, Luong's after it.

Whatever does not depend on the recurrent state is computed for all target steps at once: the input part of the cell's
gates, the readout, the projection, and (without input feeding) Luong's attention. Shapes: see `seq2seq.py`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from nmt.errors import ModelError
from nmt.models.attention import Additive, Attention, Memory
from nmt.models.ops import dropout, upcast
from nmt.models.rnn import CELLS, Cell, CellStack, Encoder, EncoderOutput, StackState, top_output
from nmt.models.seq2seq import BottleneckSize, Seq2Seq, embedding_tables


class RecurrentSeq2Seq(Seq2Seq):
    """What both systems share: embeddings, encoder, attention, bridge, and a stack of decoder cells.

    encoder_size is that of each encoder direction. The top layer of the decoder queries the attention.
    """

    bridge_reads_backward: bool = False  # alone, unless nothing else of the source reaches the decoder

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
        dropout: float,
        tie_embeddings: str,
        readout_size: int,
        attention: Callable[..., Attention],
    ) -> None:
        super().__init__()
        self.pad_id = pad_id
        self.dropout = dropout
        self.source_embedding, self.target_embedding, self.output_layer = embedding_tables(
            src_vocab_size, tgt_vocab_size, embedding_size, pad_id, tie_embeddings, readout_size
        )
        self.encoder = Encoder(
            embedding_size, encoder_size, layers, cell, bidirectional, dropout,
            reverse_source=reverse_source, summary=summary, keep_final_states=bridge == "copy",
        )  # fmt: skip
        self.attention = attention(query_size=hidden_size, encoder_size=self.encoder.output_size)
        check_sizes(self.encoder, self.attention, hidden_size)
        backward_alone = self.bridge_reads_backward and self.attention.context_size
        self.bridge_size = encoder_size if backward_alone else self.encoder.summary_size
        self.bridge: nn.Module = CopyBridge()
        if bridge == "learned":
            self.bridge = LearnedBridge(self.bridge_size, CELLS[cell], hidden_size, layers)
        self.decoder = CellStack(CELLS[cell], embedding_size, hidden_size, layers, dropout)

    def encode(self, src: Tensor) -> Memory:
        mask = src != self.pad_id
        encoded = self.encoder(self.source_embedding(src), mask)
        first_step = mask.new_zeros(len(mask), 1, dtype=torch.int64)
        keys = self.attention.keys(encoded.states)
        return Memory(encoded.states, keys, encoded.summary, self.bridge(encoded), mask, first_step)

    @abstractmethod
    def teacher_force(self, src: Tensor, tgt_in: Tensor) -> tuple[Tensor, Tensor]:
        """(B, S) and (B, T) ids -> features (B, T, R) and attention weights (B, T, S) of given targets."""

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        return self.teacher_force(src, tgt_in)[0]

    def project(self, features: Tensor) -> Tensor:
        return self.output_layer(features)

    def weights(self, src: Tensor, tgt_in: Tensor) -> Tensor | None:
        return self.teacher_force(src, tgt_in)[1][:, None, None] if self.attention.has_weights else None

    def bottleneck_size(self) -> BottleneckSize:
        """The encoder states where attention reads them, else vectors of a fixed size."""
        encoder, copies = self.encoder, self.encoder.keep_final_states
        initial = encoder.final_state_size if copies else self.bridge_size
        if self.attention.fixed_numbers is None:  # a learned initial state is computed from them too
            return BottleneckSize(max(0, initial - encoder.output_size) if copies else 0, encoder.output_size)
        # the initial state is computed from a part of the summary, or the summary is one of the copied states
        is_shared = self.attention.is_summary and (encoder.summary.startswith("last") or not copies)
        sizes = (initial, self.attention.fixed_numbers)
        return BottleneckSize(max(sizes) if is_shared else sum(sizes), 0)


class BahdanauState(NamedTuple):
    """The decoder's state between target steps."""

    hidden: StackState
    steps: Tensor  # (B, 1) the next target step


class Bahdanau(RecurrentSeq2Seq):
    """RNNsearch      arXiv:1409.0473, A.2; with `FixedContext` it is RNNencdec, arXiv:1406.1078.

        s_0 = tanh(W_s backward_h_1)
        c_i = attention(s_(i-1), h)
        s_i = cell([y_(i-1) ; c_i], s_(i-1))
        t_i = maxout(U_o s_i + V_o y_(i-1) + C_o c_i),    p(y_i) = softmax(W_o t_i)

    s_i in the readout is equation 4 of the paper (its appendix writes s_(i-1)). context_in_readout=False leaves
    C_o c_i out; readout_size=None makes the readout as wide as the embeddings.
    """

    bridge_reads_backward = True

    def __init__(
        self, *, embedding_size: int, context_in_readout: bool, readout_size: int | None, init: str, init_range: float,
        **shared: Any,
    ) -> None:  # fmt: skip
        """`shared` are the settings of `RecurrentSeq2Seq`."""
        readout_size = readout_size or embedding_size
        super().__init__(embedding_size=embedding_size, readout_size=readout_size, **shared)
        context_size, hidden_size = self.attention.context_size, self.decoder.size
        self.context_to_gates = second_input(context_size, self.decoder)
        self.readout_context_size = context_size if context_in_readout else 0
        self.readout = Maxout(hidden_size + self.readout_context_size + embedding_size, readout_size)
        initialise_parameters(self, init, init_range)

    def start(self, memory: Memory) -> BahdanauState:
        return BahdanauState(memory.initial_state, memory.steps)

    def decode_step(
        self, projected: Tensor, state: BahdanauState, memory: Memory
    ) -> tuple[Tensor, BahdanauState, Tensor]:
        """Attend, then update the cell: projected embedding (B, gates * H) -> context (B, 1, C), state, weights."""
        context, weights = self.attention(top_output(state.hidden)[:, None], memory._replace(steps=state.steps))
        hidden = self.decoder(projected + self.context_to_gates(context.squeeze(1)), state.hidden)
        return context, BahdanauState(hidden, state.steps + 1), weights

    def teacher_force(self, src: Tensor, tgt_in: Tensor) -> tuple[Tensor, Tensor]:
        memory = self.encode(src)
        state = self.start(memory)
        previous = dropout(self.target_embedding(tgt_in), self.dropout, self.training)
        steps = []
        for projected in self.decoder.project(previous).unbind(dim=1):
            context, state, weights = self.decode_step(projected, state, memory)
            steps.append((top_output(state.hidden), context[..., : self.readout_context_size], weights))
        outputs, contexts, all_weights = zip(*steps, strict=True)
        features = self.readout(torch.stack(outputs, dim=1), torch.cat(contexts, dim=1), previous)
        return dropout(features, self.dropout, self.training), torch.cat(all_weights, dim=1)

    def step(self, token: Tensor, state: BahdanauState, memory: Memory) -> tuple[Tensor, BahdanauState]:
        previous = self.target_embedding(token)
        context, state, _ = self.decode_step(self.decoder.project(previous), state, memory)
        features = self.readout(top_output(state.hidden), context[:, 0, : self.readout_context_size], previous)
        return self.output_layer(features), state


class LuongState(NamedTuple):
    """The decoder's state between target steps."""

    hidden: StackState
    attentional: Tensor  # (B, R) the last attentional vector; (B, 0) without input feeding
    steps: Tensor  # (B, 1) the next target step


class Luong(RecurrentSeq2Seq):
    """Attention after the cell, with or without input feeding      arXiv:1508.04025, 3.1 and 3.3.

        h_t  = cell([y_(t-1) ; h~_(t-1)], h_(t-1))           (without feeding: y_(t-1) alone)
        c_t  = attention(h_t, source states)
        h~_t = tanh(W_c [c_t ; h_t]),    p(y_t) = softmax(W_s h~_t)

    The initial state is computed from the summary by a learned bridge, so that sizes and directions of encoder and
    decoder may differ; bridge=copy is the paper's. h~ is as wide as the embeddings.
    """

    def __init__(
        self, *, embedding_size: int, input_feeding: bool, init: str, init_range: float, **shared: Any
    ) -> None:
        """`shared` are the settings of `RecurrentSeq2Seq`."""
        super().__init__(embedding_size=embedding_size, readout_size=embedding_size, **shared)
        self.input_feeding = input_feeding
        self.fed_size = embedding_size if input_feeding else 0
        self.attentional_to_gates = second_input(self.fed_size, self.decoder)
        self.combine = nn.Linear(self.attention.context_size + self.decoder.size, embedding_size, bias=False)
        nn.init.xavier_uniform_(self.combine.weight)
        initialise_parameters(self, init, init_range)

    def start(self, memory: Memory) -> LuongState:
        attentional = top_output(memory.initial_state).new_zeros(len(memory.mask), self.fed_size)
        return LuongState(memory.initial_state, attentional, memory.steps)

    def attentional_vectors(self, hidden: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        """Outputs of the cells (B, T, H) -> attentional vectors h~ (B, T, R) and weights (B, T, S)."""
        context, weights = self.attention(hidden, memory)
        return torch.tanh(self.combine(torch.cat([context, hidden], dim=-1))), weights

    def decode_step(self, projected: Tensor, state: LuongState, memory: Memory) -> tuple[Tensor, LuongState, Tensor]:
        """Update the cell, then attend: projected embedding (B, gates * H) -> h~ (B, 1, R), state, weights."""
        hidden = self.decoder(projected + self.attentional_to_gates(state.attentional), state.hidden)
        attentional, weights = self.attentional_vectors(top_output(hidden)[:, None], memory._replace(steps=state.steps))
        return attentional, LuongState(hidden, attentional[:, 0, : self.fed_size], state.steps + 1), weights

    def teacher_force(self, src: Tensor, tgt_in: Tensor) -> tuple[Tensor, Tensor]:
        memory = self.encode(src)
        previous = dropout(self.target_embedding(tgt_in), self.dropout, self.training)
        decode = self.with_input_feeding if self.input_feeding else self.without_input_feeding
        attentional, weights = decode(self.decoder.project(previous).unbind(dim=1), memory)
        return dropout(attentional, self.dropout, self.training), weights

    def with_input_feeding(self, projected: Sequence[Tensor], memory: Memory) -> tuple[Tensor, Tensor]:
        """Each step reads the attentional vector of the previous one."""
        state, steps = self.start(memory), []
        for projected_step in projected:
            attentional, state, weights = self.decode_step(projected_step, state, memory)
            steps.append((attentional, weights))
        attentionals, all_weights = zip(*steps, strict=True)
        return torch.cat(attentionals, dim=1), torch.cat(all_weights, dim=1)

    def without_input_feeding(self, projected: Sequence[Tensor], memory: Memory) -> tuple[Tensor, Tensor]:
        """The cells run through the whole sentence first; then all steps attend at once."""
        hidden, outputs = memory.initial_state, []
        for projected_step in projected:
            hidden = self.decoder(projected_step, hidden)
            outputs.append(top_output(hidden))
        steps = memory.steps + torch.arange(len(projected), device=memory.steps.device)
        return self.attentional_vectors(torch.stack(outputs, dim=1), memory._replace(steps=steps))

    def step(self, token: Tensor, state: LuongState, memory: Memory) -> tuple[Tensor, LuongState]:
        projected = self.decoder.project(self.target_embedding(token))
        attentional, state, _ = self.decode_step(projected, state, memory)
        return self.output_layer(attentional.squeeze(1)), state


class Maxout(nn.Module):
    """t = max of pairs of W [s ; c ; y]      arXiv:1409.0473, A.2.2."""

    def __init__(self, input_size: int, size: int) -> None:
        super().__init__()
        self.W = nn.Linear(input_size, 2 * size)
        nn.init.xavier_uniform_(self.W.weight)
        nn.init.zeros_(self.W.bias)

    def forward(self, state: Tensor, context: Tensor, previous: Tensor) -> Tensor:
        """(..., H), (..., C), (..., M) -> (..., R)."""
        return torch.maximum(*self.W(torch.cat([state, context, previous], dim=-1)).chunk(2, dim=-1))


class LearnedBridge(nn.Module):
    """s_0 = tanh(W_s h), for each tensor of each layer of the decoder's state      arXiv:1409.0473, A.2.2.

    h is the last `input_size` numbers of the summary.
    """

    def __init__(self, input_size: int, cell: type[Cell], size: int, layers: int) -> None:
        super().__init__()
        self.input_size = input_size
        self.shape = (layers, cell.state_tensors, size)
        self.W = nn.Linear(input_size, layers * cell.state_tensors * size, bias=False)
        nn.init.xavier_uniform_(self.W.weight)

    def forward(self, encoded: EncoderOutput) -> StackState:
        state = torch.tanh(upcast(self.W(encoded.summary[:, -self.input_size :]))).unflatten(-1, self.shape)
        return tuple(tuple(layer.unbind(dim=1)) for layer in state.unbind(dim=1))


class CopyBridge(nn.Module):
    """Each layer of the decoder starts in the final state of that layer of the encoder      arXiv:1409.3215, 2."""

    def forward(self, encoded: EncoderOutput) -> StackState:
        return tuple(tuple(upcast(tensor) for tensor in layer) for layer in encoded.final_states)


def second_input(input_size: int, decoder: CellStack) -> Callable[[Tensor], Tensor]:
    """V c for a second input c (B, input_size), to add to `decoder.project`'s result (B, gates * H); 0 for none."""
    if input_size == 0:
        return lambda c: c.new_zeros(())
    V = nn.Linear(input_size, decoder.gates * decoder.size, bias=False)
    for block in V.weight.chunk(decoder.gates):
        nn.init.xavier_uniform_(block)
    return V


def check_sizes(encoder: Encoder, attention: Attention, hidden_size: int) -> None:
    """ModelError where a decoder of `hidden_size` cannot be started by this encoder."""
    if encoder.keep_final_states and encoder.output_size != hidden_size:
        raise ModelError(
            f"bridge=copy copies encoder states of size {encoder.output_size} into a decoder of size {hidden_size}: "
            "make them equal (hidden_size = 2 x encoder_size if bidirectional) or use bridge=learned"
        )
    if encoder.summary_size < encoder.output_size and not attention.has_weights:
        raise ModelError(
            "summary=last_forward leaves the backward direction unused where there is no attention: "
            "add bidirectional=false"
        )


def initialise_parameters(model: nn.Module, init: str, init_range: float) -> None:
    """Initial weights as the papers state them; the embedding of the padding piece stays zero.

    default     those that each module draws in its constructor: Xavier input and orthogonal recurrent matrices
    groundhog   recurrent matrices orthogonal, those of the additive score ~ N(0, 0.001^2), the others ~ N(0, 0.01^2),
                v and the biases 0      arXiv:1409.0473, B.1
    uniform     all ~ U(-init_range, init_range), 0.08 in arXiv:1409.3215 and 0.1 in arXiv:1508.04025
    """
    for parameter in model.parameters():
        if init == "uniform":
            nn.init.uniform_(parameter, -init_range, init_range)
        elif init == "groundhog" and parameter.dim() > 1:
            nn.init.normal_(parameter, std=0.01)
        elif init == "groundhog":
            nn.init.zeros_(parameter)
    for module in model.modules():
        if isinstance(module, nn.Embedding) and module.padding_idx is not None:
            module.weight.detach()[module.padding_idx] = 0.0
        elif isinstance(module, Additive) and init == "groundhog":
            nn.init.normal_(module.W.weight, std=0.001)
            nn.init.normal_(module.U.weight, std=0.001)
        elif isinstance(module, Cell | nn.GRU | nn.LSTM) and init == "groundhog":
            U = module.hidden_to_gates.weight if isinstance(module, Cell) else module.get_parameter("weight_hh_l0")
            for gate in U.detach().split(U.size(1)):
                nn.init.orthogonal_(gate)
