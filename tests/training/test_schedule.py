"""Schedules rise to the peak, then fall, and are never below 0."""

from itertools import pairwise

import pytest

from nmt.errors import ConfigError
from nmt.training.schedule import Schedule, constant, halving, inverse_sqrt, linear

KINDS = [constant, inverse_sqrt, linear, halving]


def rates(schedule: Schedule, updates: int) -> list[float]:
    return [schedule(update) for update in range(1, updates + 1)]


@pytest.mark.parametrize("kind", KINDS)
def test_without_warm_up_the_first_rate_is_the_peak(kind: type) -> None:
    assert kind(warmup_updates=0, total_updates=5)(1) == 1.0


@pytest.mark.parametrize("kind", KINDS)
def test_a_warm_up_longer_than_the_training_only_rises(kind: type) -> None:
    factors = rates(kind(warmup_updates=9999, total_updates=5), 5)
    assert factors == sorted(factors)
    assert factors[0] > 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("warmup", [0, 1, 2, 5, 7])
def test_every_rate_is_above_zero_and_at_most_the_peak(kind: type, warmup: int) -> None:
    factors = rates(kind(warmup_updates=warmup, total_updates=7), 7)
    assert all(0 < rate <= 1 for rate in factors)
    assert max(factors) == pytest.approx(1)


def test_inverse_sqrt_halves_from_the_warm_up_to_four_times_it() -> None:
    schedule = inverse_sqrt(warmup_updates=100)
    assert schedule(50) == 0.5
    assert schedule(400) == 0.5


def test_linear_falls_in_equal_steps() -> None:
    factors = rates(linear(warmup_updates=2, total_updates=7), 7)
    steps = {round(a - b, 9) for a, b in pairwise(factors[1:])}
    assert len(steps) == 1
    assert linear(warmup_updates=2, total_updates=7)(99) == 0.0


def test_linear_without_an_end_is_refused() -> None:
    with pytest.raises(ConfigError, match="schedule=linear needs an end"):
        linear(warmup_updates=2)


def test_halving_halves_the_rate_at_equal_distances() -> None:
    factors = rates(halving(steady=0.5, halvings=5, total_updates=10), 10)
    assert factors == [1.0] * 5 + [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32]
    factors = rates(halving(steady=5 / 7.5, halvings=5, total_updates=15), 16)
    assert factors == [1.0] * 10 + [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 32]


def test_halving_without_an_end_is_refused() -> None:
    with pytest.raises(ConfigError, match="schedule=halving needs an end"):
        halving()
