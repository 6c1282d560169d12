"""Every setting of every program, declared once: type, bounds, choices, help, and what it means to other programs.

The YAML files of conf/ hold the defaults, and tests/test_settings.py holds the two together. Errors, `--help`, shell
completion and docs/settings.md are generated from here; `schema.py` has the mechanism.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from nmt.evaluation.metrics import ON_DEMAND
from nmt.model_settings import AttentionBackend, Seed
from nmt.schema import Component, Settings, one_of, setting, shown
from nmt.training_settings import Device, PrepareConfig, Texts, Threads, TrainConfig


# fmt: off
class SearchSettings(Settings):
    """How to search. A hypothesis scores log_prob / length ** length_penalty, its </s> counted in both.

    It has at most max_ratio x source pieces + max_extra pieces.
    """

    shipped = (("search/beam.yaml", ""),)
    beam: Annotated[int, Field(ge=1, le=1000)] = setting("hypotheses of a sentence; 1 is greedy search")
    n_best: Annotated[int, Field(ge=1, le=1000)] = setting("translations of each line: different texts, best first")
    length_penalty: Annotated[float, Field(ge=0, le=100)] = setting("score = log-probability / length**length_penalty")
    max_ratio: Annotated[float, Field(ge=0, le=1000)] = setting("at most max_ratio x source pieces + max_extra pieces")
    max_extra: Annotated[int, Field(ge=0, le=100_000)] = setting("at most max_ratio x source pieces + max_extra pieces")
    batch: Annotated[int, Field(ge=1, le=100_000)] = setting("sentences searched at a time; changes no translation")

    @model_validator(mode="after")
    def _beam_is_wide_enough(self) -> Self:
        if type(self) is SearchSettings and self.n_best > self.beam:  # nmt.translate widens the beam
            raise ValueError(f"n_best={self.n_best} needs beam={self.n_best} or more, not {self.beam}")
        return self

    def max_length(self, source_pieces: int) -> int:
        """The most pieces of a hypothesis for a source of that many, </s> not counted."""
        return int(self.max_ratio * source_pieces + self.max_extra)


def search_settings(config: SearchSettings, **changes: Any) -> SearchSettings:
    """The search among a program's settings, with some changes."""
    return SearchSettings(**{**{name: getattr(config, name) for name in SearchSettings.model_fields}, **changes})


class AlignmentSettings(Settings):
    """Which alignment is written where only one can be; all are scored.

    On the grammar corpus shift 0 is right for every system. Which layer of a Transformer aligns best depends on its
    depth, so the default is the mean of all.
    """

    shipped = (("translate.yaml", "alignment"),)
    layer: Literal["mean"] | Annotated[int, Field(ge=1, le=256)] = setting("of a Transformer: 1, 2, ... or mean")
    shift: Annotated[int, Field(ge=0, le=1)] = setting(
        "0 aligns a word by the attention that predicts it, 1 by the attention that reads it")


class GoldSettings(AlignmentSettings):
    shipped = (("evaluate.yaml", "alignment"),)
    score: bool = setting("compare with gold alignments where there are some and the run has attention")
    gold: str | None = setting("gold links, a line a sentence pair: 1-1 2p3; null: those of the test set", path=True)
    base: Annotated[int, Field(ge=0, le=1)] | None = setting("what the gold file counts words from: 0 or 1")
    reverse: bool = setting("true: each link of the file names the target word first")

    @model_validator(mode="after")
    def _base_is_given(self) -> Self:
        if self.gold and self.base is None:
            raise ValueError("alignment.gold=FILE needs alignment.base=0 or 1: the number of a sentence's first word")
        return self


class DeviceSettings(Settings):
    device: Device = setting("auto, cpu, cuda, cuda:N or mps")
    threads: Threads | None = setting("CPU threads; null: torch's choice")


class LoadingSettings(Settings):
    max_src_pieces: Annotated[int, Field(ge=1, le=100_000)] | None = setting(
        "longer lines are translated in parts; null: the longest that the run was trained on")
    trust: Texts | None = setting("modules or classes of your own that a run may name; their code is run")


