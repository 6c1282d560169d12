"""Models built as the programs build them: through the configuration, but tiny."""

import os
from functools import cache
from pathlib import Path

import torch
from hydra import compose, initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

from nmt.models.seq2seq import Seq2Seq

CONF = Path(__file__).resolve().parents[2] / "conf"
USER_CONF = os.environ.get("NMT_CONF")  # a user's own folder of configurations, as for --config-dir
SRC_PIECES, TGT_PIECES = 23, 19
PAD, BOS, EOS = 0, 2, 3

# distinct primes where the model allows it; encoder states and decoder states are equally wide for `dot`
TINY = {
    "embedding": 6,
    "attention": 7,
    "dropout": 0.0,
    "bahdanau": {"encoder": 5, "hidden": 10},
    "luong": {"encoder": 5, "hidden": 10},
    "transformer": {"layers": 2, "heads": 3, "feed_forward": 11},
}

CELLS = ["", " model.cell=lstm", " model.layers=2", " model.layers=2 model.cell=lstm"]
SCORERS = ["additive", "dot", "scaled_dot", "general", "concat"]
NEW_SCORERS = [
    "location",
    "local_m model.attention.window=1",
    "local_p model.attention.window=1",
    "local_p model.attention.window=2 attention@model.attention.score=additive",
    "mean",
    "random",
]
NO_INPUT_FEEDING = "experiment=luong model.input_feeding=false"
VARIANTS = [
    *[f"experiment={experiment}{settings}" for experiment in ("rnn", "bahdanau", "luong") for settings in CELLS],
    *[f"experiment={experiment} attention={scorer}" for experiment in ("bahdanau", "luong") for scorer in SCORERS],
    *[f"experiment={experiment} attention={scorer}" for experiment in ("bahdanau", "luong") for scorer in NEW_SCORERS],
    *[f"{NO_INPUT_FEEDING} attention={scorer}" for scorer in ("additive", "dot", "none", *NEW_SCORERS)],
    "experiment=rnn attention=initial_state",
    "experiment=rnn attention=initial_state model.layers=2 model.cell=lstm",
    "experiment=rnn model.summary=max",
    "experiment=rnn model.summary=mean attention=initial_state",
    "experiment=rnn model.summary=last_forward model.bidirectional=false",
    "experiment=rnn model.context_in_readout=false",
    "experiment=rnn model.bridge=copy model.layers=2 model.cell=lstm",
    "experiment=luong attention=initial_state model.bridge=copy model.cell=lstm model.reverse_source=true",
    "experiment=luong model.bidirectional=false model.encoder_size=10 model.bridge=copy model.reverse_source=true",
    "experiment=bahdanau model.reverse_source=true model.summary=last_forward",
    "experiment=bahdanau model.init=groundhog model.readout_size=7 attention=general",
    "experiment=luong model.init=uniform model.cell=lstm attention=local_p",
    "experiment=bahdanau model.bidirectional=false model.layers=2",
    "experiment=bahdanau model.tie_embeddings=target",
    "experiment=luong model.bidirectional=false",
    "experiment=luong model.layers=2 model.cell=lstm model.input_feeding=false",
    "experiment=transformer",
    "experiment=transformer model.norm=post",
    "experiment=transformer model.tie_embeddings=target model.activation=gelu",
    *[f"experiment=transformer attention_backend={name}" for name in ("tiled", "linear")],
    *[f"experiment=transformer model.positions={name}" for name in ("learned", "rotary", "alibi")],
    # a window of 4: two layers of it reach across the longest sentence of the tests
    "experiment=transformer attention_backend=window model.attention_window=4 model.positions=alibi",
]
# every other attention in conf/attention or in the user's own folder is tested without being named here
NOT_SCORERS = {"none", "initial_state", "multihead"}
OTHER_ATTENTIONS = sorted(
    {path.stem for folder in (CONF, Path(USER_CONF or CONF)) for path in (folder / "attention").glob("*.yaml")}
    - {scorer.split()[0] for scorer in (*SCORERS, *NEW_SCORERS)}
    - NOT_SCORERS
)
VARIANTS += [
    f"experiment={experiment} attention={name}" for experiment in ("bahdanau", "luong") for name in OTHER_ATTENTIONS
]
SLOW_VARIANTS = [
    "experiment=transformer attention_backend=explicit",
    "experiment=transformer attention_backend=window model.attention_window=4",
    "experiment=transformer model.positions=none",
    *[f"experiment=transformer attention_backend={name} model.positions=alibi" for name in ("explicit", "tiled")],
    "experiment=transformer attention_backend=window model.attention_window=4 model.positions=rotary",
    "experiment=transformer attention_backend=tiled model.positions=rotary",
    "experiment=transformer attention_backend=linear model.positions=learned",
]

# every recurrent scorer in every order with every summary, and those without attention
ORDERS = ["experiment=bahdanau", "experiment=luong", NO_INPUT_FEEDING]
ATTENDING = [f"attention={scorer}" for scorer in (*SCORERS, *NEW_SCORERS)]
WITHOUT_ATTENTION = ["attention=none", "attention=initial_state"]
SUMMARIES = ["last_both", "max", "mean", "last_forward"]
PRODUCT = [
    f"{order} {attention} model.summary={summary}"
    + (" model.bidirectional=false" if summary == "last_forward" and attention in WITHOUT_ATTENTION else "")
    for order in ORDERS
    for attention in ATTENDING + WITHOUT_ATTENTION
    for summary in SUMMARIES
]


@cache
def _compose(choices: tuple[str, ...]) -> DictConfig:
    with initialize_config_dir(str(CONF), version_base=None):
        searchpath = [f"hydra.searchpath=[file://{Path(USER_CONF).resolve()}]"] if USER_CONF else []
        return compose("train", overrides=["data=text", *choices, *searchpath])


@cache
def composed(overrides: str) -> DictConfig:
    """The settings of a training. Choices of groups are composed once; values are set as Hydra would set them."""
    parsed = {text: OverridesParser.create().parse_override(text) for text in overrides.split()}
    values = {text: one for text, one in parsed.items() if "." in one.key_or_group and not set(text) & set("+~@")}
    config = _compose(tuple(text for text in parsed if text not in values)).copy()
    for one in values.values():
        OmegaConf.update(config, one.key_or_group, one.value())
    return config


@cache
def build_tiny(overrides: str, src_pieces: int = SRC_PIECES, tgt_pieces: int = TGT_PIECES) -> Seq2Seq:
    torch.manual_seed(3)
    cfg = composed(overrides).copy()
    OmegaConf.set_struct(cfg, False)
    cfg.size = TINY
    return instantiate(cfg.model)(src_vocab_size=src_pieces, tgt_vocab_size=tgt_pieces, pad_id=PAD)
