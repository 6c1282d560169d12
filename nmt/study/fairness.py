"""Is the comparison fair? What was the same for all systems and what was not, in plain sentences.

The four things that decide whether a difference between systems means anything: the same data, the same
number of updates, batches of the same size, and about the same number of parameters.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from nmt.schema import Settings, about, section_for
from nmt.study.results import System
from nmt.training_settings import TrainConfig

MAX_RATIO = 1.10  # largest / smallest number of parameters that still counts as the same size


def fairness(systems: Sequence[System]) -> list[str]:
    """Sentences on data, updates, batches, parameters, and other settings that differ; capitals where they disagree."""
    sentences = [_data(systems), _updates(systems), _batches(systems), _parameters(systems), _other_settings(systems)]
    extended = [result.run for system in systems for result in system.results if result.training.extended]
    if extended:
        sentences.append(f"CONTINUED WITH ANOTHER BUDGET, so with another schedule: {', '.join(extended)}.")
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
    percent = f"{100 * (ratio - 1):.1f}%"
    numbers = f"largest / smallest = {ratio:.3f} ({largest} {sizes[largest]:,}, {smallest} {sizes[smallest]:,})"
    if ratio <= MAX_RATIO:
        return f"Parameters agree within {percent}: {numbers}."
    return f"PARAMETERS DIFFER by {percent}: {numbers}; a difference in BLEU may come from size."


def _updates(systems: Sequence[System]) -> str:
    """Names the systems too whose evaluated weights, the best in validation, are not their last."""
    updates = {system.label: {result.updates or 0 for result in system.results} for system in systems}
    earlier = {
        system.label: {int(result.evaluated_at or 0) for result in system.results}
        for system in systems
        if any(result.evaluated_at != result.updates for result in system.results)
    }
    counts = set().union(*updates.values())
    if 0 in counts:
        return "Updates: not known for every system."
    evaluated = "; the best weights in validation, which are evaluated, are of update: " + _each(earlier)
    same = f"Same updates for all: {max(counts):,}" if len(counts) == 1 else f"UPDATES DIFFER: {_each(updates)}"
    return f"{same}{evaluated if earlier else ''}."


def _each(counts: Mapping[str, set[int]]) -> str:
    return ", ".join(f"{label} {' / '.join(f'{n:,}' for n in sorted(numbers))}" for label, numbers in counts.items())


def _data(systems: Sequence[System]) -> str:
    """Compared by the checksum of the training pairs as read, and by how many were kept."""
    recorded = [(system.label, result.training.data) for system in systems for result in system.results]
    kept = [(label, data["train_sha256"], data["train"]["kept"]) for label, data in recorded if data]
    if len(kept) < len(recorded):
        return "Training data: not known for every system (no data.json with its evaluation)."
    _, checksum, pairs = kept[0]
    if all(facts[1:] == (checksum, pairs) for facts in kept):
        return f"Same training data for all: {pairs:,} pairs, sha256 {checksum[:12]}."
    return f"TRAINING DATA DIFFER: {', '.join(f'{label} {pairs:,} pairs' for label, _, pairs in kept)}."


def _batches(systems: Sequence[System]) -> str:
    configs = [result.training.settings or {} for system in systems for result in system.results]
    settings = [config["batching"] for config in configs if isinstance(config.get("batching"), dict)]
    if len(settings) < len(configs):
        return "Batches: not known for every system (no config.yaml with its evaluation)."
    values = {key: {str(section.get(key)) for section in settings} for key in chain(*settings)}
    if different := [key for key in values if len(values[key]) > 1 and not key.endswith("seed")]:
        return f"BATCHES DIFFER in {', '.join(different)}."
    tokens = settings[0].get("tokens")
    return f"Same batches for all{f': {tokens:,} tokens, padding included' if isinstance(tokens, int) else ''}."


def _other_settings(systems: Sequence[System]) -> str:
    """Settings declared to be part of a fair comparison that differ among the runs that have them; empty if none."""
    runs = {
        system.label: [fair_settings(result.training.settings or {}) for result in system.results] for system in systems
    }
    listed = []
    every = [settings for seeds in runs.values() for settings in seeds]
    for key in dict.fromkeys(chain(*every)):
        if len({str(settings[key]) for settings in every if key in settings}) == 1:
            continue
        values = (f"{label} {seeds[0][key]}" for label, seeds in runs.items() if key in seeds[0])
        listed.append(f"{key} ({', '.join(values)})")
    return f"OTHER SETTINGS DIFFER: {'; '.join(listed)}." if listed else ""


def fair_settings(
    settings: Mapping[str, Any], declared: type[Settings] = TrainConfig, prefix: str = "", is_fair: bool = False
) -> dict[str, Any]:
    """The settings of a stored configuration that a fair comparison holds equal, flat; seeds may differ."""
    flat: dict[str, Any] = {}
    for key, field in declared.model_fields.items():
        if key not in settings or key == "seed":
            continue
        fair, section = is_fair or about(field).fair, section_for(field, settings[key])
        if section is not None and isinstance(settings[key], dict):
            target = {f"{prefix}{key}": settings[key]["_target_"]} if fair and "_target_" in settings[key] else {}
            flat |= target | fair_settings(settings[key], section, f"{prefix}{key}.", fair)
        elif fair:
            flat[f"{prefix}{key}"] = settings[key]
    return flat