class TranslateConfig(SearchSettings, LoadingSettings, DeviceSettings):
    """python -m nmt.translate"""

    checkpoint: str = setting("a run directory, or a weights file in one", path=True)
    input: str | None = setting("a text file, plain or .gz; null: standard input", path=True)
    output: str | None = setting("a file, complete or not there at all; null: standard output", path=True)
    scores: bool = setting("write score, tab, text")
    attention_out: str | None = setting("FILE.jsonl: attention weights of each line; FILE.png: of the first", path=True)
    alignment_out: str | None = setting("FILE: links of aligned words, 0-0 1-2, of each line", path=True)
    alignment: AlignmentSettings = setting("which attention the links are read from")

    @model_validator(mode="after")
    def _format_is_known(self) -> Self:
        if self.attention_out and not self.attention_out.endswith((".jsonl", ".json", ".png", ".svg", ".pdf")):
            raise ValueError(f"attention_out={self.attention_out}: give FILE.jsonl, or a picture: FILE.png, .svg, .pdf")
        return self


class TestSettings(Settings):
    src: Texts | None = setting("with ref: a file pair instead of the run's test set; several: pooled", path=True)
    ref: Texts | None = setting("a file, or one for each reference; with several sources one each", path=True)
    name: str | None = setting("which of the run's test sets (test), or a name for the file pair")


class SelectionSettings(Settings):
    test: Texts | None = setting("test sets by sacreBLEU's names: wmt14/full, [wmt13,wmt14/full]; null: the run's own")
    pool: bool = setting("these sets as one")


class BootstrapSettings(Settings):
    shipped = (("evaluate.yaml", "bootstrap"),)
    resamples: Annotated[int, Field(ge=40, le=1_000_000)] = setting("bootstrap samples of an interval")
    seed: Seed = setting("of the samples")
    blocks: Annotated[int, Field(ge=1, le=1_000_000)] | None = setting(
        "neighbouring sentences drawn together, as those of a document; null: each by itself")


class MeasuredSettings(SearchSettings, LoadingSettings):
    """What nmt.compare takes as evaluate.KEY, for the evaluations that it starts."""

    test: TestSettings = setting("files to be measured on")
    evaluate: SelectionSettings = setting("test sets by name")
    target_language: str | None = setting("chooses BLEU's tokenizer (zh, ja, ko, ...); null: the run's, else 13a")
    ter: bool = setting("TER takes longer than the other scores together; nmt.compare leaves it out unless asked")
    metrics: list[Literal[ON_DEMAND]] = setting(  # type: ignore[valid-type]
        "further metrics: [chrf++,bleu_lc]; bleu_lc ignores case")
    alignment: GoldSettings = setting("attention compared with gold word alignments (AER)")
    data_dir: str = setting("where prepared corpora are: they keep the test sets", path=True)


def further_metrics(config: MeasuredSettings) -> tuple[str, ...]:
    """The metrics asked for beside BLEU and chrF2."""
    return (*(["ter"] if config.ter else []), *config.metrics)


class EvaluateConfig(MeasuredSettings, DeviceSettings):
    """python -m nmt.evaluate"""

    checkpoint: Texts | None = setting("a run directory, a weights file in one, or several: [A,B,C]", path=True)
    hypotheses: Texts | None = setting("score this file, or these, instead of translating", path=True)
    references: Texts | None = setting("with hypotheses: a file, or one for each reference: [A,B]", path=True)
    source: str | None = setting("with hypotheses: the source text; without it no scores by length", path=True)
    bootstrap: BootstrapSettings = setting("intervals")
    output: str | None = setting("folder of NAME.json and NAME.hyp.txt; null: RUN/evaluation", path=True)
    force: bool = setting("translate again although the same weights have translated the same text the same way")
    as_json: bool = setting("print JSON, one line a system, instead of the table", alias="json")


# ---- comparison and benchmarks


class ResamplingSettings(BootstrapSettings):
    shipped = (("compare.yaml", "study.bootstrap"),)
    trials: Annotated[int, Field(ge=1, le=1_000_000)] = setting("of approximate randomisation")


class HeadlineSettings(Settings):
    short: list[int | None] = setting("source words of what counts as short: [FIRST,LAST]")
    long: list[int | None] = setting("source words of what counts as long: [FIRST,null]")

    @model_validator(mode="after")
    def _ranges(self) -> Self:
        for name, ends in (("short", self.short), ("long", self.long)):
            if len(ends) != 2 or ends[0] is None or ends[0] < 1 or (ends[1] is not None and ends[1] < ends[0]):
                raise ValueError(
                    f"study.headline.{name}={shown(ends)}: give [FIRST,LAST] in words, FIRST from 1, LAST not below it"
                )
        if self.short[1] is None or self.short[1] >= (self.long[0] or 0):
            raise ValueError(f"study.headline: short {shown(self.short)} must end before long {shown(self.long)}")
        return self


