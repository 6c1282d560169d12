"""Rows beside the main ones: the same weights under other searches, and earlier weights at equal CPU time.

Equal updates favour what is slow, equal time what is fast (Bahdanau's systems: 2.08 times the updates for the one
without attention); a reader is shown both.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from nmt.progress import format_duration
from nmt.study.results import Result, System, TrainingInfo, json_object, read_metrics
from nmt.training.checkpoints import kept_files

EQUAL_TIME = "equal-time"


class ExtraRow(NamedTuple):
    """One more evaluation of one run."""

    system: str  # the row's name
    result: Result
    checkpoint: Path
    folder: Path  # where its evaluation goes
    settings: tuple[str, ...]  # of nmt.evaluate
    training: TrainingInfo


def other_searches(systems: Sequence[System], searches: Sequence[str]) -> list[ExtraRow]:
    """For each of our runs and each search, as settings of nmt.evaluate: "beam=1", "beam=10 length_penalty=0"."""
    rows = []
    for search in searches:
        settings = tuple(search.split())
        slug = re.sub(r"[^\w.=-]+", "-", "-".join(settings))
        for system in systems:
            for result in system.results:
                if result.run_dir is not None:
                    name = f"{system.label}, {' '.join(settings)}"
                    folder = result.run_dir / "evaluation" / slug
                    rows.append(ExtraRow(name, result, result.run_dir, folder, settings, result.training))
    return rows


def equal_time(systems: Sequence[System]) -> tuple[list[ExtraRow], list[str]]:
    """The latest kept weights of each run that cost no more CPU time than the cheapest system did in all.

    For a run kept without its weights, the row evaluated earlier, where that cost no more.
    With remarks: which systems have no such weights, and what a reader of the rows should know.
    """
    seconds = {system.label: system.mean(lambda result: result.training.cpu_seconds) for system in systems}
    known_seconds = {label: value for label, value in seconds.items() if value}
    if len(known_seconds) < 2:
        return [], []
    cheapest = min(known_seconds, key=known_seconds.__getitem__)
    budget = known_seconds[cheapest]
    precision = _precision(next(system for system in systems if system.label == cheapest))
    new_rows, missing, other_precision = [], [], []
    for system in systems:
        if known_seconds.get(system.label, budget) <= budget:  # no more in all, or unknown
            continue
        if _precision(system) != precision:
            other_precision.append(system.label)
            continue
        earlier = [(result, _latest_within(result, budget)) for result in system.results]
        if not all(row for _, row in earlier):
            missing.append(system.label)
            continue
        name = f"{system.label} at {cheapest}'s CPU time ({format_duration(budget)})"
        for result, row in earlier:
            if row is not None and result.run_dir is not None:
                checkpoint, training = row
                folder = result.run_dir / "evaluation" / EQUAL_TIME
                new_rows.append(ExtraRow(name, result, checkpoint, folder, (), training))
    remarks = []
    if missing:
        remarks.append(f"No row of equal time for {', '.join(missing)}: train with training.keep_every=N.")
    if other_precision:
        remarks.append(f"No row of equal time for {', '.join(other_precision)}: trained in another precision.")
    if new_rows:
        remarks.append("Weights of equal time are from within a training whose learning rate was still to fall.")
    return new_rows, remarks


def _precision(system: System) -> set[str | None]:
    return {(result.training.settings or {}).get("precision") for result in system.results}


def _latest_within(result: Result, budget: float) -> tuple[Path, TrainingInfo] | None:
    """The latest kept weights within a budget of CPU seconds, and the cost of their training."""
    if result.run_dir is None:
        return None
    costs = {
        line["update"]: line for line in read_metrics(result.run_dir) if "cpu_seconds" in line and "update" in line
    }
    kept = kept_files(result.run_dir) or _evaluated_before(result.run_dir, result.path.name)
    for update, file in reversed(kept.items()):
        after = min((at for at in costs if at >= update), default=None)  # the first line at or after: never too cheap
        if after is not None and costs[after]["cpu_seconds"] <= budget:
            line = costs[after]
            return file, result.training._replace(
                updates=update, target_pieces=line.get("target_pieces"), cpu_seconds=line["cpu_seconds"], seconds=None
            )
    return None


def _evaluated_before(run_dir: Path, name: str) -> dict[int, Path]:
    """The evaluation of such a row, by its update, of a run whose weights are gone."""
    file = run_dir / "evaluation" / EQUAL_TIME / name
    updates = json_object(file).get("updates")
    return {updates: file} if updates and isinstance(updates, int) else {}
