"""The comparison as data: every number that the page, the tables, the figures and comparison.json show.

All systems are measured alike, from their translations alone: the same sentences in a bin for every system, corpus BLEU
inside the bin, intervals, two tests a bin corrected for their number, and the difference of differences as the result.
`asdict` of a Report is comparison.json.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from nmt.data.corpus import TestSet
from nmt.errors import ConfigError
from nmt.evaluation.alignment_error import AlignmentEntry
from nmt.evaluation.by_length import MIN_SENTENCES, BinScore, score_sentences
from nmt.evaluation.metrics import METRICS, Statistics, bleu_of, statistics, tokenization
from nmt.evaluation.stored import lines_sha256
from nmt.files import visible
from nmt.progress import progress
from nmt.settings import ResamplingSettings
from nmt.study.fairness import fairness, parameter_ratio
from nmt.study.headline import Headline, LengthGroups, compared_variants, headlines, limits
from nmt.study.hypothesis_tests import Significance, significance_tests
from nmt.study.length_views import AXES, LengthView, MaxLength, TrainingLengths, length_views
from nmt.study.results import Curve, Search, System, validation_curves

DEFAULT_BASELINE = "rnn"
SystemStatistics = Mapping[str, Sequence[Statistics]]  # by system, one a seed


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
    labels, test = [system.label for system in systems], inputs.test
    baseline = choose_baseline(labels, settings.baseline)
    tokenizer, metrics = tokenization(inputs.languages[1]).name, ("chrf", *settings.metrics)
    rows: dict[str, list[Statistics]] = {}
    with progress("scoring", len(systems) + len(extra_rows), True) as advance:
        for system in [*systems, *extra_rows]:
            texts = [result.hypotheses for result in system.results]
            rows[system.label] = [statistics(lines, test.references, tokenizer, metrics) for lines in texts]
            advance(1)
    main, extra = ({system.label: rows[system.label] for system in group} for group in (systems, extra_rows))
    views = length_views(test.sources, inputs.pieces)
    by_words = views[0]
    trained = any(system.results[0].run_dir for system in systems)
    results, variant_results = (
        headlines(rows, pairs, by_words.lengths, settings.groups, settings.resampling, trained)
        for pairs in ([(label, baseline) for label in labels if label != baseline], compared_variants(extra, baseline))
    )
    return Report(
        title=f"BLEU by source length: {', '.join(labels)} on {visible(inputs.data)}",
        headlines=results,
        variant_headlines=variant_results,
        limits=limits(results, max(len(system.results) for system in systems), trained),
        provenance=dict(provenance),
        test=TestInfo(
            visible(test.name), visible(inputs.data), len(test.sources), *inputs.languages,
            lines_sha256(test.sources), [lines_sha256(lines) for lines in test.references],
        ),
        signatures=main[labels[0]][0].signatures,
        baseline=baseline,
        systems=[_system(system, main[system.label], inputs, settings) for system in systems],
        variants=[_system(system, extra[system.label], inputs, settings) for system in extra_rows],
        views=[_view(view, main, extra if view is by_words else {}, inputs.training, settings) for view in views],
        significance=significance_tests(main, by_words, baseline, settings.pairs == "all", settings.resampling),
        curves=validation_curves(systems),
        alignment=inputs.alignment,
        parameter_ratio=parameter_ratio(systems),
        fairness=fairness(systems),
    )  # fmt: skip


def choose_baseline(labels: Sequence[str], name: str | None) -> str:
    """The system that the others are tested against. ConfigError where it is none of them."""
    if name is None:
        return DEFAULT_BASELINE if DEFAULT_BASELINE in labels else labels[0]
    if name not in labels:
        raise ConfigError(f"study.baseline={name} is none of the systems: {', '.join(labels)}")
    return name


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
        runs=[
            RunRow(
                result.run, result.seed, bleu_of(rows.bleu).score, result.updates, result.evaluated_at,
                result.training.target_pieces, result.training.seconds, result.training.cpu_seconds, result.capped,
                lines_sha256(result.hypotheses),
            )
            for result, rows in zip(system.results, seeds, strict=True)
        ],
    )  # fmt: skip


def _view(
    view: LengthView,
    systems: SystemStatistics,
    variants: SystemStatistics,
    training: TrainingLengths | None,
    settings: StudySettings,
) -> View:
    bins = []
    for length_bin, members in zip(view.bins, view.members, strict=True):
        tokens = sum(view.lengths[index] for index in members)
        bins.append(BinInfo(length_bin.label, *length_bin, len(members), tokens, len(members) < MIN_SENTENCES))
    scores, variant_scores = (
        {
            label: [score_sentences(seeds, settings.resampling, members) for members in view.members]
            for label, seeds in rows.items()
        }
        for rows in (systems, variants)
    )
    cap = training.max_length_mark(view.name) if training else None
    shares = training.shares(view) if training else None
    axis = AXES[view.name]
    return View(view.name, axis, f"BLEU by {axis}", bins, cap, shares, scores, variant_scores)


def remarks(report: Report, failures: Iterable[str], more: Iterable[str]) -> list[str]:
    """What stands under the tables, in sentences; `more` are remarks on the extra rows."""
    test, record, systems = report.test, report.provenance, report.systems
    references = test.references_sha256
    labels = {name: METRICS[name].label if name in METRICS else "BLEU" for name in report.signatures}
    signatures = "; ".join(f"{labels[name]}: {signature}" for name, signature in report.signatures.items())
    seeds = {system.system: len(system.runs) for system in systems}
    capped = ", ".join(f"{system.system} {system.capped:,.0f}" for system in systems if system.capped)
    owners: dict[str, list[str]] = defaultdict(list)
    for system in systems:
        for warning in system.warnings:
            owners[warning].append(system.system)
    lines = [
        *report.fairness,
        f"Test set: {test.data}/{test.name}, {test.sentences:,} sentence{'s' * (test.sentences != 1)}, "
        f"source sha256 {test.source_sha256[:12]}, {len(references)} reference{'s' * (len(references) > 1)} "
        f"({', '.join(checksum[:12] for checksum in references)}). Lengths are 13a tokens of the raw source.",
        _search(systems),
        f"{signatures}. [ ]: 95% bootstrap interval.",
    ]
    if len(set(seeds.values())) > 1:
        lines.append(
            f"NUMBERS OF RUNS DIFFER: {', '.join(f'{label} {count}' for label, count in seeds.items())}; a system's "
            "BLEU is the mean of all of its own, the difference of two systems is of the first of each, as many as "
            "both have."
        )
    if capped:  # they alone can make a curve fall
        all_seeds = " in all seeds" if max(seeds.values()) > 1 else ""
        lines.append(f"Outputs as long as the search allows (capped){all_seeds}: {capped}.")
    return [
        *lines,
        *more,
        *(
            f"Warning ({'all' if len(names) == len(systems) else ', '.join(names)}): {warning}"
            for warning, names in owners.items()
        ),
        *(f"Missing: {failure}" for failure in failures),
        f"Made {record.get('date') or 'at an unknown date'} at commit {record.get('commit') or 'unknown'} "
        f"on {record.get('machine') or 'an unknown machine'}.",
    ]


def _search(systems: Sequence[SystemRow]) -> str:
    searches = [system.search for system in systems if system.search is not None]
    if not searches:
        return "Search: not known."
    first = searches[0]
    description = f"beam {first['beam']}, length penalty {first['length_penalty']:g}"
    description += f", at most {first['max_ratio']:g} x source + {first['max_extra']} pieces"
    if len(searches) < len(systems):
        return f"Search: not known for every system; the first known: {description}."
    same = all(search == first for search in searches)
    return f"{'Same search for all' if same else 'SEARCH SETTINGS DIFFER; the first'}: {description}."
