"""Which way to compute attention: found by its name once, when a model is built."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from nmt.errors import ConfigError, require_whole
from nmt.models.backends.explicit import attend_explicit
from nmt.models.backends.fused import attend_fused
from nmt.models.backends.layout import Layout, Packed, Padded
from nmt.models.backends.linear import attend_linear, attend_linear_explicit
from nmt.models.backends.sight import Attend
from nmt.models.backends.tiled import attend_tiled
from nmt.models.backends.varlen import attend_varlen, why_not
from nmt.models.backends.window import Window


class Way(NamedTuple):
    """How one batch is computed."""

    name: str
    around: Attend  # self-attention
    back: Attend  # over the source
    layout: Callable[[Tensor, int], Layout] = Padded  # of ids and the padding's


@dataclass(frozen=True)
class Backend:
    """What `attention_backend=` names, and what it can do beside attention."""

    name: str
    step_by_step: Way  # encoding and decoding for a search: rows, usually of one length
    explicit: Way  # the same function, with weights
    without_padding: Way | None = None  # for teacher forcing, where the device can
    needs_it: bool = False
    dropout: bool = True  # on weights
    rotary: bool = True
    alibi: bool = True
    head_size: int = 0

    def teaching(self, device: torch.device, dtype: torch.dtype) -> Way:
        """For teacher forcing with products in `dtype`. ConfigError where the backend cannot do it there."""
        if self.without_padding is None:
            return self.step_by_step
        reason = why_not(device, dtype, self.head_size)
        if reason and self.needs_it:
            raise ConfigError(f"attention_backend={self.name} cannot run here ({reason}); use attention_backend=auto")
        return self.step_by_step if reason else self.without_padding

    def in_words(self, device: torch.device, dtype: torch.dtype, dropout: float) -> str:
        """For people, at the start of a training."""
        way = self.teaching(device, dtype)
        words = f"{way.name}, chosen by auto" if self.name == "auto" else way.name
        if dropout > 0 and way.around is attend_fused and device.type == "cpu":
            words += f"; model.attention_dropout={dropout:g} costs the fused kernel on a CPU"
        return words

    def can(self, positions: str, dropout: float) -> bool:
        return (self.dropout or dropout == 0) and {"rotary": self.rotary, "alibi": self.alibi}.get(positions, True)


FUSED = Way("fused", attend_fused, attend_fused)
EXPLICIT = Way("explicit", attend_explicit, attend_explicit)
TILED = Way("tiled", attend_tiled, attend_tiled)
VARLEN = Way("varlen, without padding", attend_varlen, attend_varlen, Packed)
LINEAR = Way("linear", attend_linear, attend_linear)
LINEAR_EXPLICIT = Way("linear", attend_linear_explicit, attend_linear_explicit)


def backends(window: int, head_size: int) -> dict[str, Backend]:
    """All there are. Places in the target are not places in the source: no window cuts off what is seen of it."""
    near = Window(window)
    name = f"window of {window} places, fused over the source"
    found = (
        Backend("auto", FUSED, EXPLICIT, VARLEN, head_size=head_size),
        Backend("fused", FUSED, EXPLICIT),
        Backend("varlen", FUSED, EXPLICIT, VARLEN, needs_it=True, dropout=False, alibi=False, head_size=head_size),
        Backend("explicit", EXPLICIT, EXPLICIT),
        Backend("tiled", TILED, EXPLICIT, dropout=False),
        Backend("window", Way(name, near.attend, attend_fused), Way(name, near.attend_explicit, attend_explicit)),
        Backend("linear", LINEAR, LINEAR_EXPLICIT, dropout=False, rotary=False, alibi=False),
    )
    return {backend.name: backend for backend in found}


def choose(name: str, window: int, head_size: int, positions: str, dropout: float) -> Backend:
    """By name, once; ConfigError where it is unknown or cannot do what is asked with it."""
    require_whole("model.attention_window", window)
    known = backends(window, head_size)
    if name not in known:
        raise ConfigError(f"attention_backend={name} is unknown: use one of {', '.join(known)}")
    chosen = known[name]
    if name == "auto":  # the fastest of those that can
        return chosen if known["varlen"].can(positions, dropout) else replace(chosen, without_padding=None)
    if not chosen.can("", dropout):
        able = ", ".join(other for other in known if known[other].can("", dropout))
        raise ConfigError(
            f"attention_backend={name} cannot drop weights (model.attention_dropout={dropout:g}): "
            f"set it to 0, or use attention_backend={able}"
        )
    if not chosen.can(positions, 0.0):
        able = ", ".join(other for other in known if known[other].can(positions, dropout))
        raise ConfigError(
            f"attention_backend={name} cannot express model.positions={positions}: "
            f"use other positions, or attention_backend={able}"
        )
    return chosen
