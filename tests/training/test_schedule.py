"""The rate rises to its peak, then falls, and is never below 0, whatever the settings."""

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
    got = rates(kind(warmup_updates=9999, total_updates=5), 5)
    assert got == sorted(got)
    assert got[0] > 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("warmup", [0, 1, 2, 5, 7])
def test_no_rate_is_negative_above_the_peak_or_nothing_before_the_end(kind: type, warmup: int) -> None:
    got = rates(kind(warmup_updates=warmup, total_updates=7), 7)
    assert all(0 < rate <= 1 for rate in got)
    assert max(got) == pytest.approx(1)


def test_inverse_sqrt_halves_from_the_warm_up_to_four_times_it() -> None:
    schedule = inverse_sqrt(warmup_updates=100)
    assert schedule(50) == 0.5
    assert schedule(400) == 0.5


def test_linear_falls_in_equal_steps() -> None:
    got = rates(linear(warmup_updates=2, total_updates=7), 7)
    steps = {round(a - b, 9) for a, b in pairwise(got[1:])}
    assert len(steps) == 1
    assert linear(warmup_updates=2, total_updates=7)(99) == 0.0


def test_linear_without_an_end_and_a_negative_warm_up_are_refused() -> None:
    with pytest.raises(ConfigError, match="schedule=linear needs an end"):
        linear(warmup_updates=2)
    with pytest.raises(ConfigError, match="warmup_updates=-1"):
        constant(warmup_updates=-1)


def test_halving_is_steady_and_then_halves_at_once_and_at_equal_distances() -> None:
    got = rates(halving(steady=0.5, halvings=5, total_updates=10), 10)
    assert got == [1.0] * 5 + [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32]
    got = rates(halving(steady=5 / 7.5, halvings=5, total_updates=15), 16)
    assert got == [1.0] * 10 + [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 32]


def test_halving_says_what_it_needs() -> None:
    with pytest.raises(ConfigError, match="schedule=halving needs an end"):
        halving()
    with pytest.raises(ConfigError, match=r"schedule\.steady=1\.5"):
        halving(steady=1.5, total_updates=9)
    with pytest.raises(ConfigError, match=r"schedule\.halvings=0"):
        halving(halvings=0, total_updates=9)
