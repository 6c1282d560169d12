"""What a Transformer's layers are made of      arXiv:1706.03762, 3.1 and 3.3."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor, nn
from torch.nn import functional as F

from nmt.errors import ConfigError
from nmt.models.dropout import dropout
from nmt.models.multihead import CrossAttention, KeysValues, Look, SelfAttention
from nmt.models.positions import Turn


class Parts(NamedTuple):
    """The settings of a layer, and the parts made from them."""

    size: int
    heads: int
    feed_forward_size: int
    norm: str
    activation: str
    dropout: float
    attention_dropout: float

    def residual(self) -> PreNorm | PostNorm:
        kinds: dict[str, type[PreNorm] | type[PostNorm]] = {"pre": PreNorm, "post": PostNorm}
        if self.norm not in kinds:
            raise ConfigError(f"model.norm={self.norm} is unknown: use pre or post")
        return kinds[self.norm](self.size, self.dropout)

    def around(self) -> SelfAttention:
        return SelfAttention(self.size, self.heads, self.attention_dropout)

    def back(self) -> CrossAttention:
        return CrossAttention(self.size, self.heads, self.attention_dropout)

    def feed_forward(self) -> FeedForward:
        return FeedForward(self.size, self.feed_forward_size, self.activation, self.dropout)


class PreNorm(nn.Module):
    """x + sublayer(norm(x)), and one more norm after the last layer      arXiv:2002.04745."""

    def __init__(self, size: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.dropout = dropout

    def enter(self, x: Tensor) -> Tensor:
        """What the sublayer reads."""
        return self.norm(x)

    def leave(self, x: Tensor, update: Tensor) -> Tensor:
        """x and what the sublayer found, put together."""
        return x + dropout(update, self.dropout, self.training)

    def end(self) -> nn.Module:
        return self.norm


class PostNorm(nn.Module):
    """norm(x + sublayer(x))      arXiv:1706.03762, 3.1."""

    def __init__(self, size: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.dropout = dropout

    def enter(self, x: Tensor) -> Tensor:
        """What the sublayer reads."""
        return x

    def leave(self, x: Tensor, update: Tensor) -> Tensor:
        """x and what the sublayer found, put together."""
        return self.norm(x + dropout(update, self.dropout, self.training))

    def end(self) -> nn.Module:
        return nn.Identity()


class FeedForward(nn.Module):
    """W_2 act(W_1 x + b_1) + b_2      arXiv:1706.03762, 3.3."""

    def __init__(self, size: int, inner_size: int, activation: str, dropout: float) -> None:
        super().__init__()
        kinds: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu}
        if activation not in kinds:
            raise ConfigError(f"model.activation={activation} is unknown: use one of {', '.join(kinds)}")
        self.act = kinds[activation]
        self.dropout = dropout
        self.W_1 = nn.Linear(size, inner_size)
        self.W_2 = nn.Linear(inner_size, size)
        for linear in (self.W_1, self.W_2):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.W_2(dropout(self.act(self.W_1(x)), self.dropout, self.training))


class EncoderLayer(nn.Module):
    """Self-attention over the whole source, then feed-forward."""

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        self.around, self.around_residual = parts.around(), parts.residual()
        self.feed_forward, self.feed_forward_residual = parts.feed_forward(), parts.residual()

    def forward(self, x: Tensor, around: Look, turn: Turn) -> Tensor:
        """(B, S, D) -> (B, S, D)."""
        x = self.around_residual.leave(x, self.around(self.around_residual.enter(x), around, turn))
        return self.feed_forward_residual.leave(x, self.feed_forward(self.feed_forward_residual.enter(x)))


class Looks(NamedTuple):
    """What a decoder's layer looks at."""

    so_far: Look
    turn: Turn
    back: Look  # over the source


class DecoderLayer(nn.Module):
    """Self-attention over earlier target pieces, attention over the source, feed-forward."""

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        self.around, self.around_residual = parts.around(), parts.residual()
        self.cross, self.cross_residual = parts.back(), parts.residual()
        self.feed_forward, self.feed_forward_residual = parts.feed_forward(), parts.residual()

    def forward(self, x: Tensor, memory: KeysValues, looks: Looks) -> tuple[Tensor, Tensor | None]:
        """All target positions at once: (B, T, D) -> (B, T, D), and weights (B, H, T, S) if `back` makes any."""
        found = self.around(self.around_residual.enter(x), looks.so_far, looks.turn)
        return self.rest(self.around_residual.leave(x, found), memory, looks)

    def step(self, x: Tensor, past: KeysValues, memory: KeysValues, looks: Looks) -> tuple[Tensor, KeysValues]:
        """One position (B, 1, D) after `past` -> (B, 1, D), and `past` longer by it."""
        found, past = self.around.step(self.around_residual.enter(x), past, looks.so_far, looks.turn)
        return self.rest(self.around_residual.leave(x, found), memory, looks)[0], past

    def rest(self, x: Tensor, memory: KeysValues, looks: Looks) -> tuple[Tensor, Tensor | None]:
        """What follows self-attention."""
        found, weights = self.cross(self.cross_residual.enter(x), memory, looks.back)
        x = self.cross_residual.leave(x, found)
        return self.feed_forward_residual.leave(x, self.feed_forward(self.feed_forward_residual.enter(x))), weights
