"""The main result of the study: how much more attention is worth on long sentences than on short ones.

Two overall scores do not show a bottleneck; it is an interaction of system and length. So the gap to the system
without attention is taken on long and on short sentences, and the difference of the two gaps is the result.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from nmt.evaluation.by_length import MIN_SENTENCES, Bin, bin_members
from nmt.evaluation.metrics import Statistics
from nmt.evaluation.significance import difference_of_differences
from nmt.settings import BootstrapSettings, HeadlineSettings

MIN_FOR_CLAIM = 200  # sentences in each of the two, for a claim
Interval = tuple[float, float]
LengthGroups = Sequence[Bin]  # what counts as short and what as long, in source words


def length_groups(settings: HeadlineSettings) -> LengthGroups:
    """Of [FIRST,LAST] of each."""
    return [Bin(low or 1, None if high is None else high + 1) for low, high in (settings.short, settings.long)]


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


def compared_variants(variants: Iterable[str], baseline: str) -> list[tuple[str, str]]:
    """Other searches, each with the baseline's row of that search, and rows of equal time with the baseline."""
    labels, pairs = list(variants), []
    for label in labels:
        same_search = f"{baseline}, {label.partition(', ')[2]}"
        if not label.startswith(f"{baseline}, "):
            pairs.append((label, same_search if same_search in labels else baseline))
    return pairs


def headlines(
    statistics: Mapping[str, Sequence[Statistics]],
    pairs: Iterable[tuple[str, str]],
    lengths: Sequence[int],
    groups: LengthGroups,
    settings: BootstrapSettings,
    has_seeds: bool = True,
) -> list[Headline]:
    """One for each (system, baseline), from the statistics of each one's seeds and the lengths of the sources.

    None where there are no short or no long sentences.
    """
    short, long = bin_members(lengths, groups)
    rows = []
    for system, baseline in pairs:
        first, second = ([seed.bleu for seed in statistics[label]] for label in (baseline, system))
        result = difference_of_differences(first, second, short, long, settings)
        if result is not None:
            row = Headline(
                system, baseline, groups[0].label, groups[1].label, len(short), len(long),
                result.estimate, result.interval, result.seeds, *result.short, *result.long,
                descriptive=min(len(short), len(long)) < MIN_SENTENCES,
            )  # fmt: skip
            rows.append(replace(row, sentence=_sentence(row, has_seeds)))
    return rows


def _sentence(row: Headline, has_seeds: bool = True) -> str:
    """True whichever system leads; of translations in text files nobody knows how many seeds there are."""
    low, high = row.interval
    if row.descriptive:
        verdict = f"under {MIN_SENTENCES} sentences in one of the two: this only describes"
    elif low <= 0 <= high:
        verdict = "0 is inside: no change of the gap with length is shown"
    elif row.gap_short * row.gap_long < 0:
        verdict = f"length moves the difference {'towards' if row.estimate > 0 else 'away from'} {row.system}"
    else:
        verdict = f"the gap {'grows' if abs(row.gap_long) > abs(row.gap_short) else 'shrinks'} with length"
    by_seed = "; one seed" if has_seeds else ""
    if len(row.seeds) > 1:
        by_seed = f"; {len(row.seeds)} seeds: {', '.join(f'{estimate:+.1f}' for estimate in row.seeds)}"
    short, long = ("trails" if round(gap, 1) < 0 else "leads" for gap in (row.gap_short, row.gap_long))
    return (
        f"{row.system} {short} {row.baseline} by {abs(row.gap_short):.1f} BLEU on sources of "
        f"{row.short} words and {f'{long} it ' * (long != short)}by {abs(row.gap_long):.1f} on sources of "
        f"{row.long} words: a difference of {row.estimate:+.1f} [{low:+.1f}, {high:+.1f}] ({verdict}; "
        f"n={row.n_short:,} and {row.n_long:,}{by_seed})."
    )


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
