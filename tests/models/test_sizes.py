"""A fair comparison needs systems of about equal size."""

import pytest
import torch
from hydra.utils import instantiate

from tests.models.tiny import composed

EXPERIMENTS = ["rnn", "bahdanau", "luong", "transformer"]


def parameters(overrides: str, pieces: int) -> int:
    with torch.device("meta"):
        model = instantiate(composed(overrides).model)(src_vocab_size=pieces, tgt_vocab_size=pieces, pad_id=0)
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("size", ["d64", "d192"])
@pytest.mark.parametrize("pieces", [600, 1000, 4000, 8000])
def test_the_four_systems_agree_in_parameters_within_ten_percent(size, pieces):
    counts = [parameters(f"experiment={experiment} size={size}", pieces) for experiment in EXPERIMENTS]
    assert max(counts) <= 1.10 * min(counts), dict(zip(EXPERIMENTS, counts, strict=True))


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_d192_has_four_to_seven_million_parameters(experiment):
    assert 4.0e6 <= parameters(f"experiment={experiment} size=d192", 4000)
    assert parameters(f"experiment={experiment} size=d192", 8000) <= 7.0e6
