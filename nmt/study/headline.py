"""The main result of the study: how much more attention is worth on long sentences than on short ones.

Two overall scores do not show a bottleneck; it is an interaction of system and length. So the gap to the system
without attention is taken on long and on short sentences, and the difference of the two gaps is the result.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from nmt.evaluation.by_length import MIN_SENTENCES, Bin
from nmt.evaluation.metrics import Statistics
from nmt.evaluation.significance import difference_of_differences
from nmt.settings import BootstrapSettings
from nmt.study.length_views import LengthView

MIN_FOR_CLAIM = 200  # sentences in each of the two, for a claim
Interval = tuple[float, float]
SystemStatistics = Mapping[str, Sequence[Statistics]]  # by system, one a seed


class LengthGroups(NamedTuple):
    """What counts as short and as long: source words, both ends included; None: no upper end."""

    short: tuple[int, int]
    long: tuple[int, int | None]

    @property
    def bins(self) -> tuple[Bin, Bin]:
        """As bins, short first."""
        low, high = self.long
        return Bin(self.short[0], self.short[1] + 1), Bin(low, None if high is None else high + 1)


@dataclass(frozen=True)
class Headline:
    """The lead of a system over the baseline on long sentences minus that on short ones: BLEU and 95% intervals."""

    system: str
    baseline: str
    short: str
    long: str
    n_short: int
    n_long: int
    estimate: float
    interval: Interval
    seeds: list[float]  # the estimate of each pair of runs
    gap_short: float
    gap_short_interval: Interval
    gap_long: float
    gap_long_interval: Interval
    descriptive: bool  # too few sentences for a claim
    sentence: str = ""


def headlines(
    statistics: SystemStatistics,
    by_words: LengthView,
    baseline: str,
    groups: LengthGroups,
    settings: BootstrapSettings,
    has_seeds: bool = True,
) -> list[Headline]:
    """One for each system but the baseline; none where there are no short or no long sentences."""
    pairs = [(system, baseline) for system in statistics if system != baseline]
    return _headlines(statistics, pairs, by_words, groups, settings, has_seeds)


def variant_headlines(
    systems: SystemStatistics,
    variants: SystemStatistics,
    by_words: LengthView,
    baseline: str,
    groups: LengthGroups,
    settings: BootstrapSettings,
    has_seeds: bool = True,
) -> list[Headline]:
    """The same for other searches, each against the baseline's row of that search, and for equal time."""
    pairs = []
    for label in variants:
        search = label.partition(", ")[2]
        other = f"{baseline}, {search}" if f"{baseline}, {search}" in variants else baseline
        if other != label and not label.startswith(f"{baseline}, "):
            pairs.append((label, other))
    return _headlines({**systems, **variants}, pairs, by_words, groups, settings, has_seeds)


def _headlines(
    statistics: SystemStatistics,
    pairs: Sequence[tuple[str, str]],
    by_words: LengthView,
    groups: LengthGroups,
    settings: BootstrapSettings,
    has_seeds: bool = True,
) -> list[Headline]:
    short, long = (by_words.indices_between(*length_bin) for length_bin in groups.bins)
    rows = []
    for system, baseline in pairs:
        first, second = ([seed.bleu for seed in statistics[label]] for label in (baseline, system))
        result = difference_of_differences(first, second, short, long, settings)
        if result is not None:
            row = Headline(
                system=system,
                baseline=baseline,
                short=groups.bins[0].label,
                long=groups.bins[1].label,
                n_short=len(short),
                n_long=len(long),
                estimate=result.estimate,
                interval=result.interval,
                seeds=result.seeds,
                gap_short=result.short[0],
                gap_short_interval=result.short[1],
                gap_long=result.long[0],
                gap_long_interval=result.long[1],
                descriptive=min(len(short), len(long)) < MIN_SENTENCES,
            )
            rows.append(replace(row, sentence=_sentence(row, has_seeds)))
    return rows


def _sentence(row: Headline, has_seeds: bool = True) -> str:
    low, high = row.interval
    if row.descriptive:
        verdict = f"under {MIN_SENTENCES} sentences in one of the two: this only describes"
    elif low <= 0 <= high:
        verdict = "0 is inside: no change of the gap with length is shown"
    else:
        verdict = _change(row)
    by_seed = f"; {len(row.seeds)} seeds: {', '.join(f'{estimate:+.1f}' for estimate in row.seeds)}"
    if len(row.seeds) == 1:  # of translations in text files nobody knows
        by_seed = "; one seed" if has_seeds else ""
    short, long = ("trails" if round(gap, 1) < 0 else "leads" for gap in (row.gap_short, row.gap_long))
    return (
        f"{row.system} {short} {row.baseline} by {abs(row.gap_short):.1f} BLEU on sources of "
        f"{row.short} words and {f'{long} it ' * (long != short)}by {abs(row.gap_long):.1f} on sources of "
        f"{row.long} words: a difference of {row.estimate:+.1f} [{low:+.1f}, {high:+.1f}] ({verdict}; "
        f"n={row.n_short:,} and {row.n_long:,}{by_seed})."
    )


def _change(row: Headline) -> str:
    """How length changes the gap, whichever system leads."""
    if row.gap_short * row.gap_long < 0:
        return f"length moves the difference {'towards' if row.estimate > 0 else 'away from'} {row.system}"
    return f"the gap {'grows' if abs(row.gap_long) > abs(row.gap_short) else 'shrinks'} with length"


def limits(rows: Sequence[Headline], seeds: int, trained: bool = True) -> list[str]:
    """What the numbers above do not show, in sentences. Of translations in text files nothing is said about seeds."""
    if not rows:
        return ["There is no headline number: it takes two systems, and short and long sentences that have a BLEU."]
    training = (
        ", not that of training seeds; there is one run of each system"
        if seeds == 1
        else f" and, for the difference above, that of {seeds} training seeds; the tests below are of these seeds"
    )
    lines = [
        f"The intervals are 95% and cover the choice of test sentences{training if trained else ''}.",
        "Short and long sentences differ in content too; a gap that grows shows that length and what comes with it "
        "hurt one system more, not which property of attention is the cause.",
        "It holds for this text, size of state and budget; a larger state or a longer training may show less.",
    ]
    if any(MIN_FOR_CLAIM > min(row.n_short, row.n_long) for row in rows):
        lines.append(f"Fewer than {MIN_FOR_CLAIM} sentences are short, or long: too few for a claim.")
    return lines
