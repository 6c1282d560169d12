"""Initial weights as the papers state them."""

import pytest
import torch
from torch.testing import assert_close

LARGE = " model.embedding_size=50 model.encoder_size=40 model.hidden_size=80"


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_groundhogs_recurrent_matrices_are_orthogonal_and_the_others_small(build, cell):
    model = build(f"experiment=bahdanau model.init=groundhog model.cell={cell} model.layers=2{LARGE}")
    weights = dict(model.named_parameters())
    recurrent = [name for name in weights if "weight_hh" in name or "hidden_to_gates.weight" in name]
    assert len(recurrent) == 2 * 2 + 2
    for name in recurrent:
        for gate in weights[name].split(weights[name].size(1)):
            assert_close(gate @ gate.T, torch.eye(len(gate)), rtol=0, atol=1e-5)
    for name, weight in weights.items():
        if weight.dim() == 1:
            assert not weight.any(), name
        elif name.startswith("attention"):
            assert weight.std().item() == pytest.approx(0.001, rel=0.2), name
        elif name not in recurrent:
            assert weight.std().item() == pytest.approx(0.01, rel=0.2), name


def test_uniform_fills_every_weight_up_to_its_range_and_no_further(build):
    model = build(f"experiment=luong model.init=uniform model.init_range=0.08 model.cell=lstm{LARGE}")
    for name, weight in model.named_parameters():
        assert weight.abs().max() <= 0.08, name
        assert weight.std().item() == pytest.approx(0.08 / 3**0.5, rel=0.2), name


@pytest.mark.parametrize("init", ["default", "groundhog", "uniform"])
@pytest.mark.parametrize("tied", ["none", "target"])
def test_the_padding_piece_stays_zero(build, init, tied):
    model = build(f"experiment=luong model.init={init} model.tie_embeddings={tied}")
    assert not model.source_embedding.weight[0].any()
    assert not model.target_embedding.weight[0].any()
    assert model.target_embedding.weight[1].any()
