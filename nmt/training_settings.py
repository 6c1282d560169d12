"""Settings of corpora, preparation and training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from nmt.model_settings import MODELS, Count, NoSettings, NotNegative, Probability, Seed, SizeSettings
from nmt.schema import Component, Settings, one_of, optional, setting

# fmt: off
CountOrZero = Annotated[int, Field(ge=0, le=10**9)]
Positive = Annotated[float, Field(gt=0, le=1e9)]
Threads = Annotated[int, Field(ge=1, le=1024)]
Device = Annotated[
    str, Field(pattern=r"^(auto|cpu|mps|cuda(:\d{1,3})?)$", description="auto, cpu, cuda, cuda:N or mps")
]
Texts = str | list[str]


# ---- corpora


class GrammarSettings(Component):
    seed: Seed = setting("of the sentences; training has a seed of its own")
    train_pairs: Annotated[int, Field(ge=1, le=10**8)] = setting("training pairs")
    valid_pairs: Annotated[int, Field(ge=1, le=10**6)] = setting("validation pairs")
    test_pairs: Annotated[int, Field(ge=1, le=10**6)] = setting("test pairs")


class SyntheticSettings(GrammarSettings):
    reverse: bool = setting("true: the target is the source reversed; false: a copy of it")
    symbols: Annotated[int, Field(ge=1, le=10**6)] = setting("different symbols: a, b, ... z, aa, ab, ...")
    min_length: Annotated[int, Field(ge=1, le=10**4)] = setting("symbols of the shortest source")
    max_length: Annotated[int, Field(ge=1, le=10**4)] = setting("symbols of the longest source")


class SubsetSettings(Component):
    """What real corpora share: languages, subsets, joined sentences."""

    source: str | None = setting("source language, for the record and for scoring: en, fr, zh, ...")
    target: str | None = setting("target language")
    max_pairs: Count | None = setting("read no more than this many training pairs, after joining; null: all")
    subset: Literal["first", "random"] = setting("which ones")
    join: Annotated[int, Field(ge=1, le=1000)] = setting("make one example of this many consecutive pairs, ...")
    join_share: Annotated[float, Field(ge=0, le=1)] = setting("... for this share of the examples")
    seed: Seed = setting("of the random subset and of what is joined")
    licence: str | None = setting("for the record")
    url: str | None = setting("for the record")


class TextSettings(SubsetSettings):
    train_src: str | None = setting("source side, plain or .gz; or one .tsv of both sides", path=True)
    train_tgt: str | None = setting("target side; line n is the translation of line n of the source", path=True)
    valid_src: str | None = setting("validation text, source side", path=True)
    valid_tgt: str | None = setting("validation text, target side", path=True)
    test_src: str | None = setting("test text, source side", path=True)
    test_tgt: Texts | None = setting("references; a list for several: [a.fr,b.fr]", path=True)
    name: str | None = setting("of the corpus, for the record")


class HubSettings(SubsetSettings):
    path: str | None = setting("a name on the hub (wmt/wmt14), a folder, or a parquet, jsonl or csv file", path=True)
    name: str | None = setting("one of the dataset's configurations: fr-en")
    source_column: str | None = setting("where the column is not called like its language")
    target_column: str | None = setting("where the column is not called like its language")
    revision: str | None = setting("a branch, tag or commit on the hub; null: the newest")
    train_split: str | None = setting("a split, or an expression: train[1%:]")
    valid_split: str | None = setting("validation split; null: none")
    test_split: str | None = setting("test split; null: none")
    cache_dir: str | None = setting("where converted files go; null: HF_HOME, else ~/.cache/huggingface", path=True)


SINGLE_CORPORA: dict[str, type[Component]] = {
    "nmt.data.grammar.GrammarCorpus": GrammarSettings,
    "nmt.data.synthetic.SyntheticCorpus": SyntheticSettings,
    "nmt.data.text.TextCorpus": TextSettings,
    "nmt.data.hub.HubCorpus": HubSettings,
}
PARTS = {name: optional(declared) for name, declared in SINGLE_CORPORA.items()}


def kind_of_part(settings: Mapping[str, Any]) -> str:
    """A part without _target_ has the settings of data=text, or of data=hub where it has a path."""
    return "nmt.data.hub.HubCorpus" if "path" in settings else "nmt.data.text.TextCorpus"


class MixSettings(Component):
    parts: dict[str, one_of(PARTS, kind_of_part)] = setting("the corpora that are mixed, by name")  # type: ignore[valid-type]
    weights: dict[str, Positive] = setting("how often each part is drawn; none: every pair once an epoch")
    held_out: str | None = setting("the part that gives validation and test text; null: the first that has some")
    source: str | None = setting("source language")
    target: str | None = setting("target language")
    name: str | None = setting("of the mixture, for the record")


CORPORA = SINGLE_CORPORA | {"nmt.data.mixed_corpus.MixedCorpus": MixSettings}


def section_of_corpus(settings: Mapping[str, Any]) -> type[Component] | None:
    """The declaration of a corpus, or of a part of a mixture; None for a class of the user's own."""
    return CORPORA.get(settings.get("_target_") or kind_of_part(settings))