class ReportSettings(Settings):
    text: Literal["all", "none"] = setting("none: no sentence of the test set or of a translation in any file")
    samples: Annotated[int, Field(ge=0, le=10_000)] = setting("short, and as many long, sentences with all outputs")
    explorer: Annotated[int, Field(ge=0, le=100_000)] = setting("sentences in the attention explorer")


class StudyConfig(Settings):
    experiments: Texts = setting("systems to compare: [rnn,bahdanau]")
    seeds: Seed | list[Seed] = setting("seeds of each system: [1,2,3]")
    runs: Texts | None = setting("instead: run directories, evaluation JSONs, or files of translations", path=True)
    names: Texts | None = setting("of the text files, in their order; null: their stems")
    root: str | None = setting("where the runs are or go; null: outputs/<data>", path=True)
    output: str | None = setting("where the comparison goes; null: comparison, beside the runs", path=True)
    launcher: str | None = setting("Hydra launcher of each training: submitit_slurm, joblib, ...; study.jobs at a time")
    jobs: Threads | None = setting("runs at a time; null: two, or one where there is one processor")
    threads: Threads = setting("CPU threads of each run")
    device: Device | None = setting("null: as nmt.train and nmt.evaluate choose")
    slowest_first: Texts = setting("the order of starting, so that no long run is left to the end")
    draw_attention: bool = setting("the attention for one sentence")
    sentence: str | None = setting("which; null: one of the test set")
    baseline: str | None = setting("the system that the others are tested against; null: rnn, else the first")
    pairs: Literal["baseline", "all"] = setting("which pairs are tested; Holm's correction is over all of them")
    headline: HeadlineSettings = setting("what counts as short and as long")
    bootstrap: ResamplingSettings = setting("intervals and tests")
    searches: Texts = setting('rows for other searches: [beam=1,"beam=10 length_penalty=0"]')
    equal_time: bool = setting("rows for the weights of each system at the CPU time of the cheapest one")
    report: ReportSettings = setting("what the report holds")


class CompareConfig(Settings):
    """python -m nmt.compare. It also takes what nmt.train takes, and under evaluate. the settings of nmt.evaluate."""

    study: StudyConfig = setting("the comparison itself")


# of nmt.train: what a comparison has in their place
REPLACED_KEYS = {"experiment": "study.experiments", "seed": "study.seeds", "run_dir": "study.root"}


class AttentionSuite(Component):
    lengths: list[Annotated[int, Field(ge=1, le=10**6)]] = setting("sequence lengths")
    heads: Annotated[int, Field(ge=1, le=1024)] = setting("attention heads")
    head_size: Annotated[int, Field(ge=1, le=4096)] = setting("size of a head")
    batch: Annotated[int, Field(ge=1, le=100_000)] = setting("sequences at a time")
    window: Annotated[int, Field(ge=1, le=10**6)] = setting("positions of the window backend")
    backends: list[AttentionBackend] | None = setting("[explicit,tiled]; null: all that run on the device")
    seconds: Annotated[float, Field(ge=0, le=3600)] = setting("of runs for each point, and never fewer than two")


class TrainingSuite(Component):
    updates: Annotated[int, Field(ge=1, le=10**6)] = setting("timed")
    warm_up: Annotated[int, Field(ge=1, le=10**6)] = setting("before them, not counted")


SUITES: dict[str, type[Component]] = {
    "nmt.benchmarks.attention_speed.AttentionSpeed": AttentionSuite,
    "nmt.benchmarks.training_speed.TrainingSpeed": TrainingSuite,
}


class BenchmarkConfig(TrainConfig):
    """python -m nmt.benchmark"""

    suite: one_of(SUITES) = setting("what is measured: suite=attention, training")  # type: ignore[valid-type]
    output: str | None = setting("a file for the numbers, as JSON; a figure goes beside it", path=True)


PROGRAMS: dict[str, type[Settings]] = {
    "train": TrainConfig, "evaluate": EvaluateConfig, "translate": TranslateConfig, "compare": CompareConfig,
    "prepare": PrepareConfig, "benchmark": BenchmarkConfig,
}  # fmt: skip
