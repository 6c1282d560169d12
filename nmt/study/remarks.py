"""Remarks under the tables: fairness, test set, search, signatures, warnings, provenance."""

from collections.abc import Sequence

from nmt.evaluation.metrics import METRICS
from nmt.study.report import Report, SystemRow


def remarks(report: Report, failures: Sequence[str], more: Sequence[str]) -> list[str]:
    """Sentences, one a line; `more` are remarks on the extra rows."""
    test, record = report.test, report.provenance
    count = len(test.references_sha256)
    checksums = ", ".join(checksum[:12] for checksum in test.references_sha256)
    signatures = "; ".join(f"{_label(name)}: {signature}" for name, signature in report.signatures.items())
    return [
        *report.fairness,
        f"Test set: {test.data}/{test.name}, {test.sentences:,} sentence{'s' * (test.sentences != 1)}, "
        f"source sha256 {test.source_sha256[:12]}, {count} reference{'s' * (count > 1)} ({checksums}). "
        "Lengths are 13a tokens of the raw source.",
        _search(report.systems),
        f"{signatures}. [ ]: 95% bootstrap interval.",
        *_unpaired(report.systems),
        *_capped(report.systems),
        *more,
        *(f"Warning ({label}): {text}" for label, text in _warnings(report.systems)),
        *(f"Missing: {failure}" for failure in failures),
        f"Made {record.get('date') or 'at an unknown date'} at commit {record.get('commit') or 'unknown'} "
        f"on {record.get('machine') or 'an unknown machine'}.",
    ]


def _label(metric: str) -> str:
    return METRICS[metric].label if metric in METRICS else "BLEU"


def _search(systems: Sequence[SystemRow]) -> str:
    searches = [system.search for system in systems if system.search is not None]
    if not searches:
        return "Search: not known."
    first = searches[0]
    description = f"beam {first['beam']}, length penalty {first['length_penalty']:g}"
    description += f", at most {first['max_ratio']:g} x source + {first['max_extra']} pieces"
    if len(searches) < len(systems):
        return f"Search: not known for every system; the first known: {description}."
    same = all(search == first for search in searches)
    return f"{'Same search for all' if same else 'SEARCH SETTINGS DIFFER; the first'}: {description}."


def _unpaired(systems: Sequence[SystemRow]) -> list[str]:
    """Differences are between paired runs, scores are means over all runs: they need not agree."""
    counts = {system.system: len(system.runs) for system in systems}
    if len(set(counts.values())) < 2:
        return []
    listed = ", ".join(f"{label} {count}" for label, count in counts.items())
    return [
        f"NUMBERS OF RUNS DIFFER: {listed}; a system's BLEU is the mean of all of its own, the difference of two "
        "systems is of the first of each, as many as both have."
    ]


def _capped(systems: Sequence[SystemRow]) -> list[str]:
    """Outputs cut at the cap: they alone can make a curve fall."""
    counts = {system.system: system.capped for system in systems if system.capped}
    if not counts:
        return []
    listed = ", ".join(f"{label} {count:,.0f}" for label, count in counts.items())
    all_seeds = " in all seeds" if any(len(system.runs) > 1 for system in systems) else ""
    return [f"Outputs as long as the search allows (capped){all_seeds}: {listed}."]


def _warnings(systems: Sequence[SystemRow]) -> list[tuple[str, str]]:
    """Warnings of the evaluations; one that all systems share is listed once."""
    owners: dict[str, list[str]] = {}
    for system in systems:
        for warning in system.warnings:
            owners.setdefault(warning, []).append(system.system)
    labels_of_all = {system.system for system in systems}
    return [("all" if set(labels) == labels_of_all else ", ".join(labels), text) for text, labels in owners.items()]
