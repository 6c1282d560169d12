"""Is the comparison fair? What was the same for all systems and what was not, in plain sentences.

The four things that decide whether a difference between systems means anything: the same data, the same
number of updates, batches of the same size, and about the same number of parameters.
"""

from collections.abc import Sequence
from typing import Any

from nmt.study.results import System

# beside the batches, what a comparison of models holds still
SAME = ("cleaning", "tokenizer", "optimizer", "schedule", "precision")
SAME_TRAINING = ("label_smoothing", "mean_over", "clip_norm", "accumulate", "average_last", "patience", "monitor",
                 "validate_every", "bleu_sentences")  # fmt: skip
AGREES = 1.10  # largest / smallest number of parameters that still counts as the same size


def fairness(systems: Sequence[System]) -> list[str]:
    """Sentences on data, updates, batches, parameters, and other settings that differ; capitals where they disagree."""
    sentences = [_data(systems), _updates(systems), _batches(systems), _parameters(systems), _others(systems)]
    return [sentence for sentence in sentences if sentence]


def parameter_ratio(systems: Sequence[System]) -> float | None:
    """Largest number of parameters over the smallest; None where one is not known."""
    sizes = [system.parameters for system in systems if system.parameters]
    return max(sizes) / min(sizes) if len(sizes) == len(systems) else None


def _parameters(systems: Sequence[System]) -> str:
    sizes = {system.label: system.parameters or 0 for system in systems}
    ratio = parameter_ratio(systems)
    if ratio is None:
        return "Parameters: not known for every system."
    if len(systems) == 1:
        return f"Parameters: {systems[0].parameters:,}."
    largest, smallest = max(sizes, key=sizes.__getitem__), min(sizes, key=sizes.__getitem__)
    ends = f"{largest} {sizes[largest]:,}, {smallest} {sizes[smallest]:,}"
    percent = f"{100 * (ratio - 1):.1f}%"
    if ratio <= AGREES:
        return f"Parameters agree within {percent}: largest / smallest = {ratio:.3f} ({ends})."
    return (
        f"PARAMETERS DIFFER by {percent}: largest / smallest = {ratio:.3f} ({ends}); "
        f"a difference in BLEU may come from size."
    )


def _updates(systems: Sequence[System]) -> str:
    updates = {system.label: sorted({one.updates or 0 for one in system.results}) for system in systems}
    every = sorted({count for counts in updates.values() for count in counts})
    if 0 in every:
        return "Updates: not known for every system."
    if len(every) == 1:
        return f"Same updates for all: {every[0]:,}{_evaluated_at(systems)}."
    return f"UPDATES DIFFER: {_each(updates)}{_evaluated_at(systems)}."


def _evaluated_at(systems: Sequence[System]) -> str:
    """Whose weights are not the last ones: those that did best in validation are taken."""
    earlier = {
        system.label: sorted({int(one.evaluation["updates"]) for one in system.results})
        for system in systems
        if any(one.evaluation["updates"] != one.updates for one in system.results)
    }
    return f"; the best weights in validation, which are evaluated, are of update: {_each(earlier)}" if earlier else ""


def _each(counts: dict[str, list[int]]) -> str:
    return ", ".join(f"{label} {' / '.join(f'{n:,}' for n in numbers)}" for label, numbers in counts.items())


def _data(systems: Sequence[System]) -> str:
    """By the checksum of the training pairs as they were read, and how many of them were kept."""
    facts = [result.training.data for system in systems for result in system.results]
    known = [one for one in facts if one is not None and "train_sha256" in one]
    if len(known) < len(facts):
        return "Training data: not known for every system (no data.json with its evaluation)."
    texts = {(one["train_sha256"], one["train"]["kept"]) for one in known}
    if len(texts) == 1:
        checksum, kept = texts.pop()
        return f"Same training data for all: {kept:,} pairs, sha256 {checksum[:12]}."
    each = ", ".join(
        f"{system.label} {result.training.data['train']['kept']:,} pairs"
        for system in systems
        for result in system.results
        if result.training.data
    )
    return f"TRAINING DATA DIFFER: {each}."


def _batches(systems: Sequence[System]) -> str:
    settings = _section(systems, "batching")
    if settings is None:
        return "Batches: not known for every system (no config.yaml with its evaluation)."
    different = _differing(settings)
    if different:
        return f"BATCHES DIFFER in {_list(different)}."
    tokens = [value for key, value in settings[0].items() if "tokens" in key and isinstance(value, int)]
    size = f": {tokens[0]:,} tokens, padding included" if tokens else ""
    return f"Same batches for all{size}."


def _others(systems: Sequence[System]) -> str:
    """Settings outside the model that all runs have and that differ; empty where none does, or none is known."""
    runs = {system.label: [_rules(one.training.settings or {}) for one in system.results] for system in systems}
    every = [rules for known in runs.values() for rules in known]
    shared = [key for key in _differing(every) if all(key in rules for rules in every)]
    listed = [f"{key} ({', '.join(f'{label} {known[0][key]}' for label, known in runs.items())})" for key in shared]
    return f"OTHER SETTINGS DIFFER: {'; '.join(listed)}." if listed else ""


def _rules(settings: dict[str, Any]) -> dict[str, Any]:
    training = settings.get("training") or {}
    kept = {name: settings[name] for name in SAME if name in settings}
    return _flat({**kept, "training": {key: value for key, value in training.items() if key in SAME_TRAINING}})


def _section(systems: Sequence[System], name: str) -> list[dict[str, Any]] | None:
    """The flattened section of every run's config; None if a run has no config or no such section."""
    sections = []
    for system in systems:
        for result in system.results:
            section = (result.training.settings or {}).get(name)
            if section is None:
                return None
            sections.append(_flat(section if isinstance(section, dict) else {name: section}))
    return sections


def _flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            flat |= _flat(value, f"{name}.")
        else:
            flat[name] = value
    return flat


def _differing(settings: Sequence[dict[str, Any]]) -> list[str]:
    """Keys whose values are not the same in all; seeds may differ."""
    keys = [key for key in dict.fromkeys(key for one in settings for key in one) if not key.endswith("seed")]
    missing = object()
    first = settings[0]
    return [key for key in keys if any(one.get(key, missing) != first.get(key, missing) for one in settings)]


def _list(words: Sequence[str]) -> str:
    return ", ".join(words)
