"""Positional information: added to embeddings, rotated into queries and keys, or added to scores."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from nmt.errors import ModelError
from nmt.models.backends.masks import Bias
from nmt.models.backends.packing import PositionIds
from nmt.models.ops import upcast

Rotate = Callable[[Tensor], Tensor]  # queries or keys (B, H, T, K) -> the same, rotated by their positions


class Positions(nn.Module):
    """None: order enters through the causal mask alone. Each subclass overrides one method."""

    def add(self, x: Tensor, position_ids: PositionIds) -> Tensor:
        """Embeddings (B, T, D) plus positional information."""
        return x

    def rotary(self, position_ids: PositionIds) -> Rotate:
        """The rotation of the queries and keys of self-attention."""
        return lambda x: x

    def bias(self) -> Bias | None:
        """The bias added to the scores of self-attention."""
        return None


class Sinusoidal(Positions):
    """sin and cos of position / 10000^(2i/D)      arXiv:1706.03762, 3.5.

    All sines come before all cosines: a fixed permutation of the paper's numbers, which the weights absorb.
    """

    def add(self, x: Tensor, position_ids: PositionIds) -> Tensor:
        sin, cos = sin_cos(position_ids.ids, x.size(-1))
        return x + torch.cat([sin, cos], dim=-1).to(x.dtype)


class Learned(Positions):
    """A vector for each position, from a table      arXiv:1705.03122, 3.1; entries ~ N(0, 1/D) like the embeddings'."""

    def __init__(self, size: int, max_positions: int) -> None:
        super().__init__()
        self.table = nn.Embedding(max_positions, size)
        nn.init.normal_(self.table.weight, std=size**-0.5)

    def add(self, x: Tensor, position_ids: PositionIds) -> Tensor:
        max_positions = self.table.num_embeddings
        if position_ids.stop > max_positions:
            raise ModelError(
                f"a sentence of {position_ids.stop} pieces is longer than the {max_positions} learned positions: "
                f"train with max_positions={position_ids.stop} or more, or with positions=sinusoidal"
            )
        return x + math.sqrt(x.size(-1)) * self.table(position_ids.ids)


class Rotary(Positions):
    """Dimensions i and i + K/2 of a query and of a key rotated by position / 10000^(2i/K)      arXiv:2104.09864.

    So q . k depends on the distance between them. The paper rotates neighbours, 2i and 2i + 1: another permutation.
    """

    def rotary(self, position_ids: PositionIds) -> Rotate:
        def rotate(x: Tensor) -> Tensor:
            sin, cos = sin_cos(position_ids.ids, x.size(-1))  # (T, K / 2)
            left, right = upcast(x).chunk(2, dim=-1)
            return torch.cat([left * cos - right * sin, right * cos + left * sin], dim=-1).to(x.dtype)

        return rotate


class Alibi(Positions):
    """-slope x distance is added to the scores, with a slope for each head      arXiv:2108.12409.

    The paper is causal; in the encoder, pieces after a query are at the same distance as those before it.
    """

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.slopes = alibi_slopes(heads)

    def bias(self) -> Bias:
        return self.alibi_bias

    def alibi_bias(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Positions (..., T) and (..., S) -> (H, ..., T, S)."""
        distance = (queries[..., :, None] - keys[..., None, :]).abs()
        slopes = torch.tensor(self.slopes, device=distance.device)
        return slopes.view(-1, *[1] * distance.dim()) * -distance


def alibi_slopes(heads: int) -> list[float]:
    """2^(-8/n), 2^(-16/n), ... for n heads, a power of two; other n add every second slope of the next power."""
    power = 2 ** int(math.log2(heads))
    first = [2 ** (-8 * (i + 1) / power) for i in range(power)]
    interleaved = [2 ** (-8 * (i + 1) / (2 * power)) for i in range(0, 2 * power, 2)]
    return first + interleaved[: heads - power]


def sin_cos(positions: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """sin and cos of position x frequency, (..., T, size / 2) each, the frequencies from 1 down to nearly 1 / 10000."""
    frequencies = torch.exp(torch.arange(size // 2, device=positions.device) * (-2 * math.log(10_000) / size))
    angles = positions[..., None].float() * frequencies
    return angles.sin(), angles.cos()


def make_positions(name: str, size: int, heads: int, max_positions: int) -> Positions:
    """The positions of a name, for embeddings of size `size` and `heads` heads."""
    if name == "rotary" and size // heads % 2:
        raise ModelError(
            f"positions=rotary rotates pairs of dimensions, and a head has {size // heads} (embedding_size={size} / "
            f"heads={heads}): change one of them"
        )
    if name == "learned":
        return Learned(size, max_positions)
    if name == "alibi":
        return Alibi(heads)
    return {"none": Positions, "sinusoidal": Sinusoidal, "rotary": Rotary}[name]()
