"""Is the comparison fair? What was the same for all systems and what was not, in plain sentences.

The four things that decide whether a difference between systems means anything: the same data, the same
number of updates, batches of the same size, and about the same number of parameters.
"""

from collections.abc import Sequence
from typing import Any

from nmt.schema import Settings, about, section_for
from nmt.study.results import System
from nmt.training_settings import TrainConfig

MAX_RATIO = 1.10  # largest / smallest number of parameters that still counts as the same size


def fairness(systems: Sequence[System]) -> list[str]:
    """Sentences on data, updates, batches, parameters, and other settings that differ; capitals where they disagree."""
    sentences = [_data(systems), _updates(systems), _batches(systems), _parameters(systems), _other_settings(systems)]
    sentences.append(_extended(systems))
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
    """Settings declared to be part of a fair comparison that differ among the runs that have them; empty if none."""
    runs = {
        system.label: [fair_settings(result.training.settings or {}) for result in system.results] for system in systems
    }
    every = [settings for seeds in runs.values() for settings in seeds]
    listed = []
    for key in dict.fromkeys(key for settings in every for key in settings):
        values = {label: seeds[0][key] for label, seeds in runs.items() if key in seeds[0]}
        if len({str(settings[key]) for settings in every if key in settings}) > 1:
            listed.append(f"{key} ({', '.join(f'{label} {value}' for label, value in values.items())})")
    return f"OTHER SETTINGS DIFFER: {'; '.join(listed)}." if listed else ""


def fair_settings(
    settings: dict[str, Any], declared: type[Settings] = TrainConfig, prefix: str = "", is_fair: bool = False
) -> dict[str, Any]:
    """The settings of a stored configuration that a fair comparison holds equal, flat; seeds may differ."""
    flat: dict[str, Any] = {}
    for key, field in declared.model_fields.items():
        if key not in settings or key == "seed":
            continue
        fair, section = is_fair or about(field).fair, section_for(field, settings[key])
        if section is not None and isinstance(settings[key], dict):
            target = {f"{prefix}{key}": settings[key]["_target_"]} if fair and "_target_" in settings[key] else {}
            flat |= target | fair_settings(
                settings[key], section, f"{prefix}{key}.", fair and section is not TrainConfig
            )
        elif fair:
            flat[f"{prefix}{key}"] = settings[key]
    return flat


def _extended(systems: Sequence[System]) -> str:
    """Runs that were continued with another budget, on which a schedule depends."""
    runs = [result.run for system in systems for result in system.results if result.training.extended]
    return f"CONTINUED WITH ANOTHER BUDGET, so with another schedule: {', '.join(runs)}." if runs else ""


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
