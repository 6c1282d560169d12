"""Initial weights as papers state them. `default` keeps what each part has chosen for itself."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from nmt.errors import ConfigError
from nmt.models.attention import Additive
from nmt.models.cells import Cell


def default(model: nn.Module, reach: float) -> None:
    """Xavier input and orthogonal recurrent matrices, as the parts are made."""


def groundhog(model: nn.Module, reach: float) -> None:
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
            orthogonal_gates(module.U.weight)
        if isinstance(module, nn.GRU | nn.LSTM):
            orthogonal_gates(module.get_parameter("weight_hh_l0"))


def uniform(model: nn.Module, reach: float) -> None:
    """Everything ~ U(-reach, reach): 0.08 in arXiv:1409.3215, 0.1 in arXiv:1508.04025."""
    for parameter in model.parameters():
        nn.init.uniform_(parameter, -reach, reach)


def orthogonal_gates(U: torch.Tensor) -> None:
    """(gates * H, H), gate by gate."""
    for block in U.detach().split(U.size(1)):
        nn.init.orthogonal_(block)


INITIAL: dict[str, Callable[[nn.Module, float], None]] = {
    "default": default,
    "groundhog": groundhog,
    "uniform": uniform,
}


def set_initial(model: nn.Module, name: str, reach: float) -> None:
    """What `model.init=name` says; the padding piece stays a vector of zeros."""
    if name not in INITIAL:
        raise ConfigError(f"model.init={name} is unknown: use one of {', '.join(INITIAL)}")
    if reach <= 0:
        raise ConfigError(f"model.init_range={reach}: it must be above 0")
    INITIAL[name](model, reach)
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.Embedding) and module.padding_idx is not None:
                module.weight[module.padding_idx] = 0.0
