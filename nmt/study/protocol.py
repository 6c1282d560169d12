"""The whole comparison as plain values: every number that the page, the tables and the figures show.

One protocol for all systems: the same sentences in a bin for every system, corpus BLEU inside the bin, intervals, two
tests a bin corrected for their number, and the difference of differences as the result.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from nmt.data.corpus import TestSet
from nmt.errors import ConfigError
from nmt.evaluation.by_length import FEW
from nmt.evaluation.metrics import bleu_of
from nmt.evaluation.significance import Resampling
from nmt.evaluation.store import lines_sha256
from nmt.progress import progress
from nmt.study.curves import curves_of
from nmt.study.fairness import fairness, parameter_ratio
from nmt.study.headline import Ends, headlines, limits
from nmt.study.results import Result, System
from nmt.study.scoring import Rows, rows_of, scores
from nmt.study.testing import significance
from nmt.study.training_text import TrainingText
from nmt.study.views import View, views_of

NO_ATTENTION = "rnn"  # the usual baseline


class Choices(NamedTuple):
    """What a user may choose."""

    baseline: str | None
    pairs: str
    ends: Ends
    resampling: Resampling


class Known(NamedTuple):
    """What is known beside the translations."""

    test: TestSet
    data: str  # the test set's corpus
    languages: tuple[str, str]
    pieces: Sequence[int] | None  # of each source
    training: TrainingText | None
    states: Mapping[
        str, tuple[int, int]
    ]  # by system: numbers of the source that reach the decoder, fixed and per piece
    alignment: list[dict[str, Any]]


def compared(
    systems: Sequence[System], variants: Sequence[System], known: Known, choices: Choices, made: Mapping[str, Any]
) -> dict[str, Any]:
    """The report. Variants (other searches, equal time) are scored beside the systems, but not tested or drawn."""
    labels = [system.label for system in systems]
    baseline = _baseline(labels, choices.baseline)
    language = known.languages[1]
    with progress("scoring", len(systems) + len(variants), True) as advance:
        rows = {system.label: rows_of(system, known.test, language, advance) for system in systems}
        extra = {system.label: rows_of(system, known.test, language, advance) for system in variants}
    views = views_of(known.test.sources, known.pieces)
    words = views[0]
    found = headlines(rows, words, baseline, choices.ends, choices.resampling)
    seeds = max(len(system.results) for system in systems)
    return {
        "title": f"BLEU by source length: {', '.join(labels)} on {known.data}",
        "headlines": found,
        "limits": limits(found, seeds),
        "record": dict(made),
        "test": _test(known),
        "signatures": {name: rows[labels[0]].signatures[name] for name in ("bleu", "chrf")},
        "baseline": baseline,
        "systems": [_system(system, rows[system.label], known, choices) for system in systems],
        "variants": [_system(system, extra[system.label], known, choices) for system in variants],
        "views": [_view(view, rows, extra if view is words else {}, known, choices) for view in views],
        "significance": significance(rows, words, baseline, choices.pairs, choices.resampling),
        "curves": {label: [list(point) for point in curve] for label, curve in curves_of(systems).items()},
        "alignment": known.alignment,
        "parameter_ratio": parameter_ratio(systems),
        "fairness": fairness(systems),
    }


def _baseline(labels: Sequence[str], wanted: str | None) -> str:
    if wanted is None:
        return NO_ATTENTION if NO_ATTENTION in labels else labels[0]
    if wanted not in labels:
        raise ConfigError(f"baseline={wanted} is none of the systems: {', '.join(labels)}")
    return wanted


def _test(known: Known) -> dict[str, Any]:
    test = known.test
    return {
        "name": test.name,
        "data": known.data,
        "sentences": len(test.sources),
        "source_language": known.languages[0],
        "target_language": known.languages[1],
        "source_sha256": lines_sha256(test.sources),
        "references_sha256": [lines_sha256(lines) for lines in test.references],
    }


def _system(system: System, rows: Rows, known: Known, choices: Choices) -> dict[str, Any]:
    state = known.states.get(system.label)
    return {
        "system": system.label,
        "parameters": system.parameters,
        "state_numbers": None if state is None or state[1] else state[0],
        "state": None if state is None else _state(*state),
        **scores(rows, choices.resampling),
        "ter": system.mean(lambda result: result.evaluation["metrics"]["ter"]["score"]),
        "updates": system.mean(lambda result: result.updates),
        "evaluated_at_update": system.mean(lambda result: result.evaluation["updates"]),
        "target_pieces": system.mean(lambda result: result.training.target_pieces),
        "cpu_seconds": system.mean(lambda result: result.training.cpu_seconds),
        "capped": system.total(lambda result: result.evaluation["capped"]),
        "search": system.results[0].evaluation["search"],
        "warnings": list(dict.fromkeys(str(w) for result in system.results for w in result.evaluation["warnings"])),
        "runs": [_run(result, one) for result, one in zip(system.results, rows.bleu, strict=True)],
    }


def _state(fixed: int, per_piece: int) -> str:
    """Real numbers that reach the decoder for a source of n pieces."""
    return " + ".join(
        filter(None, [f"{per_piece} n" if per_piece else "", str(fixed) if fixed or not per_piece else ""])
    )


def _run(result: Result, rows: np.ndarray) -> dict[str, Any]:
    evaluation = result.evaluation
    return {
        "run": evaluation["run"],
        "seed": evaluation["seed"],
        "bleu": bleu_of(rows).score,
        "updates": result.updates,
        "evaluated_at_update": evaluation["updates"],
        "target_pieces": result.training.target_pieces,
        "seconds": result.training.seconds,
        "cpu_seconds": result.training.cpu_seconds,
        "capped": evaluation["capped"],
        "hypotheses_sha256": lines_sha256(result.hypotheses),
    }


def _view(
    view: View, rows: Mapping[str, Rows], extra: Mapping[str, Rows], known: Known, choices: Choices
) -> dict[str, Any]:
    scored = {
        label: [scores(own.of(members), choices.resampling) for members in view.members]
        for label, own in {**rows, **extra}.items()
    }
    training = known.training
    return {
        "name": view.name,
        "axis": view.axis,
        "title": f"BLEU by {view.axis}",
        "bins": [
            {
                "label": where.label,
                "low": where.low,
                "high": where.high,
                "n": len(members),
                "source_tokens": int(view.lengths[members].sum()),
                "descriptive": len(members) < FEW,
            }
            for where, members in zip(view.bins, view.members, strict=True)
        ],
        "cap": training.cap(view.name) if training else None,
        "training": view.shares(training.lengths(view.name)) if training else None,
        "scores": {label: scored[label] for label in rows},
        "variants": {label: scored[label] for label in extra},
    }
