"""The contract between the four systems and everything that trains, searches or explains them.

Shapes, here and in every file of this folder:

    B sentences in a batch        S source pieces      T target pieces (1 in `step`)
    D numbers in a query, E in an encoder state, A in a key, V pieces in the target vocabulary
    L layers, H heads, K numbers a head
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from nmt.errors import ConfigError


class Carried(NamedTuple):
    """Real numbers of the source that reach the decoder: some for the whole sentence, some for each of its pieces.

    This is what the fixed-length bottleneck is made of; vectors computed from these count once.
    """

    fixed: int
    per_piece: int


class Seq2Seq(nn.Module, ABC):
    """Training needs `forward` and `project`; search needs `encode`, `start`, `step` and `project`'s weights.

    Ids are padded on the right with `pad_id`; a mask (B, S) is True where a token is real. A memory and a state
    are tensors in (nested) tuples, batch first in every one, so that `reorder` can pick sentences from them.
    They come in and go out; a module remembers nothing but weights.
    """

    pad_id: int

    @abstractmethod
    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """Teacher forcing: (B, S) and (B, T) ids -> features (B, T, R), the input of `project`."""

    @abstractmethod
    def project(self, features: Tensor) -> Tensor:
        """Features (..., R) -> logits (..., V)."""

    @abstractmethod
    def encode(self, src: Tensor) -> Any:
        """(B, S) ids -> the memory: what decoding reads and never changes."""

    @abstractmethod
    def start(self, memory: Any) -> Any:
        """The decoder's state before the first target piece."""

    @abstractmethod
    def step(self, token: Tensor, state: Any, memory: Any) -> tuple[Tensor, Any]:
        """(B,) ids of the previous pieces -> (B, V) logits of the next ones, and the next state."""

    @abstractmethod
    def weights(self, src: Tensor, tgt_in: Tensor) -> Tensor | None:
        """Attention over the source, (B, L, H, T, S); None where the model does not look back at it."""

    def carried(self) -> Carried | None:
        """How much of the source the decoder can read; None where a model does not say."""
        return None

    def attention_on(self, device: torch.device, dtype: torch.dtype) -> str:
        """In words, what computes attention on a device with products in `dtype`; empty where there is no choice.

        ConfigError where the model cannot be trained so.
        """
        return ""


def reorder(state: Any, index: Tensor) -> Any:
    """The sentences `index` (N,) of a state or a memory: beams that go on, sentences not yet finished."""
    if state is None:
        return None
    if isinstance(state, Tensor):
        return state.index_select(0, index)
    parts = [reorder(part, index) for part in state]
    if isinstance(state, list):
        return parts
    # a NamedTuple takes its fields one by one, a tuple takes them together
    return tuple(parts) if type(state) is tuple else type(state)(*parts)


class Vocabulary(NamedTuple):
    """Where ids become vectors and vectors become scores of ids."""

    source: nn.Embedding
    target: nn.Embedding
    output: nn.Linear


def vocabulary(
    src_size: int, tgt_size: int, size: int, pad_id: int, tie_embeddings: str, output_size: int | None = None
) -> Vocabulary:
    """The three tables of a model; entries ~ N(0, 1/size), zeros for the padding piece.

    tie_embeddings says which share one table (arXiv:1608.05859): "none", "target" (target embedding and output
    layer) or "all" (source embedding too). The output layer reads `size` numbers, or `output_size`.
    """
    output_size = output_size or size
    if tie_embeddings not in ("none", "target", "all"):
        raise ConfigError(f"model.tie_embeddings={tie_embeddings} is unknown: use none, target or all")
    if tie_embeddings == "all" and src_size != tgt_size:
        raise ConfigError(
            f"model.tie_embeddings=all needs one vocabulary for both sides (source {src_size}, target {tgt_size}): "
            "use tokenizer.joint=true or model.tie_embeddings=target"
        )
    if tie_embeddings != "none" and output_size != size:
        raise ConfigError(
            f"model.tie_embeddings={tie_embeddings} needs an output layer that reads as many numbers as an embedding "
            f"has ({output_size} and {size}): set model.readout_size=null or model.tie_embeddings=none"
        )
    source = nn.Embedding(src_size, size, padding_idx=pad_id)
    target = nn.Embedding(tgt_size, size, padding_idx=pad_id)
    output = nn.Linear(output_size, tgt_size)
    for table in (source, target, output):
        nn.init.normal_(table.weight, std=table.weight.size(1) ** -0.5)
    nn.init.zeros_(output.bias)
    with torch.no_grad():
        source.weight[pad_id] = 0.0
        target.weight[pad_id] = 0.0
    if tie_embeddings != "none":
        output.weight = target.weight
    if tie_embeddings == "all":
        source.weight = target.weight
    return Vocabulary(source, target, output)
