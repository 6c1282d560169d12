"""The comparison as data: every number that the page, the tables, the figures and comparison.json show.

All systems are measured alike, from their translations alone: the same sentences in a bin for every system, corpus BLEU
inside the bin, intervals, two tests a bin corrected for their number, and the difference of differences as the result.
`asdict` of a Report is comparison.json.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from nmt.data.corpus import TestSet
from nmt.errors import ConfigError
from nmt.evaluation.alignment_error import AlignmentEntry
from nmt.evaluation.by_length import MIN_SENTENCES, BinScore, score_sentences
from nmt.evaluation.metrics import Statistics, bleu_of, statistics, tokenization
from nmt.evaluation.stored import lines_sha256
from nmt.files import visible
from nmt.progress import progress
from nmt.settings import ResamplingSettings
from nmt.study.fairness import fairness, parameter_ratio
from nmt.study.headline import Headline, LengthGroups, headlines, limits, variant_headlines
from nmt.study.hypothesis_tests import Significance, significance_tests
from nmt.study.length_views import LengthView, MaxLength, TrainingLengths, length_views
from nmt.study.results import Curve, Result, Search, System, validation_curves

DEFAULT_BASELINE = "rnn"


class StudySettings(NamedTuple):
    """Settings of the comparison that the numbers depend on."""

    baseline: str | None
    pairs: str
    groups: LengthGroups
    resampling: ResamplingSettings
    metrics: tuple[str, ...] = ()  # beside BLEU and chrF2


class StudyInputs(NamedTuple):
    """What a report needs beside the translations."""

    test: TestSet
    data: str  # the test set's corpus
    languages: tuple[str, str]
    pieces: Sequence[int] | None  # of each source
    training: TrainingLengths | None
    states: Mapping[str, tuple[int, int]]  # by system: numbers of the source that reach the decoder, + n x per piece
    alignment: list[AlignmentEntry]


@dataclass(frozen=True)
class TestInfo:
    """The test set."""

    name: str
    data: str
    sentences: int
    source_language: str
    target_language: str
    source_sha256: str
    references_sha256: list[str]

    @property
    def pair(self) -> str:
        """ "en→de"; nothing where the languages are not known."""
        return f"{self.source_language}→{self.target_language}" if self.source_language and self.target_language else ""


@dataclass(frozen=True)
class RunRow:
    """One training seed of a system."""

    run: str
    seed: int | None
    bleu: float
    updates: int | None
    evaluated_at_update: int | None
    target_pieces: int | None
    seconds: float | None
    cpu_seconds: float | None
    capped: int | None
    hypotheses_sha256: str


@dataclass(frozen=True, kw_only=True)
class SystemRow(BinScore):
    """A system: its score on the whole test set, means over its seeds, and what its training cost."""

    system: str
    parameters: int | None
    state: str | None  # real numbers that reach the decoder, for a source of n pieces
    state_numbers: int | None  # where that does not depend on n
    updates: float | None
    evaluated_at_update: float | None
    target_pieces: float | None
    cpu_seconds: float | None
    capped: int | None  # outputs as long as the search allows, over all seeds
    search: Search | None
    warnings: list[str]
    runs: list[RunRow]


@dataclass(frozen=True)
class BinInfo:
    """A range of source lengths, the same sentences for every system."""

    label: str
    low: int
    high: int | None  # not included; None: open
    n: int
    source_tokens: int
    descriptive: bool  # too few sentences for a claim


@dataclass(frozen=True)
class View:
    """One division of the test set by length, with a row of scores for each system, one a bin."""

    name: str
    axis: str
    title: str
    bins: list[BinInfo]
    cap: MaxLength | None  # where training ends
    training: list[float] | None  # the share of the training text in each bin
    scores: dict[str, list[BinScore]]
    variants: dict[str, list[BinScore]]


@dataclass(frozen=True)
class Report:
    """A comparison. Variants (other searches, equal time) are scored beside the systems, but not tested or drawn."""

    title: str
    headlines: list[Headline]
    variant_headlines: list[Headline]
    limits: list[str]
    provenance: Mapping[str, object]  # command, commit, date, machine, versions
    test: TestInfo
    signatures: dict[str, str]
    baseline: str
    systems: list[SystemRow]
    variants: list[SystemRow]
    views: list[View]
    significance: Significance | None
    curves: dict[str, Curve]
    alignment: list[AlignmentEntry]
    parameter_ratio: float | None
    fairness: list[str]
    failures: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def labels(self) -> list[str]:
        return [system.system for system in self.systems]


def build_report(
    systems: Sequence[System],
    extra_rows: Sequence[System],
    inputs: StudyInputs,
    settings: StudySettings,
    provenance: Mapping[str, object],
) -> Report:
    labels = [system.label for system in systems]
    baseline = choose_baseline(labels, settings.baseline)
    with progress("scoring", len(systems) + len(extra_rows), True) as advance:
        rows = {}
        for system in [*systems, *extra_rows]:
            rows[system.label] = _statistics(system, inputs, settings)
            advance(1)
    main, extra = ({system.label: rows[system.label] for system in group} for group in (systems, extra_rows))
    views = length_views(inputs.test.sources, inputs.pieces)
    by_words = views[0]
    trained = any(system.results[0].run_dir for system in systems)
    results = headlines(main, by_words, baseline, settings.groups, settings.resampling, trained)
    return Report(
        title=f"BLEU by source length: {', '.join(labels)} on {visible(inputs.data)}",
        headlines=results,
        variant_headlines=variant_headlines(
            main, extra, by_words, baseline, settings.groups, settings.resampling, trained
        ),
        limits=limits(
            results,
            seeds=max(len(system.results) for system in systems),
            trained=trained,
        ),
        provenance=dict(provenance),
        test=TestInfo(
            visible(inputs.test.name),
            visible(inputs.data),
            len(inputs.test.sources),
            *inputs.languages,
            lines_sha256(inputs.test.sources),
            [lines_sha256(lines) for lines in inputs.test.references],
        ),
        signatures=main[labels[0]][0].signatures,
        baseline=baseline,
        systems=[_system(system, rows[system.label], inputs, settings) for system in systems],
        variants=[_system(system, rows[system.label], inputs, settings) for system in extra_rows],
        views=[_view(view, main, extra if view is by_words else {}, inputs.training, settings) for view in views],
        significance=significance_tests(main, by_words, baseline, settings.pairs, settings.resampling),
        curves=validation_curves(systems),
        alignment=inputs.alignment,
        parameter_ratio=parameter_ratio(systems),
        fairness=fairness(systems),
    )


def choose_baseline(labels: Sequence[str], name: str | None) -> str:
    """The system that the others are tested against. ConfigError where it is none of them."""
    if name is None:
        return DEFAULT_BASELINE if DEFAULT_BASELINE in labels else labels[0]
    if name not in labels:
        raise ConfigError(f"study.baseline={name} is none of the systems: {', '.join(labels)}")
    return name


def _statistics(system: System, inputs: StudyInputs, settings: StudySettings) -> list[Statistics]:
    """One a seed, computed from the texts, with sacreBLEU's tokenizer for the target language."""
    tokenizer, metrics = tokenization(inputs.languages[1]).name, ("chrf", *settings.metrics)
    return [statistics(result.hypotheses, inputs.test.references, tokenizer, metrics) for result in system.results]


