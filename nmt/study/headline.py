"""The number of the study: how much more attention is worth on long sentences than on short ones.

Two overall scores do not show a bottleneck; it is an interaction of system and length. So the gap to the system
without attention is taken on long and on short sentences, and the difference of the two gaps is the result.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from nmt.evaluation.bootstrap import Bootstrap
from nmt.evaluation.by_length import FEW
from nmt.evaluation.lengths import Bin
from nmt.evaluation.significance import Interaction, difference_of_differences
from nmt.study.scoring import Rows
from nmt.study.views import View

CLAIM = 200  # sentences in each of the two, for a claim


class Ends(NamedTuple):
    """What counts as short and as long: source words, both ends included; None: no upper end."""

    short: tuple[int, int]
    long: tuple[int, int | None]

    @property
    def ranges(self) -> tuple[Bin, Bin]:
        """The same as bins, short first."""
        low, high = self.long
        return Bin(self.short[0], self.short[1] + 1), Bin(low, None if high is None else high + 1)


def headlines(
    rows: dict[str, Rows], words: View, baseline: str, ends: Ends, settings: Bootstrap
) -> list[dict[str, Any]]:
    """One for each system but the baseline; none where there are no short or no long sentences."""
    short, long = (words.between(*one) for one in ends.ranges)
    found = []
    for system in rows:
        if system == baseline:
            continue
        result = difference_of_differences(rows[baseline].bleu, rows[system].bleu, short, long, settings)
        if result is not None:
            found.append(_described(system, baseline, ends.ranges, (len(short), len(long)), result))
    return found


def _described(
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
        "descriptive": min(n) < FEW,
    }
    return {**values, "sentence": _sentence(values)}


def _sentence(found: dict[str, Any]) -> str:
    low, high = found["interval"]
    if found["descriptive"]:
        verdict = f"under {FEW} sentences in one of the two: this only describes"
    elif low <= 0 <= high:
        verdict = "0 is inside: no change of the gap with length is shown"
    else:
        verdict = _change(found)
    seeds = found["seeds"]
    spread = f"; {len(seeds)} seeds: {', '.join(f'{one:+.1f}' for one in seeds)}" if len(seeds) > 1 else "; one seed"
    short, long = ("trails" if round(found[gap], 1) < 0 else "leads" for gap in ("gap_short", "gap_long"))
    return (
        f"{found['system']} {short} {found['baseline']} by {abs(found['gap_short']):.1f} BLEU on sources of "
        f"{found['short']} words and {f'{long} it ' * (long != short)}by {abs(found['gap_long']):.1f} on sources of "
        f"{found['long']} words: a difference of {found['estimate']:+.1f} [{low:+.1f}, {high:+.1f}] ({verdict}; "
        f"n={found['n_short']:,} and {found['n_long']:,}{spread})."
    )


def _change(found: dict[str, Any]) -> str:
    """What becomes of the gap, whoever leads."""
    if found["gap_short"] * found["gap_long"] < 0:
        return f"length moves the difference {'towards' if found['estimate'] > 0 else 'away from'} {found['system']}"
    grows = abs(found["gap_long"]) > abs(found["gap_short"])
    return f"the gap {'grows' if grows else 'shrinks'} with length"


def limits(found: Sequence[dict[str, Any]], seeds: int) -> list[str]:
    """What the numbers above do not show, in sentences."""
    if not found:
        return ["There is no headline number: it takes two systems, and short and long sentences that have a BLEU."]
    lines = [
        "The intervals are 95% and cover the choice of test sentences, not that of training seeds"
        + ("; there is one run of each system." if seeds == 1 else ", which stand beside them one by one."),
        "Short and long sentences differ in content too; a gap that grows shows that length and what comes with it "
        "hurt one system more, not which property of attention is the cause.",
        "It holds for this text, size of state and budget; a larger state or a longer training may show less.",
    ]
    if any(CLAIM > min(one["n_short"], one["n_long"]) for one in found):
        lines.append(f"Fewer than {CLAIM} sentences are short, or long: too few for a claim.")
    return lines
