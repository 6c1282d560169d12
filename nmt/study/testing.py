"""Which systems differ, in which range of length: two tests a pair and bin, corrected for how many there are."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from nmt.errors import ConfigError
from nmt.evaluation.by_length import FEW
from nmt.evaluation.metrics import bleu_of
from nmt.evaluation.significance import PairedTest, Resampling, holm, paired_tests
from nmt.study.scoring import Rows
from nmt.study.views import View

LEVEL = 0.05
ENOUGH = 40  # resamples and trials for each test of a family: of 20 and fewer, none could pass Holm's correction
PS = ("p_bootstrap", "p_randomisation", "p_sacrebleu")
EVERYTHING = "all"  # what the whole test set is called among the bins


def pairs_of(labels: Sequence[str], baseline: str, pairs: str) -> list[tuple[int, int]]:
    """Which to test: each system against the baseline, or all pairs; the first of a pair is the one to be beaten."""
    if pairs == "all":
        return list(combinations(range(len(labels)), 2))
    if pairs != "baseline":
        raise ConfigError(f"pairs={pairs} is unknown: use baseline or all")
    place = labels.index(baseline)
    return [(place, other) for other in range(len(labels)) if other != place]


def significance(
    rows: dict[str, Rows], view: View, baseline: str, pairs: str, settings: Resampling
) -> dict[str, Any] | None:
    """All tests as plain values; None where there is nothing to test.

    The whole test set is a family of tests of its own; the bins of one pair are another, or those of all pairs. Bins
    that only describe (under 100 sentences) are tested but belong to no family, and carry no claim. Large families
    are given more resamples and trials than were asked for, without which no p value could be small enough.
    """
    labels = list(rows)
    chosen = pairs_of(labels, baseline, pairs)
    if not chosen:
        return None
    counted = sum(len(members) >= FEW for members in view.members)
    least = ENOUGH * max(len(chosen), counted * (len(chosen) if pairs == "all" else 1))
    settings = replace(settings, resamples=max(settings.resamples, least), trials=max(settings.trials, least))
    whole = np.arange(len(view.lengths))
    parts = {EVERYTHING: whole, **dict(zip([where.label for where in view.bins], view.members, strict=True))}
    tests: list[dict[str, Any]] = []
    for name, members in parts.items():
        parted = [rows[label].of(members).bleu for label in labels]
        known = [all(bleu_of(run).defined for run in runs) for runs in parted]
        tests += [
            _described(view.name, name, (labels[a], labels[b]), len(members), one, known[a] and known[b])
            for (a, b), one in zip(chosen, paired_tests(parted, chosen, settings), strict=True)
        ]
    for family in _families(tests, by_pair=pairs == "baseline"):
        for way in ("bootstrap", "randomisation"):
            for test, adjusted in zip(family, holm([test[f"p_{way}"] for test in family]), strict=True):
                test[f"holm_{way}"] = adjusted
    for test in tests:
        both = [test.setdefault(f"holm_{way}") for way in ("bootstrap", "randomisation")]
        test["significant"] = all(p is not None and p < LEVEL for p in both)
    return {
        "holm": _families_in_words(counted, len(chosen), pairs),
        "resamples": settings.resamples,
        "trials": settings.trials,
        "seed": settings.seed,
        "tests": tests,
    }


def _described(view: str, name: str, pair: tuple[str, str], n: int, test: PairedTest, known: bool) -> dict[str, Any]:
    """Plain values; nothing of a pair where a system has no BLEU, no interval from a single sentence."""
    values = {"view": view, "bin": name, "a": pair[0], "b": pair[1], "n": n, **test._asdict()}
    if not known and not test.identical:
        return {**values, **dict.fromkeys(("difference", "interval", *PS))}
    return {**values, "interval": list(test.interval) if n > 1 else None}


def _families(tests: Sequence[dict[str, Any]], by_pair: bool) -> list[list[dict[str, Any]]]:
    tests = [test for test in tests if test["n"] >= FEW and test["difference"] is not None]
    whole = [test for test in tests if test["bin"] == EVERYTHING]
    bins = [test for test in tests if test["bin"] != EVERYTHING]
    if not by_pair:
        return [whole, bins]
    pairs = dict.fromkeys((test["a"], test["b"]) for test in tests)
    return [whole, *([test for test in bins if (test["a"], test["b"]) == pair] for pair in pairs)]


def _families_in_words(bins: int, pairs: int, tested: str) -> str:
    """What is corrected together, to stand after "Holm's correction"."""
    if pairs == 1:
        whole, whose = "the whole test set is one test", ""
    else:
        whole = f"the whole test set over its {pairs} pairs"
        whose = " of each pair" if tested == "baseline" else f" of all {pairs} pairs"
    if not bins:
        return f"{whole}; no bin has {FEW} sentences, so no bin is starred"
    return f"over the {bins} bin{'s' * (bins != 1)} of {FEW} sentences or more{whose}; {whole}"
