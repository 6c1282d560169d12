"""Untrained systems between tokenizers learned from a handful of lines."""

import copy
from functools import cache
from pathlib import Path

import pytest
import torch
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate
from omegaconf import OmegaConf

from nmt.data.tokenizer import PAD, Tokenizer, train_tokenizer
from nmt.decoding.translator import Translator
from nmt.training_settings import TokenizerSettings

CONF = Path(__file__).resolve().parents[2] / "conf"
SYSTEMS = ["rnn", "bahdanau", "luong", "transformer"]
LONGEST = 23  # pieces

SOURCES = [
    "the old dog sleeps near the house",
    "a woman sees the café; the cat sleeps there.",
    "we like green apples",
    "yes, the man with the dog walks to the market",
]
TARGETS = [
    "der alte Hund schläft beim Haus",
    "eine Frau sieht das Café; die Katze schläft dort.",
    "wir mögen grüne Äpfel",
    "ja, der Mann mit dem Hund geht zum Markt",
]


@cache
def tokenizers() -> tuple[Tokenizer, Tokenizer]:
    settings = TokenizerSettings.defaults(vocab_size=310, shrink=True)
    return train_tokenizer(SOURCES, settings, normalises=True), train_tokenizer(TARGETS, settings, normalises=False)


@cache
def untrained(system: str) -> Translator:
    torch.manual_seed(7)
    source, target = tokenizers()
    with initialize_config_dir(str(CONF), version_base=None):
        cfg = compose("train", overrides=["data=text", f"experiment={system}", "size.embedding=32"])
    build = instantiate(OmegaConf.to_container(cfg.model, resolve=True))
    model = build(src_vocab_size=source.vocab_size, tgt_vocab_size=target.vocab_size, pad_id=PAD)
    return Translator(model.eval(), source, target, LONGEST)


@pytest.fixture(params=SYSTEMS)
def translator(request: pytest.FixtureRequest) -> Translator:
    return copy.copy(untrained(request.param))


@pytest.fixture
def bahdanau() -> Translator:
    return copy.copy(untrained("bahdanau"))
