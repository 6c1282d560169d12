"""Recurrent cells: one step of a GRU or an LSTM, and a stack of them.

The part of a cell that reads its input does not wait for the recurrence, so it is a separate call, `project`:
teacher forcing makes it for all target steps in one product. Products run in the autocast dtype; the state stays
in float32, or rounding would pile up from step to step.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import cast

import torch
from torch import Tensor, nn

from nmt.errors import ConfigError
from nmt.models.dropout import dropout
from nmt.models.precision import wide

CellState = tuple[Tensor, ...]  # (h,) or (h, c), each (B, H)
StackState = tuple[CellState, ...]  # one for each layer, the lowest first


class Cell(nn.Module, ABC):
    """One recurrent step. `W` reads the input, `U` the last state; their rows hold one block for each gate."""

    gates: int  # blocks in W and U
    tensors: int  # tensors in the state; the first is the output

    def __init__(self, input_size: int, size: int) -> None:
        super().__init__()
        self.size = size
        self.W = nn.Linear(input_size, self.gates * size)
        self.U = nn.Linear(size, self.gates * size)
        initialise(self.W.weight, self.U.weight, self.W.bias, self.U.bias)

    def project(self, inputs: Tensor) -> Tensor:
        """(..., input size) -> W x + b, (..., gates * H)."""
        return self.W(inputs)

    @abstractmethod
    def forward(self, projected: Tensor, state: CellState) -> CellState:
        """W x + b (B, gates * H) and the last state -> the next state."""


class GRU(Cell):
    """r = sigma(W_r x + U_r h), z = sigma(W_z x + U_z h), n = tanh(W_n x + r * U_n h), h' = (1 - z) * n + z * h.

    arXiv:1406.1078, with the reset gate after the product, as in cuDNN: one product for all three gates.
    """

    gates = 3
    tensors = 1

    def forward(self, projected: Tensor, state: CellState) -> CellState:
        (h,) = state
        gates, candidate = wide(projected).split([2 * self.size, self.size], dim=-1)
        recurrent_gates, recurrent_candidate = wide(self.U(h)).split([2 * self.size, self.size], dim=-1)
        r, z = torch.sigmoid(gates + recurrent_gates).chunk(2, dim=-1)
        n = torch.tanh(torch.addcmul(candidate, r, recurrent_candidate))
        return (torch.lerp(n, h, z),)


class LSTM(Cell):
    """i, f, o = sigma(W x + U h), g = tanh(W_g x + U_g h), c' = f * c + i * g, h' = o * tanh(c').

    Neural Computation 9(8), 1997, with the forget gate of Neural Computation 12(10), 2000.
    """

    gates = 4
    tensors = 2

    def forward(self, projected: Tensor, state: CellState) -> CellState:
        h, c = state
        total = wide(projected) + self.U(h)
        i, f, g, o = total.chunk(4, dim=-1)
        c = torch.addcmul(torch.sigmoid(f) * c, torch.sigmoid(i), torch.tanh(g))
        return torch.sigmoid(o) * torch.tanh(c), c


CELLS: dict[str, type[Cell]] = {"gru": GRU, "lstm": LSTM}


def cell_class(name: str) -> type[Cell]:
    """The class of `model.cell=name`."""
    if name not in CELLS:
        raise ConfigError(f"model.cell={name} is unknown: use one of {', '.join(CELLS)}")
    return CELLS[name]


def initialise(W: Tensor, U: Tensor, *biases: Tensor) -> None:
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


class NoInput(nn.Module):
    """In place of a second input that is not there."""

    def forward(self, inputs: Tensor) -> Tensor:
        """(B, 0) -> 0, to add to `project`'s result."""
        return inputs.new_zeros(())


def further_input(input_size: int, cell: type[Cell], size: int) -> nn.Module:
    """V c for a second input c (B, input_size), to add to `project`'s result (B, gates * H)."""
    if input_size == 0:
        return NoInput()
    V = nn.Linear(input_size, cell.gates * size, bias=False)
    for block in V.weight.chunk(cell.gates):
        nn.init.xavier_uniform_(block)
    return V


class Stack(nn.Module):
    """Layers of one kind of cell, each reading the output of the one below through dropout."""

    def __init__(self, cell: type[Cell], input_size: int, size: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.cells = nn.ModuleList(cell(input_size if n == 0 else size, size) for n in range(layers))
        self.dropout = dropout

    def project(self, inputs: Tensor) -> Tensor:
        """What the lowest cell reads: (..., input size) -> (..., gates * H)."""
        return cast("Cell", self.cells[0]).project(inputs)

    def forward(self, projected: Tensor, state: StackState) -> StackState:
        """Projected inputs (B, gates * H) and the last states -> the next states; `top` is the output."""
        lowest, *upper = zip(cast("Iterable[Cell]", self.cells), state, strict=True)
        cell, last = lowest
        states = [cell(projected, last)]
        for cell, last in upper:
            below = dropout(states[-1][0], self.dropout, self.training)
            states.append(cell(cell.project(below), last))
        return tuple(states)


def top(state: StackState) -> Tensor:
    """The output (B, H) of the highest layer."""
    return state[-1][0]
