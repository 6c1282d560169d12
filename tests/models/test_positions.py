"""Positions against their papers' equations."""

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from nmt.errors import ConfigError, UserError
from nmt.models.backends.layout import Places
from nmt.models.positions import make_positions, slopes

D, H = 12, 3


def places(first: int, end: int) -> Places:
    return Places.between(first, end, torch.device("cpu"))


def angle(place: int, i: int, size: int) -> Tensor:
    return torch.tensor(place / 10_000 ** (2 * i / size), dtype=torch.float64)


def test_sinusoids_are_the_papers_sines_and_cosines():
    table = make_positions("sinusoidal", D, H, 1).add(torch.zeros(1, 2, D, dtype=torch.float64), places(3, 5))[0]
    for row, place in enumerate((3, 4)):
        for i in range(D // 2):
            assert_close(table[row, i], angle(place, i, D).sin(), rtol=0, atol=1e-6)
            assert_close(table[row, D // 2 + i], angle(place, i, D).cos(), rtol=0, atol=1e-6)


def test_learned_positions_are_rows_of_a_table():
    learned = make_positions("learned", D, H, 7)
    x = torch.randn(2, 3, D)
    assert_close(learned.add(x, places(4, 7)), x + D**0.5 * learned.table.weight[4:7])


def test_a_sentence_beyond_the_learned_positions_is_refused_in_a_line():
    learned = make_positions("learned", D, H, 7)
    with pytest.raises(
        UserError, match=r"^a sentence of 8 pieces is longer than the 7 learned.*model\.max_positions.*$"
    ):
        learned.add(torch.zeros(1, 1, D), places(7, 8))


def test_rotary_turns_each_pair_by_place_times_rate():
    turn = make_positions("rotary", D, H, 1).turner(places(5, 6))
    x = torch.randn(1, H, 1, D // H, dtype=torch.float64)
    pairs, turned = (torch.complex(*y.chunk(2, dim=-1)) for y in (x, turn(x)))
    rates = torch.stack([angle(5, i, D // H) for i in range(D // H // 2)])
    assert_close(turned, pairs * torch.polar(torch.ones_like(rates), rates), rtol=0, atol=1e-6)


def test_rotary_products_depend_on_distance_alone():
    rotary = make_positions("rotary", D, H, 1)
    q, k = torch.randn(2, 1, H, 1, D // H, dtype=torch.float64)
    products = [
        (rotary.turner(places(i, i + 1))(q) * rotary.turner(places(j, j + 1))(k)).sum(dim=-1)
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
    assert slopes(heads) == [2.0**-e for e in exponents]


def test_no_positions_change_nothing():
    none, x = make_positions("none", D, H, 1), torch.randn(1, 3, D)
    assert none.add(x, places(0, 3)) is x
    assert none.turner(places(0, 3))(x) is x
    assert none.bias() is None


@pytest.mark.parametrize(
    ("kind", "size", "heads", "way_out"),
    [
        ("absolute", 12, 3, "none, sinusoidal, learned, rotary, alibi"),
        ("rotary", 6, 2, r"a head has 3.*change one"),
    ],
)
def test_impossible_positions_are_refused_with_a_way_out(kind, size, heads, way_out):
    with pytest.raises(ConfigError, match=way_out):
        make_positions(kind, size, heads, 1)


def test_a_table_of_no_positions_is_refused():
    with pytest.raises(ConfigError, match=r"model\.max_positions=0: give a whole number"):
        make_positions("learned", D, H, 0)
