"""Is the comparison fair? What was the same for all systems and what was not, in plain sentences.

The four things that decide whether a difference between systems means anything: the same data, the same
number of updates, batches of the same size, and about the same number of parameters.
"""

from collections.abc import Sequence
from typing import Any

from nmt.study.results import System

# what a comparison of models keeps fixed, beside the batches
SAME_SECTIONS = ("cleaning", "tokenizer", "optimizer", "schedule", "precision")
SAME_TRAINING = ("label_smoothing", "mean_over", "clip_norm", "accumulate", "average_last", "patience", "monitor",
                 "validate_every", "bleu_sentences")  # fmt: skip
MAX_RATIO = 1.10  # largest / smallest number of parameters that still counts as the same size


def fairness(systems: Sequence[System]) -> list[str]:
    """Sentences on data, updates, batches, parameters, and other settings that differ; capitals where they disagree."""
    sentences = [_data(systems), _updates(systems), _batches(systems), _parameters(systems), _other_settings(systems)]
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
    if ratio <= MAX_RATIO:
        return f"Parameters agree within {percent}: largest / smallest = {ratio:.3f} ({ends})."
    return (
        f"PARAMETERS DIFFER by {percent}: largest / smallest = {ratio:.3f} ({ends}); "
        f"a difference in BLEU may come from size."
    )


def _updates(systems: Sequence[System]) -> str:
    updates = {system.label: sorted({result.updates or 0 for result in system.results}) for system in systems}
    counts_of_all = sorted({count for counts in updates.values() for count in counts})
    if 0 in counts_of_all:
        return "Updates: not known for every system."
    if len(counts_of_all) == 1:
        return f"Same updates for all: {counts_of_all[0]:,}{_evaluated_at(systems)}."
    return f"UPDATES DIFFER: {_each(updates)}{_evaluated_at(systems)}."


def _evaluated_at(systems: Sequence[System]) -> str:
    """Names the systems whose evaluated weights, the best in validation, are not their last."""
    earlier = {
        system.label: sorted({int(result.evaluated_at or 0) for result in system.results})
        for system in systems
        if any(result.evaluated_at != result.updates for result in system.results)
    }
    return f"; the best weights in validation, which are evaluated, are of update: {_each(earlier)}" if earlier else ""


def _each(counts: dict[str, list[int]]) -> str:
    return ", ".join(f"{label} {' / '.join(f'{n:,}' for n in numbers)}" for label, numbers in counts.items())


def _data(systems: Sequence[System]) -> str:
    """Compared by the checksum of the training pairs as read, and by how many were kept."""
    recorded = [result.training.data for system in systems for result in system.results]
    known = [data for data in recorded if data is not None and "train_sha256" in data]
    if len(known) < len(recorded):
        return "Training data: not known for every system (no data.json with its evaluation)."
    texts = {(data["train_sha256"], data["train"]["kept"]) for data in known}
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
        return f"BATCHES DIFFER in {', '.join(different)}."
    tokens = [value for key, value in settings[0].items() if "tokens" in key and isinstance(value, int)]
    size = f": {tokens[0]:,} tokens, padding included" if tokens else ""
    return f"Same batches for all{size}."


def _other_settings(systems: Sequence[System]) -> str:
    """Settings outside the model that all runs have and that differ; empty where none does, or none is known."""
    runs = {
        system.label: [_compared_settings(result.training.settings or {}) for result in system.results]
        for system in systems
    }
    all_runs = [settings for seeds in runs.values() for settings in seeds]
    shared = [key for key in _differing(all_runs) if all(key in settings for settings in all_runs)]
    listed = [f"{key} ({', '.join(f'{label} {seeds[0][key]}' for label, seeds in runs.items())})" for key in shared]
    return f"OTHER SETTINGS DIFFER: {'; '.join(listed)}." if listed else ""


def _compared_settings(settings: dict[str, Any]) -> dict[str, Any]:
    training = settings.get("training") or {}
    kept = {name: settings[name] for name in SAME_SECTIONS if name in settings}
    return _flatten({**kept, "training": {key: value for key, value in training.items() if key in SAME_TRAINING}})


def _section(systems: Sequence[System], name: str) -> list[dict[str, Any]] | None:
    """The flattened section of every run's config; None if a run has no config or no such section."""
    sections = []
    for system in systems:
        for result in system.results:
            section = (result.training.settings or {}).get(name)
            if section is None:
                return None
            sections.append(_flatten(section if isinstance(section, dict) else {name: section}))
    return sections


def _flatten(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            flat |= _flatten(value, f"{name}.")
        else:
            flat[name] = value
    return flat


def _differing(settings: Sequence[dict[str, Any]]) -> list[str]:
    """Keys whose values are not the same in all; seeds may differ."""
    keys = [key for key in dict.fromkeys(key for values in settings for key in values) if not key.endswith("seed")]
    missing = object()
    first = settings[0]
    return [key for key in keys if any(values.get(key, missing) != first.get(key, missing) for values in settings)]
