"""Sentences are selected from states of any nesting."""

from typing import NamedTuple

import torch
from torch import Tensor

from nmt.models.seq2seq import reorder


class Pair(NamedTuple):
    left: Tensor
    right: tuple[Tensor, ...] | None


def test_reorder_selects_rows_of_every_tensor_and_keeps_the_nesting():
    rows = torch.arange(3)[:, None]
    state = (Pair(rows, (rows + 10,)), [rows + 20, None])
    pair, rest = reorder(state, torch.tensor([2, 0, 2, 1]))
    assert isinstance(pair, Pair)
    assert pair.left.flatten().tolist() == [2, 0, 2, 1]
    assert pair.right[0].flatten().tolist() == [12, 10, 12, 11]
    assert isinstance(rest, list)
    assert rest[0].flatten().tolist() == [22, 20, 22, 21]
    assert rest[1] is None


def test_reorder_leaves_its_argument_alone():
    rows = torch.arange(3)[:, None]
    reorder((rows,), torch.tensor([2, 1, 0]))
    assert rows.flatten().tolist() == [0, 1, 2]