# ---- preparation


class CleaningSettings(Settings):
    """Which training pairs are left out. Pairs with an empty side always are."""

    shipped = (("cleaning/standard.yaml", ""),)
    max_words: Count | None = setting("on either side; 50: Bahdanau et al. 2015, 30: Cho et al. 2014", fair=True)
    max_ratio: Annotated[float, Field(ge=1, le=1e6)] | None = setting(
        "the longer side has at most this many times the words of the shorter, and 3 more; null: no limit", fair=True)
    duplicates: bool = setting("drop exact repetitions of a pair", fair=True)
    identical: bool = setting("drop pairs whose sides are the same", fair=True)
    script: bool = setting("drop pairs mostly in another script than their languages are written in", fair=True)
    decontaminate: bool = setting("drop pairs that occur in validation or test sets", fair=True)
    one_side_words: Count = setting("a match with those on one side only counts from this many words", fair=True)


class TokenizerSettings(Settings):
    """How the SentencePiece models are learned."""

    shipped = (("preparation.yaml", "tokenizer"),)
    vocab_size: Annotated[int, Field(ge=8, le=1_000_000)] = setting("pieces on each side", fair=True)
    model_type: Literal["unigram", "bpe"] = setting("algorithm of SentencePiece", fair=True)
    joint: bool = setting("one vocabulary for both sides", fair=True)
    sample: Count = setting("training pairs to learn pieces from", fair=True)
    character_coverage: Annotated[float, Field(gt=0, le=1)] = setting("share of characters with a piece", fair=True)
    shrink: bool = setting("take the largest vocabulary that the corpus supports where it is smaller", fair=True)
    seed: Seed = setting("of the sample", fair=True)


class HeldOutSettings(Settings):
    valid: Texts | None = setting("validation set by sacreBLEU's name instead of the corpus's own: wmt13")
    test: Texts | None = setting("test sets by sacreBLEU's names: wmt14/full, [wmt13,wmt14/full]; kept out of training")


class PieceLimit(Settings):
    max_pieces: Annotated[int, Field(ge=1, le=100_000)] = setting("longer training pairs are left out")


class BatchingSettings(PieceLimit):
    """Which pairs stand in which batch."""

    shipped = (("preparation.yaml", "batching"), ("train.yaml", "batching"))
    tokens: Annotated[int, Field(ge=1, le=10**8)] = setting("size of a batch: sentences x longest side, with padding")
    pool: Count = setting("pairs sorted by length together")
    seed: Seed = setting("of the order of batches")


