"""Which systems differ significantly, in which bin: two tests for each pair and bin, with Holm's correction."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from nmt.evaluation.bootstrap import block_sums
from nmt.evaluation.by_length import MIN_SENTENCES
from nmt.evaluation.metrics import Statistics, bleu_of
from nmt.evaluation.significance import holm, paired_tests
from nmt.settings import ResamplingSettings
from nmt.study.length_views import LengthView

ALPHA = 0.05
RESAMPLES_PER_TEST = 40  # of a family: with 20 or fewer, no test could pass Holm's correction
WHOLE_SET = "all"  # the bin name of the whole test set


@dataclass(frozen=True)
class PairTest:
    """System b against system a in one bin. None where a system has no BLEU; no interval from a single sentence."""

    view: str
    bin: str
    a: str
    b: str
    n: int
    difference: float | None = None  # BLEU of b minus BLEU of a
    interval: tuple[float, float] | None = None
    p_bootstrap: float | None = None
    p_randomisation: float | None = None
    identical: bool = False
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
    all_pairs: bool,
    settings: ResamplingSettings,
) -> Significance | None:
    """Tests of each system against the baseline, or of all pairs; None where there is nothing to test.

    The whole test set is a family of tests of its own; the bins of one pair are another, or those of all pairs. Bins
    of under 100 sentences are tested but belong to no family, and carry no claim. Large families get more resamples
    and trials than the settings say, without which no p value could be small enough.
    """
    labels = list(statistics)
    first = labels.index(baseline)
    pairs = [(first, other) for other in range(len(labels)) if other != first]
    if all_pairs:  # the first of a pair is the one to beat
        pairs = list(combinations(range(len(labels)), 2))
    if not pairs:
        return None
    counted = sum(len(members) >= MIN_SENTENCES for members in view.members)
    minimum = RESAMPLES_PER_TEST * max(len(pairs), counted * (len(pairs) if all_pairs else 1))
    larger = {key: max(getattr(settings, key), minimum) for key in ("resamples", "trials")}
    settings = settings.model_copy(update=larger)
    tests: list[PairTest] = []
    for name, members in [
        (WHOLE_SET, np.arange(len(view.lengths))),
        *((length_bin.label, members) for length_bin, members in zip(view.bins, view.members, strict=True)),
    ]:
        runs = [[seed.bleu[members] for seed in statistics[label]] for label in labels]
        defined = [all(bleu_of(rows).defined for rows in seeds) for seeds in runs]
        units = [[block_sums(rows, members, settings.blocks) for rows in seeds] for seeds in runs]
        for (a, b), result in zip(pairs, paired_tests(units, pairs, settings), strict=True):
            test = PairTest(view.name, name, labels[a], labels[b], len(members))
            if (defined[a] and defined[b]) or result.identical:
                values = result._asdict() | ({} if len(members) > 1 else {"interval": None})
                test = replace(test, **values)
            tests.append(test)
    text = _describe_families(counted, len(pairs), all_pairs)
    return Significance(text, settings.resamples, settings.trials, settings.seed, _corrected(tests, all_pairs))


def _corrected(tests: Sequence[PairTest], all_pairs: bool) -> list[PairTest]:
    """With Holm's correction in each family, and a star where both adjusted p values are small."""
    families: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for index, test in enumerate(tests):
        if test.n >= MIN_SENTENCES and test.difference is not None:
            families[(WHOLE_SET,) if test.bin == WHOLE_SET else () if all_pairs else (test.a, test.b)].append(index)
    corrected = list(tests)
    for members in families.values():
        p_values = [[getattr(tests[n], f"p_{method}") for n in members] for method in ("bootstrap", "randomisation")]
        for n, bootstrap, randomisation in zip(members, *map(holm, p_values), strict=True):
            both = max(bootstrap, randomisation) < ALPHA
            corrected[n] = replace(
                tests[n], holm_bootstrap=bootstrap, holm_randomisation=randomisation, significant=both
            )
    return corrected


def _describe_families(bins: int, pairs: int, all_pairs: bool) -> str:
    """What is corrected together, to stand after "Holm's correction"."""
    whole, whose = "the whole test set is one test", ""
    if pairs > 1:
        whole = f"the whole test set over its {pairs} pairs"
        whose = f" of all {pairs} pairs" if all_pairs else " of each pair"
    if not bins:
        return f"{whole}; no bin has {MIN_SENTENCES} sentences, so no bin is starred"
    return f"over the {bins} bin{'s' * (bins != 1)} of {MIN_SENTENCES} sentences or more{whose}; {whole}"
