"""The learning rate as a factor of its peak: a pure function of the update, so a resume needs no state."""

import math
from collections.abc import Callable

from nmt.errors import ConfigError, require_whole

Schedule = Callable[[int], float]


def _rising(update: int, warmup_updates: int) -> float:
    return min(1.0, update / warmup_updates) if warmup_updates else 1.0


def _checked(warmup_updates: int) -> int:
    if warmup_updates < 0:
        raise ConfigError(f"schedule.warmup_updates={warmup_updates}: it must be 0 or more")
    return warmup_updates


def constant(warmup_updates: int = 0, total_updates: int | None = None) -> Schedule:
    """Warm-up, then the peak. `total_updates` is not used."""
    _checked(warmup_updates)
    return lambda update: _rising(update, warmup_updates)


def inverse_sqrt(warmup_updates: int = 4000, total_updates: int | None = None) -> Schedule:
    """Warm-up, then 1 / sqrt(update), as arXiv:1706.03762, section 5.3; without warm-up the peak is at update 1."""
    turn = max(1, _checked(warmup_updates))
    return lambda update: min(_rising(update, warmup_updates), (turn / update) ** 0.5)


def linear(warmup_updates: int = 0, total_updates: int | None = None) -> Schedule:
    """Warm-up, then a straight line that reaches 0 one update after the last. Needs a budget in updates or epochs."""
    _checked(warmup_updates)
    if total_updates is None:
        raise ConfigError(
            "schedule=linear needs an end: give training.max_updates or training.max_epochs, "
            "or use schedule=inverse_sqrt"
        )
    end = max(total_updates, warmup_updates) + 1
    slope = max(1, end - max(1, warmup_updates))
    return lambda update: min(_rising(update, warmup_updates), max(0.0, (end - update) / slope))


def halving(
    warmup_updates: int = 0, steady: float = 0.5, halvings: int = 5, total_updates: int | None = None
) -> Schedule:
    """The peak for a share `steady` of the training, then half of the last rate at once and at equal distances.

    arXiv:1409.3215, section 3.4; arXiv:1508.04025, section 4.1. Needs a budget in updates or epochs.
    """
    _checked(warmup_updates)
    require_whole("schedule.halvings", halvings)
    if not 0 < steady < 1:
        raise ConfigError(f"schedule.steady={steady}: a share of the training, between 0 and 1")
    if total_updates is None:
        raise ConfigError(
            "schedule=halving needs an end: give training.max_updates or training.max_epochs, or use schedule=constant"
        )
    length = max(1, total_updates - warmup_updates)
    turn = steady * length
    stage = (length - turn) / halvings

    def rate(update: int) -> float:
        beyond = update - 1 - warmup_updates - turn
        halved = min(halvings, 1 + math.floor(beyond / stage)) if beyond >= 0 else 0
        return min(_rising(update, warmup_updates), 0.5**halved)

    return rate
