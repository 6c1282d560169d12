"""Backends of multi-head attention: one signature (`masks.Attend`), one module each, resolved once by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from nmt.errors import ModelError
from nmt.models.backends.explicit import attend_explicit
from nmt.models.backends.linear import attend_linear, attend_linear_explicit
from nmt.models.backends.masks import Attend
from nmt.models.backends.packing import PackedBatch, PaddedBatch, TokenBatch
from nmt.models.backends.sdpa import attend_sdpa
from nmt.models.backends.tiled import attend_tiled
from nmt.models.backends.varlen import attend_varlen, reason_unavailable
from nmt.models.backends.window import SlidingWindow


class Kernels(NamedTuple):
    """How the attention of one batch is computed."""

    name: str
    self_attention: Attend
    cross_attention: Attend
    make_batch: Callable[[Tensor, int], TokenBatch] = PaddedBatch  # from ids and pad_id


@dataclass(frozen=True)
class Backend:
    """What `attention_backend=` names: its kernels, and what they support."""

    name: str
    for_search: Kernels  # encoding and decoding, one step at a time
    explicit: Kernels  # the same function, returning weights
    packed: Kernels | None = None  # teacher forcing on unpadded tokens, where the device supports it
    requires_packed: bool = False
    head_size: int = 0
    unsupported: frozenset[str] = frozenset()  # positions, and "dropout" on the weights

    def for_training(self, device: torch.device, dtype: torch.dtype) -> Kernels:
        """Kernels for teacher forcing with products in `dtype`; ModelError where the backend cannot run there."""
        if self.packed is None:
            return self.for_search
        reason = reason_unavailable(device, dtype, self.head_size)
        if reason and self.requires_packed:
            raise ModelError(f"attention_backend={self.name} cannot run here ({reason}); use attention_backend=auto")
        return self.for_search if reason else self.packed

    def describe(self, device: torch.device, dtype: torch.dtype, dropout: float) -> str:
        """One line for the log at the start of training."""
        kernels = self.for_training(device, dtype)
        text = f"{kernels.name}, chosen by auto" if self.name == "auto" else kernels.name
        if dropout > 0 and kernels.self_attention is attend_sdpa and device.type == "cpu":
            text += f"; attention_dropout={dropout:g} rules out the fused kernel on a CPU"
        return text


FUSED = Kernels("fused", attend_sdpa, attend_sdpa)
EXPLICIT = Kernels("explicit", attend_explicit, attend_explicit)
TILED = Kernels("tiled", attend_tiled, attend_tiled)
VARLEN = Kernels("varlen, without padding", attend_varlen, attend_varlen, PackedBatch)
LINEAR = Kernels("linear", attend_linear, attend_linear)
LINEAR_EXPLICIT = Kernels("linear", attend_linear_explicit, attend_linear_explicit)


def available_backends(window: int, head_size: int) -> dict[str, Backend]:
    """All backends by name. A window applies to self-attention only: target and source positions do not correspond."""
    sliding = SlidingWindow(window)
    name = f"window of {window} positions, fused over the source"
    choices = (
        Backend("auto", FUSED, EXPLICIT, VARLEN, head_size=head_size),
        Backend("fused", FUSED, EXPLICIT),
        Backend("varlen", FUSED, EXPLICIT, VARLEN, True, head_size, frozenset({"dropout", "alibi"})),
        Backend("explicit", EXPLICIT, EXPLICIT),
        Backend("tiled", TILED, EXPLICIT, unsupported=frozenset({"dropout"})),
        Backend(
            "window",
            Kernels(name, sliding.attend, attend_sdpa),
            Kernels(name, sliding.attend_explicit, attend_explicit),
        ),
        Backend("linear", LINEAR, LINEAR_EXPLICIT, unsupported=frozenset({"dropout", "rotary", "alibi"})),
    )
    return {backend.name: backend for backend in choices}


def choose_backend(name: str, window: int, head_size: int, positions: str, dropout: float) -> Backend:
    """The backend of a name; ModelError where it does not support these settings."""
    backends = available_backends(window, head_size)
    chosen, needed = backends[name], {positions, "dropout" if dropout else ""}
    if name == "auto":  # the fastest that supports the settings
        return replace(chosen, packed=None) if backends["varlen"].unsupported & needed else chosen
    alternatives = ", ".join(other for other in backends if not backends[other].unsupported & needed)
    if "dropout" in chosen.unsupported & needed:
        raise ModelError(
            f"attention_backend={name} has no dropout on the weights (attention_dropout={dropout:g}): "
            f"set it to 0, or use attention_backend={alternatives}"
        )
    if positions in chosen.unsupported:
        raise ModelError(
            f"attention_backend={name} does not support positions={positions}: "
            f"use other positions, or attention_backend={alternatives}"
        )
    return chosen
