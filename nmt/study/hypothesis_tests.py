"""Which systems differ significantly, in which bin: two tests for each pair and bin, with Holm's correction."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from nmt.errors import ConfigError
from nmt.evaluation.by_length import MIN_SENTENCES
from nmt.evaluation.metrics import bleu_of
from nmt.evaluation.significance import PairedTest, holm, paired_tests
from nmt.settings import ResamplingSettings
from nmt.study.length_views import LengthView
from nmt.study.scoring import SeedStatistics

ALPHA = 0.05
RESAMPLES_PER_TEST = 40  # of a family: with 20 or fewer, no test could pass Holm's correction
P_VALUES = ("p_bootstrap", "p_randomisation")
WHOLE_SET = "all"  # the bin name of the whole test set


def tested_pairs(labels: Sequence[str], baseline: str, pairs: str) -> list[tuple[int, int]]:
    """Which to test: each system against the baseline, or all pairs; the first of a pair is the one to beat."""
    if pairs == "all":
        return list(combinations(range(len(labels)), 2))
    if pairs != "baseline":
        raise ConfigError(f"pairs={pairs} is unknown: use baseline or all")
    first = labels.index(baseline)
    return [(first, other) for other in range(len(labels)) if other != first]


def significance_tests(
    statistics: dict[str, SeedStatistics], view: LengthView, baseline: str, pairs: str, settings: ResamplingSettings
) -> dict[str, Any] | None:
    """All tests as plain values; None where there is nothing to test.

    The whole test set is a family of tests of its own; the bins of one pair are another, or those of all pairs. Bins
    of under 100 sentences are tested but belong to no family, and carry no claim. Large families get more resamples
    and trials than the settings say, without which no p value could be small enough.
    """
    labels = list(statistics)
    chosen = tested_pairs(labels, baseline, pairs)
    if not chosen:
        return None
    counted = sum(len(members) >= MIN_SENTENCES for members in view.members)
    minimum = RESAMPLES_PER_TEST * max(len(chosen), counted * (len(chosen) if pairs == "all" else 1))
    at_least = {"resamples": max(settings.resamples, minimum), "trials": max(settings.trials, minimum)}
    settings = settings.model_copy(update=at_least)
    whole = np.arange(len(view.lengths))
    parts = {WHOLE_SET: whole, **dict(zip([length_bin.label for length_bin in view.bins], view.members, strict=True))}
    tests: list[dict[str, Any]] = []
    for name, members in parts.items():
        bin_statistics = [statistics[label].subset(members).bleu for label in labels]
        defined = [all(bleu_of(run).defined for run in runs) for runs in bin_statistics]
        tests += [
            _test_values(view.name, name, (labels[a], labels[b]), len(members), test, defined[a] and defined[b])
            for (a, b), test in zip(chosen, paired_tests(bin_statistics, chosen, settings), strict=True)
        ]
    for family in _families(tests, by_pair=pairs == "baseline"):
        for method in ("bootstrap", "randomisation"):
            for test, adjusted in zip(family, holm([test[f"p_{method}"] for test in family]), strict=True):
                test[f"holm_{method}"] = adjusted
    for test in tests:
        both = [test.setdefault(f"holm_{method}") for method in ("bootstrap", "randomisation")]
        test["significant"] = all(p is not None and p < ALPHA for p in both)
    return {
        "holm": _describe_families(counted, len(chosen), pairs),
        "resamples": settings.resamples,
        "trials": settings.trials,
        "seed": settings.seed,
        "tests": tests,
    }


def _test_values(
    view: str, name: str, pair: tuple[str, str], n: int, test: PairedTest, defined: bool
) -> dict[str, Any]:
    """Plain values: None where a system has no BLEU, no interval from a single sentence."""
    values = {"view": view, "bin": name, "a": pair[0], "b": pair[1], "n": n, **test._asdict()}
    if not defined and not test.identical:
        return {**values, **dict.fromkeys(("difference", "interval", *P_VALUES))}
    return {**values, "interval": list(test.interval) if n > 1 else None}


def _families(tests: Sequence[dict[str, Any]], by_pair: bool) -> list[list[dict[str, Any]]]:
    tests = [test for test in tests if test["n"] >= MIN_SENTENCES and test["difference"] is not None]
    whole = [test for test in tests if test["bin"] == WHOLE_SET]
    bins = [test for test in tests if test["bin"] != WHOLE_SET]
    if not by_pair:
        return [whole, bins]
    pairs = dict.fromkeys((test["a"], test["b"]) for test in tests)
    return [whole, *([test for test in bins if (test["a"], test["b"]) == pair] for pair in pairs)]


def _describe_families(bins: int, pairs: int, tested: str) -> str:
    """What is corrected together, to stand after "Holm's correction"."""
    if pairs == 1:
        whole, whose = "the whole test set is one test", ""
    else:
        whole = f"the whole test set over its {pairs} pairs"
        whose = " of each pair" if tested == "baseline" else f" of all {pairs} pairs"
    if not bins:
        return f"{whole}; no bin has {MIN_SENTENCES} sentences, so no bin is starred"
    return f"over the {bins} bin{'s' * (bins != 1)} of {MIN_SENTENCES} sentences or more{whose}; {whole}"
