"""The comparison as plain values: every number that the page, the tables and the figures show.

All systems are measured alike: the same sentences in a bin for every system, corpus BLEU inside the bin, intervals, two
tests a bin corrected for their number, and the difference of differences as the result.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from nmt.data.corpus import TestSet
from nmt.errors import ConfigError
from nmt.evaluation.by_length import MIN_SENTENCES
from nmt.evaluation.metrics import bleu_of
from nmt.evaluation.stored import lines_sha256
from nmt.progress import progress
from nmt.settings import ResamplingSettings
from nmt.study.fairness import fairness, parameter_ratio
from nmt.study.figures import validation_curves
from nmt.study.headline import LengthGroups, headlines, limits
from nmt.study.hypothesis_tests import significance_tests
from nmt.study.length_views import LengthView, TrainingLengths, length_views
from nmt.study.results import Result, System
from nmt.study.scoring import SeedStatistics, mean_scores, seed_statistics

DEFAULT_BASELINE = "rnn"


class StudySettings(NamedTuple):
    """Settings of the comparison that the numbers depend on."""

    baseline: str | None
    pairs: str
    groups: LengthGroups
    resampling: ResamplingSettings


class StudyInputs(NamedTuple):
    """What a report needs beside the translations."""

    test: TestSet
    data: str  # the test set's corpus
    languages: tuple[str, str]
    pieces: Sequence[int] | None  # of each source
    training: TrainingLengths | None
    states: Mapping[
        str, tuple[int, int]
    ]  # by system: how many numbers of the source reach the decoder, + n x per piece
    alignment: list[dict[str, Any]]


def build_report(
    systems: Sequence[System],
    extra_rows: Sequence[System],
    inputs: StudyInputs,
    settings: StudySettings,
    provenance: Mapping[str, Any],
) -> dict[str, Any]:
    """The report. Extra rows (other searches, equal time) are scored beside the systems, but not tested or drawn."""
    labels = [system.label for system in systems]
    baseline = choose_baseline(labels, settings.baseline)
    language = inputs.languages[1]
    with progress("scoring", len(systems) + len(extra_rows), True) as advance:
        statistics = {system.label: seed_statistics(system, inputs.test, language, advance) for system in systems}
        extra_statistics = {
            system.label: seed_statistics(system, inputs.test, language, advance) for system in extra_rows
        }
    views = length_views(inputs.test.sources, inputs.pieces)
    by_words = views[0]
    headline_values = headlines(statistics, by_words, baseline, settings.groups, settings.resampling)
    seeds = max(len(system.results) for system in systems)
    return {
        "title": f"BLEU by source length: {', '.join(labels)} on {inputs.data}",
        "headlines": headline_values,
        "limits": limits(headline_values, seeds),
        "record": dict(provenance),
        "test": _test(inputs),
        "signatures": {name: statistics[labels[0]].signatures[name] for name in ("bleu", "chrf")},
        "baseline": baseline,
        "systems": [_system(system, statistics[system.label], inputs, settings) for system in systems],
        "variants": [_system(system, extra_statistics[system.label], inputs, settings) for system in extra_rows],
        "views": [
            _view(view, statistics, extra_statistics if view is by_words else {}, inputs, settings) for view in views
        ],
        "significance": significance_tests(statistics, by_words, baseline, settings.pairs, settings.resampling),
        "curves": {label: [list(point) for point in curve] for label, curve in validation_curves(systems).items()},
        "alignment": inputs.alignment,
        "parameter_ratio": parameter_ratio(systems),
        "fairness": fairness(systems),
    }


def choose_baseline(labels: Sequence[str], name: str | None) -> str:
    """The system that the others are tested against. ConfigError where it is none of them."""
    if name is None:
        return DEFAULT_BASELINE if DEFAULT_BASELINE in labels else labels[0]
    if name not in labels:
        raise ConfigError(f"baseline={name} is none of the systems: {', '.join(labels)}")
    return name


def _test(inputs: StudyInputs) -> dict[str, Any]:
    test = inputs.test
    return {
        "name": test.name,
        "data": inputs.data,
        "sentences": len(test.sources),
        "source_language": inputs.languages[0],
        "target_language": inputs.languages[1],
        "source_sha256": lines_sha256(test.sources),
        "references_sha256": [lines_sha256(lines) for lines in test.references],
    }


def _system(system: System, statistics: SeedStatistics, inputs: StudyInputs, settings: StudySettings) -> dict[str, Any]:
    state = inputs.states.get(system.label)
    return {
        "system": system.label,
        "parameters": system.parameters,
        "state_numbers": None if state is None or state[1] else state[0],
        "state": None if state is None else _state(*state),
        **mean_scores(statistics, settings.resampling),
        "ter": system.mean(lambda result: result.evaluation["metrics"]["ter"]["score"]),
        "updates": system.mean(lambda result: result.updates),
        "evaluated_at_update": system.mean(lambda result: result.evaluation["updates"]),
        "target_pieces": system.mean(lambda result: result.training.target_pieces),
        "cpu_seconds": system.mean(lambda result: result.training.cpu_seconds),
        "capped": system.total(lambda result: result.evaluation["capped"]),
        "search": system.results[0].evaluation["search"],
        "warnings": list(dict.fromkeys(str(w) for result in system.results for w in result.evaluation["warnings"])),
        "runs": [_run(result, rows) for result, rows in zip(system.results, statistics.bleu, strict=True)],
    }


def _state(fixed: int, per_piece: int) -> str:
    """Real numbers that reach the decoder for a source of n pieces."""
    return " + ".join(
        filter(None, [f"{per_piece} n" if per_piece else "", str(fixed) if fixed or not per_piece else ""])
    )


def _run(result: Result, bleu_rows: np.ndarray) -> dict[str, Any]:
    evaluation = result.evaluation
    return {
        "run": evaluation["run"],
        "seed": evaluation["seed"],
        "bleu": bleu_of(bleu_rows).score,
        "updates": result.updates,
        "evaluated_at_update": evaluation["updates"],
        "target_pieces": result.training.target_pieces,
        "seconds": result.training.seconds,
        "cpu_seconds": result.training.cpu_seconds,
        "capped": evaluation["capped"],
        "hypotheses_sha256": lines_sha256(result.hypotheses),
    }


def _view(
    view: LengthView,
    statistics: Mapping[str, SeedStatistics],
    extra_statistics: Mapping[str, SeedStatistics],
    inputs: StudyInputs,
    settings: StudySettings,
) -> dict[str, Any]:
    scored = {
        label: [mean_scores(system_statistics.subset(members), settings.resampling) for members in view.members]
        for label, system_statistics in {**statistics, **extra_statistics}.items()
    }
    training = inputs.training
    return {
        "name": view.name,
        "axis": view.axis,
        "title": f"BLEU by {view.axis}",
        "bins": [
            {
                "label": length_bin.label,
                "low": length_bin.low,
                "high": length_bin.high,
                "n": len(members),
                "source_tokens": int(view.lengths[members].sum()),
                "descriptive": len(members) < MIN_SENTENCES,
            }
            for length_bin, members in zip(view.bins, view.members, strict=True)
        ],
        "cap": training.max_length_mark(view.name) if training else None,
        "training": view.shares(training.lengths(view.name)) if training else None,
        "scores": {label: scored[label] for label in statistics},
        "variants": {label: scored[label] for label in extra_statistics},
    }
