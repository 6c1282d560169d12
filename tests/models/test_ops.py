"""Dropout with fewer random draws than the library's."""

import pytest
import torch
from torch.testing import assert_close

from nmt.models.ops import dropout


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.75])
def test_the_stated_share_is_zeroed_and_the_mean_is_kept(rate):
    out = dropout(torch.ones(101, 997), rate, training=True)
    assert out.eq(0).double().mean().item() == pytest.approx(rate, abs=0.01)
    assert_close(out[out != 0], torch.full((int(out.count_nonzero()),), 1 / (1 - rate)))
    assert out.mean().item() == pytest.approx(1.0, abs=0.02)


def test_the_gradient_is_masked_and_scaled_like_the_output():
    x = torch.randn(7, 11, requires_grad=True)
    out = dropout(x, 0.3, training=True)
    out.sum().backward()
    assert_close(x.grad * x, out)


def test_neighbours_are_dropped_independently():
    kept = dropout(torch.ones(100_000), 0.5, training=True).ne(0).double()
    for distance in (1, 2, 3, 4):
        both_kept = (kept[:-distance] * kept[distance:]).mean().item()
        assert both_kept == pytest.approx(0.25, abs=0.01)


@pytest.mark.parametrize(("rate", "training"), [(0.0, True), (0.9, False)])
def test_without_a_rate_or_training_nothing_changes(rate, training):
    x = torch.randn(7, 11)
    assert dropout(x, rate, training) is x


def test_the_same_seed_drops_the_same_numbers():
    x = torch.ones(7, 11)
    torch.manual_seed(5)
    first = dropout(x, 0.5, training=True)
    torch.manual_seed(5)
    assert torch.equal(dropout(x, 0.5, training=True), first)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_the_dtype_is_kept(dtype):
    assert dropout(torch.ones(5, 7, dtype=dtype), 0.5, training=True).dtype == dtype
