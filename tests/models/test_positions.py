"""Positions against their papers' equations."""

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from nmt.errors import ConfigError, UserError
from nmt.models.backends.packing import PositionIds
from nmt.models.positions import alibi_slopes, make_positions

D, H = 12, 3


def position_ids(first: int, end: int) -> PositionIds:
    return PositionIds.range(first, end, torch.device("cpu"))


def angle(position: int, i: int, size: int) -> Tensor:
    return torch.tensor(position / 10_000 ** (2 * i / size), dtype=torch.float64)


def test_sinusoids_are_the_papers_sines_and_cosines():
    table = make_positions("sinusoidal", D, H, 1).add(torch.zeros(1, 2, D, dtype=torch.float64), position_ids(3, 5))[0]
    for row, position in enumerate((3, 4)):
        for i in range(D // 2):
            assert_close(table[row, i], angle(position, i, D).sin(), rtol=0, atol=1e-6)
            assert_close(table[row, D // 2 + i], angle(position, i, D).cos(), rtol=0, atol=1e-6)


def test_learned_positions_are_rows_of_a_table():
    learned = make_positions("learned", D, H, 7)
    x = torch.randn(2, 3, D)
    assert_close(learned.add(x, position_ids(4, 7)), x + D**0.5 * learned.table.weight[4:7])


def test_a_sentence_beyond_the_learned_positions_is_refused_in_a_line():
    learned = make_positions("learned", D, H, 7)
    with pytest.raises(UserError, match=r"^a sentence of 8 pieces is longer than the 7 learned.*max_positions.*$"):
        learned.add(torch.zeros(1, 1, D), position_ids(7, 8))


def test_rotary_rotates_each_pair_by_position_times_frequency():
    rotate = make_positions("rotary", D, H, 1).rotary(position_ids(5, 6))
    x = torch.randn(1, H, 1, D // H, dtype=torch.float64)
    pairs, rotated = (torch.complex(*y.chunk(2, dim=-1)) for y in (x, rotate(x)))
    angles = torch.stack([angle(5, i, D // H) for i in range(D // H // 2)])
    assert_close(rotated, pairs * torch.polar(torch.ones_like(angles), angles), rtol=0, atol=1e-6)


def test_rotary_products_depend_on_distance_alone():
    rotary = make_positions("rotary", D, H, 1)
    q, k = torch.randn(2, 1, H, 1, D // H, dtype=torch.float64)
    products = [
        (rotary.rotary(position_ids(i, i + 1))(q) * rotary.rotary(position_ids(j, j + 1))(k)).sum(dim=-1)
        for i, j in ((7, 4), (107, 104), (3, 0))
    ]
    assert_close(products[0], products[1], rtol=0, atol=1e-4)
    assert_close(products[0], products[2], rtol=0, atol=1e-4)


def test_alibi_takes_the_distance_times_the_heads_slope():
    bias = make_positions("alibi", D, 2, 1).bias()
    expected = -torch.tensor([[[2, 1, 0, 1], [3, 2, 1, 0]]]) * torch.tensor([2**-4, 2**-8])[:, None, None]
    assert_close(bias(torch.tensor([2, 3]), torch.arange(4)), expected)


@pytest.mark.parametrize(
    ("heads", "exponents"),
    [(1, [8]), (4, [2, 4, 6, 8]), (8, [1, 2, 3, 4, 5, 6, 7, 8]), (3, [4, 8, 2]), (6, [2, 4, 6, 8, 1, 3])],
)
def test_alibis_slopes_are_the_papers(heads, exponents):
    assert alibi_slopes(heads) == [2.0**-e for e in exponents]


def test_no_positions_change_nothing():
    none, x = make_positions("none", D, H, 1), torch.randn(1, 3, D)
    assert none.add(x, position_ids(0, 3)) is x
    assert none.rotary(position_ids(0, 3))(x) is x
    assert none.bias() is None


def test_rotary_positions_of_an_odd_head_are_refused_with_an_alternative():
    with pytest.raises(ConfigError, match=r"a head has 3.*change one"):
        make_positions("rotary", 6, 2, 1)
