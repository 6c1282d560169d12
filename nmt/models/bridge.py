"""What passes from encoder to decoder before the first target piece, and whether the parts go together."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from nmt.errors import ConfigError
from nmt.models.attention import Attention, Memory
from nmt.models.cells import Cell, StackState
from nmt.models.encoder import Encoded, Encoder
from nmt.models.precision import wide
from nmt.models.seq2seq import Carried


class Bridge(nn.Module):
    """s_0 = tanh(W_s h), for each tensor of each layer of the decoder's state      arXiv:1409.0473, A.2.2.

    h is the last `input_size` numbers of the summary.
    """

    wants_last = False

    def __init__(self, input_size: int, cell: type[Cell], size: int, layers: int) -> None:
        super().__init__()
        self.input_size = input_size
        self.shape = (layers, cell.tensors, size)
        self.W = nn.Linear(input_size, layers * cell.tensors * size, bias=False)
        nn.init.xavier_uniform_(self.W.weight)

    def forward(self, encoded: Encoded) -> StackState:
        started = torch.tanh(wide(self.W(encoded.summary[:, -self.input_size :]))).unflatten(-1, self.shape)
        return tuple(tuple(layer.unbind(dim=1)) for layer in started.unbind(dim=1))


class Copy(nn.Module):
    """Each layer of the decoder goes on where that layer of the encoder ended      arXiv:1409.3215, 2."""

    wants_last = True

    def __init__(self, input_size: int, cell: type[Cell], size: int, layers: int) -> None:
        super().__init__()

    def forward(self, encoded: Encoded) -> StackState:
        return tuple(tuple(wide(tensor) for tensor in layer) for layer in encoded.last)


BRIDGES: dict[str, type[Bridge] | type[Copy]] = {"learned": Bridge, "copy": Copy}


def bridge_class(name: str) -> type[Bridge] | type[Copy]:
    """The class of `model.bridge=name`."""
    if name not in BRIDGES:
        raise ConfigError(f"model.bridge={name} is unknown: use one of {', '.join(BRIDGES)}")
    return BRIDGES[name]


def demand_fit(encoder: Encoder, attention: Attention, hidden_size: int) -> None:
    """ConfigError where a decoder cannot take over what this encoder hands it."""
    if encoder.keep_last and encoder.output_size != hidden_size:
        raise ConfigError(
            f"model.bridge=copy puts encoder states of {encoder.output_size} numbers into a decoder of {hidden_size}: "
            "make them equal (model.hidden_size = 2 x model.encoder_size if bidirectional) or use model.bridge=learned"
        )
    if encoder.summary_size < encoder.output_size and not attention.looks:
        raise ConfigError(
            "model.summary=last_forward leaves the backward reading without any use where there is no attention: "
            "add model.bidirectional=false"
        )


def carried(encoder: Encoder, attention: Attention, bridge: nn.Module) -> Carried:
    """What of the encoder reaches the decoder: its states where the attention reads them, else vectors of one size."""
    start = encoder.last_size if encoder.keep_last else cast("Bridge", bridge).input_size
    if not attention.fixed_size:  # a learned start, and the top layer's last state, are read with the states anyway
        return Carried(max(0, encoder.last_size - encoder.output_size) if encoder.keep_last else 0, encoder.output_size)
    # the start is computed from a part of the summary, or the summary is one of the states that are copied
    one_holds_the_other = attention.is_summary and (encoder.ends_are_summary or not encoder.keep_last)
    both = (start, attention.context_size)
    return Carried(max(both) if one_holds_the_other else sum(both), 0)


def remember(embedded: Tensor, mask: Tensor, encoder: Encoder, attention: Attention, bridge: nn.Module) -> Memory:
    """Embedded source pieces (B, S, M) and their mask (B, S) -> what decoding reads."""
    encoded = encoder(embedded, mask)
    first = mask.new_zeros(len(mask), 1, dtype=torch.int64)
    return Memory(encoded.states, attention.keys(encoded.states), encoded.summary, bridge(encoded), mask, first)