class PreparationConfig(Settings):
    """What every program that reads a corpus shares."""

    data: one_of(CORPORA) = setting("the corpus: data=grammar, text, wmt14_en_de, ...")  # type: ignore[valid-type]
    cleaning: CleaningSettings = setting("filters of the training pairs", fair=True)
    tokenizer: TokenizerSettings = setting("subword pieces", fair=True)
    batching: PieceLimit = setting("batches")
    evaluate: HeldOutSettings = setting("test and validation sets")
    data_dir: str = setting("prepared corpora are kept in data_dir/prepared", path=True, stored=False)
    prepared: str | None = setting(
        "a prepared folder to use as it is: data/prepared/NAME", default=None, path=True, stored=False)
    workers: Threads | None = setting(
        "processes that clean and encode; null: one a processor", default=None, stored=False)


class PresetLimit(PieceLimit):
    """What a corpus presets for the batches of a training beside it is not looked at."""

    model_config = ConfigDict(extra="allow")


class PrepareConfig(PreparationConfig):
    """python -m nmt.prepare. What a corpus presets for training is composed too, and has no effect here."""

    batching: PresetLimit = setting("batches")
    training: dict[str, Any] = setting("used by nmt.train", default={})
    optimizer: dict[str, Any] = setting("used by nmt.train", default={})
    schedule: dict[str, Any] = setting("used by nmt.train", default={})


# ---- training


class TrainingSettings(Settings):
    """Budgets (whichever ends first), the gradient, and how often to log, validate and save, in updates."""

    shipped = (("train.yaml", "training"),)
    max_updates: Count | None = setting("stop after this many updates; null: no limit", resume=True)
    max_epochs: Annotated[float, Field(gt=0, le=1e6)] | None = setting("stop after this many epochs", resume=True)
    max_minutes: Positive | None = setting("stop after this many minutes of training", resume=True)
    label_smoothing: Probability = setting("share of the target distribution spread over all pieces", fair=True)
    mean_over: Literal["pieces", "sentences"] = setting(
        "a mean over target pieces, or over sentences of their sums, as papers of 2014 have it", fair=True)
    clip_norm: NotNegative = setting("largest norm of the gradient; 0: no limit", fair=True)
    accumulate: Annotated[int, Field(ge=1, le=100_000)] = setting("batches in an update", fair=True)
    log_every: Count = setting("updates between log lines", resume=True)
    validate_every: Count = setting("updates between validations", resume=True, fair=True)
    save_minutes: NotNegative = setting("save at least this often; also when validating and at the end", resume=True)
    patience: Count | None = setting("stop after this many validations without a gain", resume=True, fair=True)
    monitor: Literal["bleu", "nll"] = setting("what the best checkpoint and patience go by", resume=True, fair=True)
    bleu_sentences: CountOrZero = setting("validation pairs translated (greedy) for BLEU", resume=True, fair=True)
    keep_every: Count | None = setting("keep the weights of every so many updates in RUN/kept", resume=True)
    average_last: Annotated[int, Field(ge=0, le=1000)] = setting(
        "also write the mean of the weights of the last k validations", resume=True, fair=True)

    @model_validator(mode="after")
    def _budget(self) -> Self:
        if self.max_updates is None and self.max_epochs is None and self.max_minutes is None:
            raise ValueError("give a budget: training.max_updates, training.max_epochs or training.max_minutes")
        return self


class OptimizerSettings(Component):
    lr: Annotated[float, Field(gt=0, le=1000)] = setting("peak of the learning rate", fair=True)


class AdamSettings(OptimizerSettings):
    betas: Annotated[list[Annotated[float, Field(ge=0, lt=1)]], Field(min_length=2, max_length=2)] = setting(
        "decay of the two moving averages", fair=True)
    eps: Annotated[float, Field(gt=0, le=1)] = setting("added to the denominator", fair=True)
    weight_decay: Annotated[float, Field(ge=0, le=1000)] = setting("pull of the weights towards zero", fair=True)


