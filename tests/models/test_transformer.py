"""What is the Transformer's own: weights from the explicit path, positions, ties, and refusals."""

import pytest
import torch
from torch.testing import assert_close

from nmt.errors import ConfigError
from nmt.models.transformer import Transformer

SRC = torch.tensor([[5, 6, 7, 22, 3], [9, 8, 3, 0, 0]])
TGT_IN = torch.tensor([[2, 5, 6, 18], [2, 7, 0, 0]])


def test_the_path_that_gives_weights_gives_the_features_of_the_fast_one(build):
    model = build("experiment=transformer").double()
    features, weights = model.teach(SRC, TGT_IN, model.backend.explicit)
    assert_close(features, model(SRC, TGT_IN))
    assert_close(model.weights(SRC, TGT_IN), torch.stack(weights, dim=1))
    assert model.weights(SRC, TGT_IN).shape == (2, 2, 3, 4, 5)


def test_dropout_on_weights_acts_in_training_only(build):
    model = build("experiment=transformer model.attention_dropout=0.5")
    assert torch.equal(model(SRC, TGT_IN), model(SRC, TGT_IN))
    model.train()
    assert not torch.equal(model(SRC, TGT_IN), model(SRC, TGT_IN))


def test_a_tied_target_shares_one_table(build):
    model = build("experiment=transformer model.tie_embeddings=target")
    assert model.output.weight is model.target.weight
    assert model.source.weight is not model.target.weight


def test_all_tied_tables_are_one(build):
    model = build("experiment=transformer model.tie_embeddings=all", 23, 23)
    assert model.output.weight is model.target.weight is model.source.weight


def test_tying_all_with_two_vocabularies_is_refused():
    with pytest.raises(ConfigError, match=r"source 23, target 19.*tokenizer.joint=true"):
        settings(tie_embeddings="all")


@pytest.mark.parametrize(
    ("setting", "value", "way_out"),
    [
        ("norm", "middle", "pre or post"),
        ("activation", "swish", "relu, gelu"),
        ("heads", 4, "divide"),
        ("tie_embeddings", "some", "none, target or all"),
    ],
)
def test_an_impossible_setting_is_refused_with_a_way_out(setting, value, way_out):
    with pytest.raises(ConfigError, match=way_out):
        settings(**{setting: value})


def settings(**changed: object) -> Transformer:
    chosen = {
        "embedding_size": 6,
        "heads": 3,
        "feed_forward_size": 11,
        "layers": 1,
        "norm": "pre",
        "activation": "relu",
        "dropout": 0.0,
        "attention_dropout": 0.0,
        "tie_embeddings": "none",
    }
    return Transformer(23, 19, 0, **(chosen | changed))
