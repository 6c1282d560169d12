"""Fixtures: the tiny models of `tiny.py`, a fresh copy for each test."""

import copy
from collections.abc import Callable

import pytest

from nmt.models.seq2seq import Seq2Seq
from tests.models.tiny import SLOW_VARIANTS, VARIANTS, build_tiny


@pytest.fixture
def build() -> Callable[..., Seq2Seq]:
    """build("experiment=luong attention=dot") is that model, tiny, in evaluation mode."""
    return lambda *arguments: copy.deepcopy(build_tiny(*arguments)).eval()


@pytest.fixture(params=[*VARIANTS, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW_VARIANTS)])
def model(request: pytest.FixtureRequest) -> Seq2Seq:
    """Every configured variant of every system, in float64 and evaluation mode."""
    return copy.deepcopy(build_tiny(request.param)).double().eval()
