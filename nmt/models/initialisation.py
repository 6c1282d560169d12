"""Initial weights as the papers state them; `default` keeps those that each module draws in its constructor."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from nmt.errors import ModelError
from nmt.models.attention import Additive
from nmt.models.rnn import Cell


def default_initialisation(model: nn.Module, init_range: float) -> None:
    """Xavier input and orthogonal recurrent matrices, drawn in the constructors of the modules."""


def groundhog_initialisation(model: nn.Module, init_range: float) -> None:
    """Recurrent matrices orthogonal, those of the additive score ~ N(0, 0.001^2), the others ~ N(0, 0.01^2);
    v and the biases 0      arXiv:1409.0473, B.1.
    """
    for parameter in model.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=0.01)
        else:
            nn.init.zeros_(parameter)
    for module in model.modules():
        if isinstance(module, Additive):
            nn.init.normal_(module.W.weight, std=0.001)
            nn.init.normal_(module.U.weight, std=0.001)
        if isinstance(module, Cell):
            orthogonal_gates(module.hidden_to_gates.weight)
        if isinstance(module, nn.GRU | nn.LSTM):
            orthogonal_gates(module.get_parameter("weight_hh_l0"))


def uniform_initialisation(model: nn.Module, init_range: float) -> None:
    """Everything ~ U(-init_range, init_range): 0.08 in arXiv:1409.3215, 0.1 in arXiv:1508.04025."""
    for parameter in model.parameters():
        nn.init.uniform_(parameter, -init_range, init_range)


def orthogonal_gates(U: torch.Tensor) -> None:
    """(gates * H, H), gate by gate."""
    for block in U.detach().split(U.size(1)):
        nn.init.orthogonal_(block)


INITIALISERS: dict[str, Callable[[nn.Module, float], None]] = {
    "default": default_initialisation,
    "groundhog": groundhog_initialisation,
    "uniform": uniform_initialisation,
}


def initialise_parameters(model: nn.Module, name: str, init_range: float) -> None:
    """The initialisation named by `init`; the embedding of the padding piece stays zero."""
    if name not in INITIALISERS:
        raise ModelError(f"init={name} is unknown: use one of {', '.join(INITIALISERS)}")
    INITIALISERS[name](model, init_range)
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.Embedding) and module.padding_idx is not None:
                module.weight[module.padding_idx] = 0.0
