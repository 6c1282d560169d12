"""The contract between the four systems and everything that trains, searches or explains them.

Shapes, here and in every file of this folder:

    B sentences in a batch        S source pieces      T target pieces (1 in `step`)
    D size of a query, E of an encoder state, A of a key, R of the features; V pieces in the target vocabulary
    L layers, H heads, K size of a head
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from nmt.errors import ModelError


class BottleneckSize(NamedTuple):
    """How many real numbers of the source reach the decoder: for the whole sentence, and for each of its pieces.

    The width of the fixed-length bottleneck; vectors computed from these numbers do not count again.
    """

    fixed: int
    per_piece: int


class Seq2Seq(nn.Module, ABC):
    """Training needs `forward` and `project`; search needs `encode`, `start`, `step` and `project`'s weights.

    Ids are padded on the right with `pad_id`; a mask (B, S) is True where a token is real. A memory and a state
    are tensors in (nested) tuples, batch first in every one, so that `reorder` can select sentences from them.
    They are arguments and results; a module holds nothing but weights.
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
        """(B, S) ids -> the memory, which decoding reads and never changes."""

    @abstractmethod
    def start(self, memory: Any) -> Any:
        """The decoder's state before the first target piece."""

    @abstractmethod
    def step(self, token: Tensor, state: Any, memory: Any) -> tuple[Tensor, Any]:
        """(B,) ids of the previous pieces -> (B, V) logits of the next ones, and the next state."""

    @abstractmethod
    def weights(self, src: Tensor, tgt_in: Tensor) -> Tensor | None:
        """Attention over the source, (B, L, H, T, S); None for a model without attention."""

    def bottleneck_size(self) -> BottleneckSize | None:
        """The numbers of the source that the decoder can read; None where a model does not say."""
        return None

    def describe_attention(self, device: torch.device, dtype: torch.dtype) -> str:
        """The attention kernel for training on a device with products in `dtype`; empty where there is no choice.

        ModelError where the model cannot be trained there.
        """
        return ""


def reorder(state: Any, index: Tensor) -> Any:
    """The sentences `index` (N,) of a state or a memory: for surviving beams and unfinished sentences."""
    if state is None:
        return None
    if isinstance(state, Tensor):
        return state.index_select(0, index)
    parts = [reorder(part, index) for part in state]
    if isinstance(state, list):
        return parts
    # a NamedTuple takes its fields one by one, a tuple takes them together
    return tuple(parts) if type(state) is tuple else type(state)(*parts)


class EmbeddingTables(NamedTuple):
    """Input embeddings of both sides and the output layer."""

    source: nn.Embedding
    target: nn.Embedding
    output: nn.Linear


def embedding_tables(
    src_size: int, tgt_size: int, embedding_size: int, pad_id: int, tie_embeddings: str, output_size: int | None = None
) -> EmbeddingTables:
    """The three weight tables of a model; entries ~ N(0, 1/size), zeros for the padding piece.

    tie_embeddings says which share one table (arXiv:1608.05859): "none", "target" (target embedding and output
    layer) or "all" (source embedding too). The output layer reads vectors of `output_size`
    (None: the embedding size).
    """
    output_size = output_size or embedding_size
    if tie_embeddings == "all" and src_size != tgt_size:
        raise ModelError(
            f"tie_embeddings=all needs one vocabulary for both sides (source {src_size}, target {tgt_size}): "
            "use a joint one (tokenizer.joint=true) or tie_embeddings=target"
        )
    if tie_embeddings != "none" and output_size != embedding_size:
        raise ModelError(
            f"tie_embeddings={tie_embeddings} needs an output layer that reads vectors of the embedding size "
            f"({output_size} and {embedding_size}): set readout_size=null or tie_embeddings=none"
        )
    source = nn.Embedding(src_size, embedding_size, padding_idx=pad_id)
    target = nn.Embedding(tgt_size, embedding_size, padding_idx=pad_id)
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
    return EmbeddingTables(source, target, output)