class AdadeltaSettings(OptimizerSettings):
    rho: Annotated[float, Field(ge=0, lt=1)] = setting("decay of the moving averages", fair=True)
    eps: Annotated[float, Field(gt=0, le=1)] = setting("added to the denominator", fair=True)


class SgdSettings(OptimizerSettings):
    momentum: Annotated[float, Field(ge=0, lt=1)] = setting("share of the last step that is kept", fair=True)


OPTIMIZERS: dict[str, type[Component]] = {
    "torch.optim.Adam": AdamSettings,
    "torch.optim.AdamW": AdamSettings,
    "torch.optim.Adadelta": AdadeltaSettings,
    "torch.optim.SGD": SgdSettings,
}


class ScheduleSettings(Component):
    warmup_updates: CountOrZero = setting("updates until the learning rate reaches optimizer.lr", fair=True)


class HalvingSettings(ScheduleSettings):
    steady: Annotated[float, Field(gt=0, lt=1)] = setting("share of the training at the full rate", fair=True)
    halvings: Annotated[int, Field(ge=1, le=1000)] = setting("of the rate after that, at equal distances", fair=True)


SCHEDULES: dict[str, type[Component]] = {
    **dict.fromkeys(
        ("nmt.training.schedule.constant", "nmt.training.schedule.inverse_sqrt", "nmt.training.schedule.linear"),
        ScheduleSettings,
    ),
    "nmt.training.schedule.halving": HalvingSettings,
}


class WandbSettings(Component):
    project: str = setting("project on Weights & Biases")


TRACKERS: dict[str, type[Component]] = {
    "nmt.training.trackers.NoTracker": NoSettings,
    "nmt.training.trackers.TensorboardTracker": NoSettings,
    "nmt.training.trackers.WandbTracker": WandbSettings,
}


class TrainConfig(PreparationConfig):
    """python -m nmt.train"""

    size: SizeSettings = setting("sizes of all systems together: size=d64, d192", stored=False)
    model: one_of(MODELS) = setting("the system: model=bahdanau, luong or transformer")  # type: ignore[valid-type]
    attention_backend: Literal["auto", "fused", "varlen", "explicit", "tiled", "window", "linear"] | None = setting(
        "kernel of model=transformer; all but window and linear are exact", default=None, stored=False)
    optimizer: one_of(OPTIMIZERS) = setting("adam, adamw, adadelta, sgd", fair=True)  # type: ignore[valid-type]
    schedule: one_of(SCHEDULES) = setting("schedule of the learning rate", fair=True)  # type: ignore[valid-type]
    tracker: one_of(TRACKERS) = setting("tracker=none, wandb, tensorboard", resume=True)  # type: ignore[valid-type]
    seed: Seed = setting("of initial weights, dropout and batches")
    run_dir: str | None = setting("null: outputs/<data>/<experiment>[-seed<N>]", default=None, path=True, stored=False)
    init_from: str | None = setting("a run whose weights and pieces to start from (fine-tuning)", path=True)
    trust: Texts | None = setting(
        "modules or classes of your own that init_from may name; their code is run", default=None, stored=False)
    device: Device = setting("auto, cpu, cuda, cuda:N or mps", resume=True)
    threads: Threads | None = setting("CPU threads; null: torch's choice", resume=True)
    precision: Literal["fp32", "bf16"] = setting(
        "of matrix products; bf16 falls back to fp32 on a CPU without AVX-512", resume=True, fair=True)
    batching: BatchingSettings = setting("batches")
    training: TrainingSettings = setting("budgets, gradient, validation")


class StoredConfig(TrainConfig):
    """config.yaml of a run: the settings of its training, less those of the machine that made it."""

    name: str = setting("of the experiment")
    size: None = setting("not stored", default=None)  # type: ignore[assignment]
    data_dir: str = setting("not stored", default="data")
