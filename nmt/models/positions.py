"""Where pieces learn their places: added to embeddings, turned into queries and keys, or added to scores."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from nmt.errors import ConfigError, UserError, require_whole
from nmt.models.backends.layout import Places
from nmt.models.backends.sight import Bias
from nmt.models.precision import wide

Turn = Callable[[Tensor], Tensor]  # queries or keys (B, H, T, K) -> the same, knowing their places


class Positions(nn.Module):
    """None: order is known by causality alone. Each kind below says one thing more."""

    def add(self, x: Tensor, places: Places) -> Tensor:
        """Embeddings (B, T, D) with their places in them."""
        return x

    def turner(self, places: Places) -> Turn:
        """What is done to the queries and keys of self-attention before they meet."""
        return lambda x: x

    def bias(self) -> Bias | None:
        """What is added to the scores of self-attention."""
        return None


class Sinusoidal(Positions):
    """sin and cos of place / 10000^(2i/D)      arXiv:1706.03762, 3.5.

    All sines come before all cosines: a fixed permutation of the paper's numbers, which the weights absorb.
    """

    def add(self, x: Tensor, places: Places) -> Tensor:
        sin, cos = angles(places.numbers, x.size(-1))
        return x + torch.cat([sin, cos], dim=-1).to(x.dtype)


class Learned(Positions):
    """A vector for each place of a table      arXiv:1705.03122, 3.1; entries ~ N(0, 1/D) like the embeddings'."""

    def __init__(self, size: int, longest: int) -> None:
        super().__init__()
        self.table = nn.Embedding(longest, size)
        nn.init.normal_(self.table.weight, std=size**-0.5)

    def add(self, x: Tensor, places: Places) -> Tensor:
        longest = self.table.num_embeddings
        if places.end > longest:
            raise UserError(
                f"a sentence of {places.end} pieces is longer than the {longest} learned positions: "
                "train with a larger model.max_positions, or with model.positions=sinusoidal, which has no end"
            )
        return x + math.sqrt(x.size(-1)) * self.table(places.numbers)


class Rotary(Positions):
    """Numbers i and i + K/2 of a query and of a key turned by place / 10000^(2i/K)      arXiv:2104.09864.

    So q . k depends on the distance between them. The paper turns neighbours, 2i and 2i + 1: another permutation.
    """

    def turner(self, places: Places) -> Turn:
        def turn(x: Tensor) -> Tensor:
            sin, cos = angles(places.numbers, x.size(-1))  # (T, K / 2)
            left, right = wide(x).chunk(2, dim=-1)
            return torch.cat([left * cos - right * sin, right * cos + left * sin], dim=-1).to(x.dtype)

        return turn


class Alibi(Positions):
    """- slope x distance added to the scores, another slope for each head      arXiv:2108.12409.

    The paper looks back only; where pieces after a query are seen too, they are as far as those before it.
    """

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.slopes = slopes(heads)

    def bias(self) -> Bias:
        return self.near

    def near(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Places (..., T) and (..., S) -> (H, ..., T, S)."""
        distance = (queries[..., :, None] - keys[..., None, :]).abs()
        slopes = torch.tensor(self.slopes, device=distance.device)
        return slopes.view(-1, *[1] * distance.dim()) * -distance


def slopes(heads: int) -> list[float]:
    """2^(-8/n), 2^(-16/n), ... for n heads, a power of two; others take every second slope of the next power too."""
    power = 2 ** int(math.log2(heads))
    first = [2 ** (-8 * (i + 1) / power) for i in range(power)]
    between = [2 ** (-8 * (i + 1) / (2 * power)) for i in range(0, 2 * power, 2)]
    return first + between[: heads - power]


def angles(numbers: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """sin and cos of place x rate, (..., T, size / 2) each, the rates from 1 down to nearly 1 / 10000."""
    rates = torch.exp(torch.arange(size // 2, device=numbers.device) * (-2 * math.log(10_000) / size))
    turned = numbers[..., None].float() * rates
    return turned.sin(), turned.cos()


def make_positions(kind: str, size: int, heads: int, longest: int) -> Positions:
    """By name, for embeddings of `size` numbers and `heads` heads; ConfigError where it is unknown."""
    require_whole("model.max_positions", longest)
    make: dict[str, Callable[[], Positions]] = {
        "none": Positions,
        "sinusoidal": Sinusoidal,
        "learned": lambda: Learned(size, longest),
        "rotary": Rotary,
        "alibi": lambda: Alibi(heads),
    }
    if kind not in make:
        raise ConfigError(f"model.positions={kind} is unknown: use one of {', '.join(make)}")
    if kind == "rotary" and size // heads % 2:
        raise ConfigError(
            f"model.positions=rotary turns pairs of numbers, and a head has {size // heads} (model.embedding_size="
            f"{size} / model.heads={heads}): change one of them"
        )
    return make[kind]()
