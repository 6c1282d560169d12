"""The main result of the study: how much more attention is worth on long sentences than on short ones.

Two overall scores do not show a bottleneck; it is an interaction of system and length. So the gap to the system
without attention is taken on long and on short sentences, and the difference of the two gaps is the result.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from nmt.evaluation.by_length import MIN_SENTENCES, Bin
from nmt.evaluation.significance import Interaction, difference_of_differences
from nmt.settings import BootstrapSettings
from nmt.study.length_views import LengthView
from nmt.study.scoring import SeedStatistics

MIN_FOR_CLAIM = 200  # sentences in each of the two, for a claim


class LengthGroups(NamedTuple):
    """What counts as short and as long: source words, both ends included; None: no upper end."""

    short: tuple[int, int]
    long: tuple[int, int | None]

    @property
    def bins(self) -> tuple[Bin, Bin]:
        """As bins, short first."""
        low, high = self.long
        return Bin(self.short[0], self.short[1] + 1), Bin(low, None if high is None else high + 1)


def headlines(
    statistics: dict[str, SeedStatistics],
    by_words: LengthView,
    baseline: str,
    groups: LengthGroups,
    settings: BootstrapSettings,
) -> list[dict[str, Any]]:
    """One for each system but the baseline; none where there are no short or no long sentences."""
    short, long = (by_words.indices_between(*length_bin) for length_bin in groups.bins)
    values = []
    for system in statistics:
        if system == baseline:
            continue
        result = difference_of_differences(statistics[baseline].bleu, statistics[system].bleu, short, long, settings)
        if result is not None:
            values.append(_headline_values(system, baseline, groups.bins, (len(short), len(long)), result))
    return values


def _headline_values(
    system: str, baseline: str, ranges: Sequence[Bin], n: tuple[int, int], result: Interaction
) -> dict[str, Any]:
    values = {
        "system": system,
        "baseline": baseline,
        "short": ranges[0].label,
        "long": ranges[1].label,
        "n_short": n[0],
        "n_long": n[1],
        "estimate": result.estimate,
        "interval": list(result.interval),
        "seeds": result.seeds,
        "gap_short": result.short[0],
        "gap_short_interval": list(result.short[1]),
        "gap_long": result.long[0],
        "gap_long_interval": list(result.long[1]),
        "descriptive": min(n) < MIN_SENTENCES,
    }
    return {**values, "sentence": _sentence(values)}


def _sentence(values: dict[str, Any]) -> str:
    low, high = values["interval"]
    if values["descriptive"]:
        verdict = f"under {MIN_SENTENCES} sentences in one of the two: this only describes"
    elif low <= 0 <= high:
        verdict = "0 is inside: no change of the gap with length is shown"
    else:
        verdict = _change(values)
    seeds = values["seeds"]
    by_seed = f"{len(seeds)} seeds: {', '.join(f'{estimate:+.1f}' for estimate in seeds)}"
    short, long = ("trails" if round(values[gap], 1) < 0 else "leads" for gap in ("gap_short", "gap_long"))
    return (
        f"{values['system']} {short} {values['baseline']} by {abs(values['gap_short']):.1f} BLEU on sources of "
        f"{values['short']} words and {f'{long} it ' * (long != short)}by {abs(values['gap_long']):.1f} on sources of "
        f"{values['long']} words: a difference of {values['estimate']:+.1f} [{low:+.1f}, {high:+.1f}] ({verdict}; "
        f"n={values['n_short']:,} and {values['n_long']:,}; {by_seed if len(seeds) > 1 else 'one seed'})."
    )


def _change(values: dict[str, Any]) -> str:
    """How length changes the gap, whichever system leads."""
    if values["gap_short"] * values["gap_long"] < 0:
        return f"length moves the difference {'towards' if values['estimate'] > 0 else 'away from'} {values['system']}"
    grows = abs(values["gap_long"]) > abs(values["gap_short"])
    return f"the gap {'grows' if grows else 'shrinks'} with length"


def limits(values: Sequence[dict[str, Any]], seeds: int) -> list[str]:
    """What the numbers above do not show, in sentences."""
    if not values:
        return ["There is no headline number: it takes two systems, and short and long sentences that have a BLEU."]
    lines = [
        "The intervals are 95% and cover the choice of test sentences, not that of training seeds"
        + ("; there is one run of each system." if seeds == 1 else ", which stand beside them one by one."),
        "Short and long sentences differ in content too; a gap that grows shows that length and what comes with it "
        "hurt one system more, not which property of attention is the cause.",
        "It holds for this text, size of state and budget; a larger state or a longer training may show less.",
    ]
    if any(MIN_FOR_CLAIM > min(headline["n_short"], headline["n_long"]) for headline in values):
        lines.append(f"Fewer than {MIN_FOR_CLAIM} sentences are short, or long: too few for a claim.")
    return lines
