"""The Transformer: dropout on weights, tied embeddings, refused settings."""

import pytest
import torch

from nmt.errors import ConfigError
from nmt.models.transformer import Transformer

SRC = torch.tensor([[5, 6, 7, 22, 3], [9, 8, 3, 0, 0]])
TGT_IN = torch.tensor([[2, 5, 6, 18], [2, 7, 0, 0]])


def test_dropout_on_weights_acts_in_training_only(build):
    model = build("experiment=transformer model.attention_dropout=0.5")
    assert torch.equal(model(SRC, TGT_IN), model(SRC, TGT_IN))
    model.train()
    assert not torch.equal(model(SRC, TGT_IN), model(SRC, TGT_IN))


def test_a_tied_target_shares_one_table(build):
    model = build("experiment=transformer model.tie_embeddings=target")
    assert model.output_layer.weight is model.target_embedding.weight
    assert model.source_embedding.weight is not model.target_embedding.weight


def test_all_tied_tables_are_one(build):
    model = build("experiment=transformer model.tie_embeddings=all", 23, 23)
    assert model.output_layer.weight is model.target_embedding.weight is model.source_embedding.weight


def test_tying_all_with_two_vocabularies_is_refused():
    with pytest.raises(ConfigError, match=r"source 23, target 19.*tokenizer.joint=true"):
        transformer(tie_embeddings="all")


def test_heads_that_do_not_divide_the_width_are_refused():
    with pytest.raises(ConfigError, match="heads=4 does not divide embedding_size=6"):
        transformer(heads=4)


def transformer(**changed: object) -> Transformer:
    settings = {
        "embedding_size": 6,
        "heads": 3,
        "feed_forward_size": 11,
        "layers": 1,
        "norm": "pre",
        "activation": "relu",
        "dropout": 0.0,
        "attention_dropout": 0.0,
        "tie_embeddings": "none",
        "attention_backend": "auto",
        "attention_window": 128,
        "positions": "sinusoidal",
        "max_positions": 5,
    }
    return Transformer(23, 19, 0, **(settings | changed))
