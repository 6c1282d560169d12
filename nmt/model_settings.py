"""Settings of the models: attention of the recurrent decoders, the systems, and sizes that go together."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from nmt.schema import Component, Settings, one_of, setting

# fmt: off
Seed = Annotated[int, Field(ge=0, le=2**63 - 1)]
Count = Annotated[int, Field(ge=1, le=10**9)]
Size = Annotated[int, Field(ge=1, le=65_536)]  # of a vector
Layers = Annotated[int, Field(ge=1, le=256)]
NotNegative = Annotated[float, Field(ge=0, le=1e9)]
Probability = Annotated[float, Field(ge=0, lt=1)]
AttentionBackend = Literal["auto", "fused", "varlen", "explicit", "tiled", "window", "linear"]
EXACT_BACKENDS = frozenset({"auto", "fused", "varlen", "explicit", "tiled"})


# ---- attention of the recurrent decoders


class AdditiveSettings(Component):
    size: Size = setting("size of the hidden layer of the score")


class NoSettings(Component):
    """Nothing to set."""


class LocationSettings(Component):
    max_pieces: Count = setting("source pieces that have a weight; longer sources cannot be translated")


class RandomSettings(Component):
    seed: Seed = setting("of the weights; training has a seed of its own")
    sharpness: NotNegative = setting("of n pieces about 2 n / sharpness have a weight")


_A = "nmt.models.attention."
STATE_SCORERS: dict[str, type[Component]] = {  # that compare states, so that a window can gather some of them
    f"{_A}Additive": AdditiveSettings, f"{_A}Dot": NoSettings, f"{_A}ScaledDot": NoSettings, f"{_A}General": NoSettings,
}  # fmt: skip
SCORERS: dict[str, type[Component]] = STATE_SCORERS | {
    f"{_A}Location": LocationSettings, f"{_A}FixedContext": NoSettings, f"{_A}InitialStateOnly": NoSettings,
    "nmt.models.control_attention.MeanOfStates": NoSettings,
    "nmt.models.control_attention.FrozenRandom": RandomSettings,
}  # fmt: skip


class LocalSettings(Component):
    window: Annotated[int, Field(ge=1, le=10**6)] = setting("pieces on either side of the centre")
    score: one_of(STATE_SCORERS) = setting("the scorer inside the window")  # type: ignore[valid-type]


ATTENTIONS = SCORERS | dict.fromkeys(
    ("nmt.models.local_attention.LocalM", "nmt.models.local_attention.LocalP"), LocalSettings
)


# ---- models

TieEmbeddings = Literal["none", "target", "all"]


class RecurrentSettings(Component):
    embedding_size: Size = setting("size of the embeddings of both sides")
    encoder_size: Size = setting("hidden size of the encoder in each direction")
    hidden_size: Size = setting("hidden size of the decoder")
    layers: Layers = setting("layers of encoder and decoder")
    cell: Literal["gru", "lstm"] = setting("recurrent cell of encoder and decoder")
    bidirectional: bool = setting("whether the encoder reads in both directions")
    reverse_source: bool = setting("read the source from its end (arXiv:1409.3215)")
    summary: Literal["last_both", "last_forward", "max", "mean"] = setting("the vector of the whole source")
    bridge: Literal["learned", "copy"] = setting("initial state from the summary, or final states copied")
    dropout: Probability = setting("on embeddings, between layers and on the features", fair=True)
    tie_embeddings: TieEmbeddings = setting("shared tables: none, target and output layer, or all three", fair=True)
    init: Literal["default", "groundhog", "uniform"] = setting("initial weights", fair=True)
    init_range: Annotated[float, Field(gt=0, le=100)] = setting("of init=uniform", fair=True)
    attention: one_of(ATTENTIONS) = setting("chosen by attention=NAME")  # type: ignore[valid-type]


class BahdanauSettings(RecurrentSettings):
    context_in_readout: bool = setting("whether the readout reads the context too; the cell always does")
    readout_size: Size | None = setting("size of the readout; null: that of the embeddings")


class LuongSettings(RecurrentSettings):
    input_feeding: bool = setting("feed the attentional vector to the next step")


class TransformerSettings(Component):
    embedding_size: Size = setting("model width, d_model; a multiple of heads")
    heads: Annotated[int, Field(ge=1, le=1024)] = setting("attention heads")
    feed_forward_size: Annotated[int, Field(ge=1, le=262_144)] = setting("inner size of the feed-forward layers")
    layers: Layers = setting("layers of encoder and decoder")
    norm: Literal["pre", "post"] = setting("layer normalisation before or after each sublayer")
    activation: Literal["relu", "gelu"] = setting("of the feed-forward layers")
    dropout: Probability = setting("on embeddings and sublayer outputs", fair=True)
    attention_dropout: Probability = setting("on attention weights; above 0 rules out the fused kernel on a CPU")
    attention_backend: AttentionBackend = setting("set by attention_backend=NAME", resume=EXACT_BACKENDS)
    attention_window: Annotated[int, Field(ge=1, le=10**6)] = setting(
        "of attention_backend=window: positions on each side, its own included")
    positions: Literal["sinusoidal", "learned", "rotary", "alibi", "none"] = setting("positional information")
    max_positions: Annotated[int, Field(ge=1, le=10**6)] = setting("of positions=learned")
    tie_embeddings: TieEmbeddings = setting("shared tables: none, target and output layer, or all three", fair=True)


MODELS: dict[str, type[Component]] = {
    "nmt.models.rnn_decoders.Bahdanau": BahdanauSettings,
    "nmt.models.rnn_decoders.Luong": LuongSettings,
    "nmt.models.transformer.Transformer": TransformerSettings,
}


class RecurrentSizes(Settings):
    encoder: Size = setting("hidden size of the encoder in each direction")
    hidden: Size = setting("hidden size of the decoder")


class TransformerSizes(Settings):
    layers: Layers = setting("layers of encoder and decoder")
    heads: Annotated[int, Field(ge=1, le=1024)] = setting("attention heads")
    feed_forward: Annotated[int, Field(ge=1, le=262_144)] = setting("inner size of the feed-forward layers")


class SizeSettings(Settings):
    """Sizes at which the systems have about equally many parameters."""

    embedding: Size = setting("size of the embeddings of every system")
    attention: Size = setting("size of the hidden layer of the additive score")
    dropout: Probability = setting("of every system")
    bahdanau: RecurrentSizes = setting("sizes of model=bahdanau")
    luong: RecurrentSizes = setting("sizes of model=luong")
    transformer: TransformerSizes = setting("sizes of model=transformer")
