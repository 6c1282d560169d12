"""Recurrent networks: the decoder's cells (GRU, LSTM, a stack of them) and the encoder.

The input part of a cell does not depend on the recurrent state, so it is a separate call, `project`:
teacher forcing computes it for all target steps in one product. Products run in the autocast dtype; the state stays
in float32, since rounding errors would accumulate from step to step. Shapes: see `seq2seq.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from nmt.models.ops import dropout, upcast

CellState = tuple[Tensor, ...]  # (h,) or (h, c), each (B, H)
StackState = tuple[CellState, ...]  # one for each layer, the lowest first


class Cell(nn.Module, ABC):
    """One recurrent step: W (`input_to_gates`) and U (`hidden_to_gates`) hold one block of rows for each gate."""

    gates: int  # blocks in W and U
    state_tensors: int  # tensors in the state; the first is the output

    def __init__(self, input_size: int, size: int) -> None:
        super().__init__()
        self.size = size
        self.input_to_gates = nn.Linear(input_size, self.gates * size)
        self.hidden_to_gates = nn.Linear(size, self.gates * size)
        initialise_gates(
            self.input_to_gates.weight, self.hidden_to_gates.weight, self.input_to_gates.bias, self.hidden_to_gates.bias
        )

    def project(self, inputs: Tensor) -> Tensor:
        """(..., input size) -> W x + b, (..., gates * H)."""
        return self.input_to_gates(inputs)

    @abstractmethod
    def forward(self, projected: Tensor, state: CellState) -> CellState:
        """W x + b (B, gates * H) and the previous state -> the next state."""


class GRU(Cell):
    """r = sigma(W_r x + U_r h), z = sigma(W_z x + U_z h), n = tanh(W_n x + r * U_n h), h' = (1 - z) * n + z * h.

    arXiv:1406.1078, with the reset gate after the product, as in cuDNN: one product for all three gates.
    """

    gates = 3
    state_tensors = 1

    def forward(self, projected: Tensor, state: CellState) -> CellState:
        (h,) = state
        gates, candidate = upcast(projected).split([2 * self.size, self.size], dim=-1)
        recurrent_gates, recurrent_candidate = upcast(self.hidden_to_gates(h)).split([2 * self.size, self.size], dim=-1)
        r, z = torch.sigmoid(gates + recurrent_gates).chunk(2, dim=-1)
        n = torch.tanh(torch.addcmul(candidate, r, recurrent_candidate))
        return (torch.lerp(n, h, z),)


class LSTM(Cell):
    """i, f, o = sigma(W x + U h), g = tanh(W_g x + U_g h), c' = f * c + i * g, h' = o * tanh(c').

    Neural Computation 9(8), 1997, with the forget gate of Neural Computation 12(10), 2000.
    """

    gates = 4
    state_tensors = 2

    def forward(self, projected: Tensor, state: CellState) -> CellState:
        h, c = state
        total = upcast(projected) + self.hidden_to_gates(h)
        i, f, g, o = total.chunk(4, dim=-1)
        c = torch.addcmul(torch.sigmoid(f) * c, torch.sigmoid(i), torch.tanh(g))
        return torch.sigmoid(o) * torch.tanh(c), c


CELLS: dict[str, type[Cell]] = {"gru": GRU, "lstm": LSTM}
RNN_CLASSES = {"gru": nn.GRU, "lstm": nn.LSTM}  # the same in torch's kernels


def initialise_gates(W: Tensor, U: Tensor, *biases: Tensor) -> None:
    """Gate by gate: Xavier for W, orthogonal for U (arXiv:1409.0473, B.1), zero biases; an LSTM's forget gate 1.

    W is (gates * H, input size), U is (gates * H, H). Of an LSTM's two biases only one carries the 1.
    """
    size = U.size(1)
    gates = U.size(0) // size
    with torch.no_grad():
        for block_W, block_U in zip(W.chunk(gates), U.chunk(gates), strict=True):
            nn.init.xavier_uniform_(block_W)
            nn.init.orthogonal_(block_U)
        for bias in biases:
            bias.zero_()
        if gates == LSTM.gates:
            biases[0][size : 2 * size] = 1.0


class CellStack(nn.Module):
    """Layers of one kind of cell, each reading the output of the one below through dropout."""

    def __init__(self, cell: type[Cell], input_size: int, size: int, layers: int, dropout: float) -> None:
        super().__init__()
        cells = nn.ModuleList(cell(input_size if n == 0 else size, size) for n in range(layers))
        self.cells = cast("Sequence[Cell]", cells)
        self.gates, self.size = cell.gates, size
        self.dropout = dropout

    def project(self, inputs: Tensor) -> Tensor:
        """The input part of the lowest cell's gates: (..., input size) -> (..., gates * H)."""
        return self.cells[0].project(inputs)

    def forward(self, projected: Tensor, state: StackState) -> StackState:
        """Projected inputs (B, gates * H) and the previous states -> the next states."""
        states: list[CellState] = []
        for cell, previous in zip(self.cells, state, strict=True):
            if states:
                projected = cell.project(dropout(states[-1][0], self.dropout, self.training))
            states.append(cell(projected, previous))
        return tuple(states)


def top_output(state: StackState) -> Tensor:
    """The output (B, H) of the highest layer."""
    return state[-1][0]


class EncoderOutput(NamedTuple):
    """An encoded source batch: one vector for each piece, and one for the whole sentence."""

    states: Tensor  # (B, S, E), in the order of the source
    summary: Tensor  # (B, E), or one direction of it
    final_states: StackState  # of every layer; empty unless the encoder keeps them


class Encoder(nn.Module):
    """h_j = [forward h_j ; backward h_j]      arXiv:1409.0473, 3.2 and A.2.1.

    The layers run in torch's kernels (cuDNN on a GPU), whose cells equal `GRU` and `LSTM` above, except that autocast
    makes their state bfloat16 (0.4% error in the outputs after 40 steps, 0.3% with a float32 state). Each direction
    reads the real pieces first, so padding changes nothing and sequences need no packing (1.5x slower on CPU), unless
    the final states of every layer are needed, which no kernel returns otherwise.
    reverse_source: the forward direction starts at the end of the sentence, arXiv:1409.3215, 3.3.
    """

    def __init__(
        self,
        input_size: int,
        size: int,
        layers: int,
        cell: str,
        bidirectional: bool,
        dropout: float,
        *,
        reverse_source: bool,
        summary: str,
        keep_final_states: bool,
    ) -> None:
        super().__init__()
        directions = 2 if bidirectional else 1
        self.size = size
        self.output_size = directions * size
        self.summary_size = size if summary == "last_forward" else self.output_size
        self.dropout = dropout
        self.reverse_source = reverse_source
        self.final_state_size = layers * CELLS[cell].state_tensors * self.output_size
        self.summary = summary
        self.keep_final_states = keep_final_states
        self.layers = nn.ModuleList(
            EncoderRnnLayer(RNN_CLASSES[cell], input_size if n == 0 else self.output_size, size, directions)
            for n in range(layers)
        )

    def forward(self, embedded: Tensor, mask: Tensor) -> EncoderOutput:
        """Embedded pieces (B, S, M) and their mask (B, S), padding on the right -> states and summary."""
        lengths = mask.sum(dim=1).clamp(min=1)  # a row without a real piece reads one padding piece
        backwards = reversed_positions(lengths, mask.size(1))
        states = gather_positions(embedded, backwards) if self.reverse_source else embedded
        final_states = []
        for layer in self.layers:
            states = dropout(states, self.dropout, self.training)
            states, final_state = layer(states, backwards, lengths if self.keep_final_states else None)
            final_states.append(final_state)
        summary = summarise(self.summary, states, lengths, self.size)
        if self.reverse_source:
            states = gather_positions(states, backwards)
        return EncoderOutput(states, summary, tuple(final_states) if self.keep_final_states else ())


class EncoderRnnLayer(nn.Module):
    """One layer in each direction."""

    def __init__(self, rnn: type[nn.GRU] | type[nn.LSTM], input_size: int, size: int, directions: int) -> None:
        super().__init__()
        self.directions = nn.ModuleList(rnn(input_size, size, batch_first=True) for _ in range(directions))
        for direction in self.directions:
            initialise_gates(*direction.parameters())  # W, U and their biases

    def forward(self, inputs: Tensor, backwards: Tensor, lengths: Tensor | None) -> tuple[Tensor, CellState]:
        """(B, S, input size), positions that reverse each row (B, S) -> states (B, S, directions * size).

        With lengths (B,) also the state after the last real piece: h, and an LSTM's c, each (B, directions * size).
        """
        states, finals = [], []
        for number, direction in enumerate(self.directions):
            ordered = gather_positions(inputs, backwards) if number else inputs
            if lengths is None:
                outputs, _ = direction(ordered)
            else:
                packed = pack_padded_sequence(ordered, lengths.cpu(), batch_first=True, enforce_sorted=False)
                packed_outputs, final = direction(packed)
                outputs, _ = pad_packed_sequence(packed_outputs, batch_first=True, total_length=inputs.size(1))
                finals.append(final if isinstance(final, tuple) else (final,))
            states.append(gather_positions(outputs, backwards) if number else outputs)
        final_state = tuple(torch.cat(parts, dim=-1).squeeze(0) for parts in zip(*finals, strict=True))
        return torch.cat(states, dim=-1), final_state


def summarise(summary: str, states: Tensor, lengths: Tensor, size: int) -> Tensor:
    """One vector for the sentence: states (B, S, E), lengths (B,) -> (B, E), or (B, size) for last_forward.

    max and mean are elementwise; last_forward is the forward direction's state after the last piece, last_both has
    the last state of each direction.
    """
    padding = (torch.arange(states.size(1), device=states.device) >= lengths[:, None])[..., None]
    if summary == "max":
        return states.masked_fill(padding, torch.finfo(states.dtype).min).amax(dim=1)
    if summary == "mean":
        return states.masked_fill(padding, 0.0).sum(dim=1) / lengths[:, None]
    last_forward = states[torch.arange(len(states), device=states.device), lengths - 1, :size]
    return last_forward if summary == "last_forward" else torch.cat([last_forward, states[:, 0, size:]], dim=-1)


def reversed_positions(lengths: Tensor, S: int) -> Tensor:
    """(B,) lengths -> (B, S) positions that reverse the real pieces of a row and leave its padding; its own inverse."""
    position = torch.arange(S, device=lengths.device).expand(len(lengths), S)
    mirrored = lengths[:, None] - 1 - position
    return torch.where(mirrored >= 0, mirrored, position)


def gather_positions(states: Tensor, positions: Tensor) -> Tensor:
    """states[b, positions[b, n]]: (B, S, E), (B, N) -> (B, N, E)."""
    B, S, E = states.shape
    rows = torch.arange(B, device=positions.device)[:, None] * S + positions
    return states.reshape(B * S, E).index_select(0, rows.flatten()).view(*positions.shape, E)
