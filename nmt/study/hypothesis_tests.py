"""Which systems differ significantly, in which bin: two tests for each pair and bin, with Holm's correction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from nmt.errors import ConfigError
from nmt.evaluation.bootstrap import block_sums
from nmt.evaluation.by_length import MIN_SENTENCES
from nmt.evaluation.metrics import Statistics, bleu_of
from nmt.evaluation.significance import PairedTest, holm, paired_tests
from nmt.settings import ResamplingSettings
from nmt.study.length_views import LengthView

ALPHA = 0.05
RESAMPLES_PER_TEST = 40  # of a family: with 20 or fewer, no test could pass Holm's correction
WHOLE_SET = "all"  # the bin name of the whole test set


def tested_pairs(labels: Sequence[str], baseline: str, pairs: str) -> list[tuple[int, int]]:
    """Which to test: each system against the baseline, or all pairs; the first of a pair is the one to beat."""
    if pairs == "all":
        return list(combinations(range(len(labels)), 2))
    if pairs != "baseline":
        raise ConfigError(f"pairs={pairs} is unknown: use baseline or all")
    first = labels.index(baseline)
    return [(first, other) for other in range(len(labels)) if other != first]


@dataclass(frozen=True)
class PairTest:
    """System b against system a in one bin. None where a system has no BLEU; no interval from a single sentence."""

    view: str
    bin: str
    a: str
    b: str
    n: int
    difference: float | None  # BLEU of b minus BLEU of a
    interval: tuple[float, float] | None
    p_bootstrap: float | None
    p_randomisation: float | None
    identical: bool
    holm_bootstrap: float | None = None  # None: the bin belongs to no family
    holm_randomisation: float | None = None
    significant: bool = False  # both


@dataclass(frozen=True)
class Significance:
    """All tests, and what they were corrected for."""

    holm: str
    resamples: int
    trials: int
    seed: int
    tests: list[PairTest]


def significance_tests(
    statistics: Mapping[str, Sequence[Statistics]],
    view: LengthView,
    baseline: str,
    pairs: str,
    settings: ResamplingSettings,
) -> Significance | None:
    """All tests; None where there is nothing to test.

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
    larger = {key: max(getattr(settings, key), minimum) for key in ("resamples", "trials")}
    settings = settings.model_copy(update=larger)
    whole = np.arange(len(view.lengths))
    parts = {WHOLE_SET: whole, **dict(zip([length_bin.label for length_bin in view.bins], view.members, strict=True))}
    tests: list[PairTest] = []
    for name, members in parts.items():
        runs = [[seed.bleu[members] for seed in statistics[label]] for label in labels]
        defined = [all(bleu_of(rows).defined for rows in seeds) for seeds in runs]
        units = [[block_sums(rows, members, settings.blocks) for rows in seeds] for seeds in runs]
        tests += [
            _pair_test(view.name, name, (labels[a], labels[b]), len(members), test, defined[a] and defined[b])
            for (a, b), test in zip(chosen, paired_tests(units, chosen, settings), strict=True)
        ]
    tests = _corrected(tests, by_pair=pairs == "baseline")
    holm_text = _describe_families(counted, len(chosen), pairs)
    return Significance(holm_text, settings.resamples, settings.trials, settings.seed, tests)


def _pair_test(view: str, name: str, pair: tuple[str, str], n: int, test: PairedTest, defined: bool) -> PairTest:
    if not defined and not test.identical:
        return PairTest(view, name, *pair, n, None, None, None, None, identical=False)
    ends = test.interval if n > 1 else None
    return PairTest(view, name, *pair, n, test.difference, ends, test.p_bootstrap, test.p_randomisation, test.identical)


def _corrected(tests: Sequence[PairTest], by_pair: bool) -> list[PairTest]:
    """With Holm's correction in each family, and a star where both adjusted p values are small."""
    families: dict[tuple[str, ...], list[int]] = {}
    for index, test in enumerate(tests):
        if test.n >= MIN_SENTENCES and test.difference is not None:
            family = (WHOLE_SET,) if test.bin == WHOLE_SET else (test.a, test.b) if by_pair else ()
            families.setdefault(family, []).append(index)
    corrected = list(tests)
    for members in families.values():
        p_values = [[getattr(tests[n], f"p_{method}") for n in members] for method in ("bootstrap", "randomisation")]
        for n, bootstrap, randomisation in zip(members, *map(holm, p_values), strict=True):
            both = max(bootstrap, randomisation) < ALPHA
            corrected[n] = replace(
                tests[n], holm_bootstrap=bootstrap, holm_randomisation=randomisation, significant=both
            )
    return corrected


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