def _system(system: System, seeds: Sequence[Statistics], inputs: StudyInputs, settings: StudySettings) -> SystemRow:
    fixed, per_piece = inputs.states.get(system.label, (None, None))
    terms = [f"{per_piece} n" if per_piece else "", str(fixed) if fixed or not per_piece else ""]
    return SystemRow(
        **vars(score_sentences(seeds, settings.resampling)),
        system=system.label,
        parameters=system.parameters,
        state=None if fixed is None else " + ".join(filter(None, terms)),
        state_numbers=None if per_piece else fixed,
        updates=system.mean(lambda result: result.updates),
        evaluated_at_update=system.mean(lambda result: result.evaluated_at),
        target_pieces=system.mean(lambda result: result.training.target_pieces),
        cpu_seconds=system.mean(lambda result: result.training.cpu_seconds),
        capped=system.total(lambda result: result.capped),
        search=system.results[0].search,
        warnings=list(dict.fromkeys(warning for result in system.results for warning in result.warnings)),
        runs=[_run(result, rows) for result, rows in zip(system.results, seeds, strict=True)],
    )


def _run(result: Result, rows: Statistics) -> RunRow:
    return RunRow(
        run=result.run,
        seed=result.seed,
        bleu=bleu_of(rows.bleu).score,
        updates=result.updates,
        evaluated_at_update=result.evaluated_at,
        target_pieces=result.training.target_pieces,
        seconds=result.training.seconds,
        cpu_seconds=result.training.cpu_seconds,
        capped=result.capped,
        hypotheses_sha256=lines_sha256(result.hypotheses),
    )


def _view(
    view: LengthView,
    systems: Mapping[str, Sequence[Statistics]],
    variants: Mapping[str, Sequence[Statistics]],
    training: TrainingLengths | None,
    settings: StudySettings,
) -> View:
    def scores(rows: Mapping[str, Sequence[Statistics]]) -> dict[str, list[BinScore]]:
        return {
            label: [score_sentences(seeds, settings.resampling, members) for members in view.members]
            for label, seeds in rows.items()
        }

    return View(
        name=view.name,
        axis=view.axis,
        title=f"BLEU by {view.axis}",
        bins=[
            BinInfo(
                label=length_bin.label,
                low=length_bin.low,
                high=length_bin.high,
                n=len(members),
                source_tokens=int(view.lengths[members].sum()),
                descriptive=len(members) < MIN_SENTENCES,
            )
            for length_bin, members in zip(view.bins, view.members, strict=True)
        ],
        cap=training.max_length_mark(view.name) if training else None,
        training=view.shares(training.lengths(view.name)) if training else None,
        scores=scores(systems),
        variants=scores(variants),
    )
