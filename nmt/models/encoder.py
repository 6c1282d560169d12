"""The recurrent encoder: one vector for each source piece, and one for the whole sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from nmt.errors import ConfigError, require_whole
from nmt.models.cells import CellState, StackState, cell_class, initialise
from nmt.models.dropout import dropout

LIBRARY = {"gru": nn.GRU, "lstm": nn.LSTM}


class Encoded(NamedTuple):
    """A read source batch."""

    states: Tensor  # (B, S, E), in the order of the source
    summary: Tensor  # (B, E), or one direction of it: the sentence in one vector
    last: StackState  # the last states of every layer, if they were asked for
    mask: Tensor  # (B, S) True where a piece is real


class Encoder(nn.Module):
    """h_j = [forward h_j ; backward h_j]      arXiv:1409.0473, 3.2 and A.2.1.

    The sequences run in the library's kernels (cuDNN on a GPU): their cells are those of `cells.py`, but for their
    state, which autocast makes bfloat16 (0.4% error in the outputs after 40 steps, 0.3% with a float32 state). Each
    direction reads the real pieces first, so padding changes nothing and no packing is needed (1.5x slower on CPU),
    but for the last states of every layer, which no kernel gives otherwise.
    reverse_source: the first direction begins at the sentence's end, arXiv:1409.3215, 3.3.
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
        keep_last: bool,
    ) -> None:
        super().__init__()
        cell_class(cell)  # says what is wrong with an unknown name
        require_whole("model.layers", layers)
        directions = 2 if bidirectional else 1
        self.size = size
        self.output_size = directions * size
        self.summary_size = size if summary == "last_forward" else self.output_size
        self.dropout = dropout
        self.reverse_source = reverse_source
        self.last_size = layers * (2 if cell == "lstm" else 1) * self.output_size  # numbers in the last states
        self.ends_are_summary = summary.startswith("last")
        self.summarise = summary_function(summary)
        self.keep_last = keep_last
        self.layers = nn.ModuleList(
            Layer(LIBRARY[cell], input_size if n == 0 else self.output_size, size, directions) for n in range(layers)
        )

    def forward(self, embedded: Tensor, mask: Tensor) -> Encoded:
        """Embedded pieces (B, S, M) and their mask (B, S), padding on the right -> states and summary."""
        lengths = mask.sum(dim=1).clamp(min=1)  # a row without a real piece reads one padding piece
        backwards = reversal(lengths, mask.size(1))
        states = pick(embedded, backwards) if self.reverse_source else embedded
        last: list[CellState] = []
        for layer in cast("Iterable[Layer]", self.layers):
            states = dropout(states, self.dropout, self.training)
            if self.keep_last:
                states, final = layer.to_the_end(states, backwards, lengths)
                last.append(final)
            else:
                states = layer(states, backwards)
        summary = self.summarise(states, lengths, self.size)
        return Encoded(pick(states, backwards) if self.reverse_source else states, summary, tuple(last), mask)


class Layer(nn.Module):
    """One reading in each direction."""

    def __init__(self, kind: type[nn.GRU] | type[nn.LSTM], input_size: int, size: int, directions: int) -> None:
        super().__init__()
        self.readers = nn.ModuleList(kind(input_size, size, batch_first=True) for _ in range(directions))
        for reader in self.readers:
            initialise(*reader.parameters())  # W, U and their biases

    def forward(self, inputs: Tensor, backwards: Tensor) -> Tensor:
        """(B, S, input size), positions that reverse each row (B, S) -> (B, S, directions * size)."""
        forward, *backward = self.readers
        read = [forward(inputs)[0]]
        for reader in backward:
            read.append(pick(reader(pick(inputs, backwards))[0], backwards))
        return torch.cat(read, dim=-1)

    def to_the_end(self, inputs: Tensor, backwards: Tensor, lengths: Tensor) -> tuple[Tensor, CellState]:
        """The same, and the state after the last real piece: h, and an LSTM's c, each (B, directions * size)."""
        read, finals = [], []
        for number, reader in enumerate(self.readers):
            ordered = pick(inputs, backwards) if number else inputs
            packed = pack_padded_sequence(ordered, lengths.cpu(), batch_first=True, enforce_sorted=False)
            outputs, final = reader(packed)
            states, _ = pad_packed_sequence(outputs, batch_first=True, total_length=inputs.size(1))
            read.append(pick(states, backwards) if number else states)
            finals.append(final if isinstance(final, tuple) else (final,))
        joined = tuple(torch.cat(parts, dim=-1).squeeze(0) for parts in zip(*finals, strict=True))
        return torch.cat(read, dim=-1), joined


def last_forward(states: Tensor, lengths: Tensor, size: int) -> Tensor:
    """The forward reading's state after the last piece: (B, S, E), (B,) -> (B, size)."""
    return states[torch.arange(len(states), device=states.device), lengths - 1, :size]


def last_both(states: Tensor, lengths: Tensor, size: int) -> Tensor:
    """The last state of each reading direction: (B, S, E), (B,) -> (B, E)."""
    return torch.cat([last_forward(states, lengths, size), states[:, 0, size:]], dim=-1)


def largest(states: Tensor, lengths: Tensor, size: int) -> Tensor:
    """Number by number the maximum over the sentence: (B, S, E), (B,) -> (B, E)."""
    return states.masked_fill(~real(states, lengths), torch.finfo(states.dtype).min).amax(dim=1)


def mean(states: Tensor, lengths: Tensor, size: int) -> Tensor:
    """The mean over the sentence: (B, S, E), (B,) -> (B, E)."""
    return states.masked_fill(~real(states, lengths), 0.0).sum(dim=1) / lengths[:, None]


def real(states: Tensor, lengths: Tensor) -> Tensor:
    """(B, S, 1) True where a piece is real."""
    return (torch.arange(states.size(1), device=states.device) < lengths[:, None])[..., None]


SUMMARIES = {"last_forward": last_forward, "last_both": last_both, "max": largest, "mean": mean}


def summary_function(name: str) -> Callable[[Tensor, Tensor, int], Tensor]:
    """The function of `model.summary=name`."""
    if name not in SUMMARIES:
        raise ConfigError(f"model.summary={name} is unknown: use one of {', '.join(SUMMARIES)}")
    return SUMMARIES[name]


def reversal(lengths: Tensor, S: int) -> Tensor:
    """(B,) lengths -> (B, S) positions that reverse the real pieces of a row and leave its padding; its own inverse."""
    place = torch.arange(S, device=lengths.device).expand(len(lengths), S)
    mirrored = lengths[:, None] - 1 - place
    return torch.where(mirrored >= 0, mirrored, place)


def pick(states: Tensor, places: Tensor) -> Tensor:
    """states[b, places[b, n]]: (B, S, E), (B, N) -> (B, N, E)."""
    B, S, E = states.shape
    rows = torch.arange(B, device=places.device)[:, None] * S + places
    return states.reshape(B * S, E).index_select(0, rows.flatten()).view(*places.shape, E)
