"""The learning rate as a factor of its peak: a pure function of the update, so a resume needs no state."""

import math
from collections.abc import Callable

from nmt.errors import ConfigError

Schedule = Callable[[int], float]


def _warmup_factor(update: int, warmup_updates: int) -> float:
    return min(1.0, update / warmup_updates) if warmup_updates else 1.0


def constant(warmup_updates: int = 0, total_updates: int | None = None) -> Schedule:
    """Warm-up, then the peak. `total_updates` is not used."""
    return lambda update: _warmup_factor(update, warmup_updates)


def inverse_sqrt(warmup_updates: int = 4000, total_updates: int | None = None) -> Schedule:
    """Warm-up, then 1 / sqrt(update), as arXiv:1706.03762, section 5.3; without warm-up the peak is at update 1."""
    peak_update = max(1, warmup_updates)
    return lambda update: min(_warmup_factor(update, warmup_updates), (peak_update / update) ** 0.5)


def linear(warmup_updates: int = 0, total_updates: int | None = None) -> Schedule:
    """Warm-up, then a straight line that reaches 0 one update after the last. Needs a budget in updates or epochs."""
    end = max(_require_end(total_updates, "linear", "inverse_sqrt"), warmup_updates) + 1
    slope = max(1, end - max(1, warmup_updates))
    return lambda update: min(_warmup_factor(update, warmup_updates), max(0.0, (end - update) / slope))


def halving(
    warmup_updates: int = 0, steady: float = 0.5, halvings: int = 5, total_updates: int | None = None
) -> Schedule:
    """The peak for a share `steady` of the training, then half of the last rate at once and at equal distances.

    arXiv:1409.3215, section 3.4; arXiv:1508.04025, section 4.1. Needs a budget in updates or epochs.
    """
    length = max(1, _require_end(total_updates, "halving", "constant") - warmup_updates)
    steady_updates = steady * length
    stage = (length - steady_updates) / halvings

    def rate(update: int) -> float:
        updates_past_steady = update - 1 - warmup_updates - steady_updates
        halvings_done = min(halvings, 1 + math.floor(updates_past_steady / stage)) if updates_past_steady >= 0 else 0
        return min(_warmup_factor(update, warmup_updates), 0.5**halvings_done)

    return rate


def _require_end(total_updates: int | None, name: str, other: str) -> int:
    if total_updates is None:
        raise ConfigError(
            f"schedule={name} needs an end: give training.max_updates or training.max_epochs, or use schedule={other}"
        )
    return total_updates
