"""Rows beside the main ones: the same weights under other searches, and earlier weights at equal CPU time.

Equal updates favour what is slow, equal time what is fast (Bahdanau's systems: 2.08 times the updates for the one
without attention); a reader is shown both.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from nmt.study.progress import clock
from nmt.study.results import Result, System, Training, json_object, logged
from nmt.training.kept import kept_files

EQUAL_TIME = "equal-time"


class Variant(NamedTuple):
    """One more evaluation of one run."""

    system: str  # the row's name
    of: Result
    checkpoint: Path
    folder: Path  # where its evaluation goes
    settings: tuple[str, ...]  # of nmt.evaluate
    training: Training


def other_searches(systems: Sequence[System], searches: Sequence[str]) -> list[Variant]:
    """For each of our runs and each search, as settings of nmt.evaluate: "beam=1", "beam=10 length_penalty=0"."""
    found = []
    for search in searches:
        settings = tuple(search.split())
        slug = re.sub(r"[^\w.=-]+", "-", "-".join(settings))
        for system in systems:
            for result in system.results:
                if result.run_dir is not None:
                    name = f"{system.label}, {' '.join(settings)}"
                    folder = result.run_dir / "evaluation" / slug
                    found.append(Variant(name, result, result.run_dir, folder, settings, result.training))
    return found


def equal_time(systems: Sequence[System]) -> tuple[list[Variant], list[str]]:
    """The latest kept weights of each run that cost no more CPU time than the cheapest system did in all.

    Of a run that is kept without its weights, the row that it had, where that was no dearer.
    With remarks: which systems have no such weights, and what a reader of the rows should know.
    """
    seconds = {system.label: system.mean(lambda result: result.training.cpu_seconds) for system in systems}
    known = {label: value for label, value in seconds.items() if value}
    if len(known) < 2:
        return [], []
    cheapest = min(known, key=known.__getitem__)
    budget = known[cheapest]
    precision = _precision(next(system for system in systems if system.label == cheapest))
    found, missing, others = [], [], []
    for system in systems:
        if known.get(system.label, budget) <= budget:  # of this cost as a whole, or of none that is known
            continue
        if _precision(system) != precision:
            others.append(system.label)
            continue
        earlier = [(result, _within(result, budget)) for result in system.results]
        if not all(row for _, row in earlier):
            missing.append(system.label)
            continue
        name = f"{system.label} at {cheapest}'s CPU time ({clock(budget)})"
        for result, row in earlier:
            if row is not None and result.run_dir is not None:
                checkpoint, training = row
                folder = result.run_dir / "evaluation" / EQUAL_TIME
                found.append(Variant(name, result, checkpoint, folder, (), training))
    said = [f"No row of equal time for {', '.join(missing)}: train with training.keep_every=N."] if missing else []
    said += [f"No row of equal time for {', '.join(others)}: trained in another precision."] if others else []
    said += ["Weights of equal time are from within a training whose learning rate was still to fall."] if found else []
    return found, said


def _precision(system: System) -> set[str | None]:
    return {(result.training.settings or {}).get("precision") for result in system.results}


def _within(result: Result, budget: float) -> tuple[Path, Training] | None:
    """The latest kept weights within a budget of CPU seconds, and the cost of their training."""
    if result.run_dir is None:
        return None
    costs = {line["update"]: line for line in logged(result.run_dir) if "cpu_seconds" in line and "update" in line}
    kept = kept_files(result.run_dir) or _evaluated_before(result.run_dir, result.path.name)
    for update, file in reversed(kept.items()):
        after = min((at for at in costs if at >= update), default=None)  # the first line at or after: never too cheap
        if after is not None and costs[after]["cpu_seconds"] <= budget:
            line = costs[after]
            return file, result.training._replace(
                updates=update, target_pieces=line["target_pieces"], cpu_seconds=line["cpu_seconds"], seconds=None
            )
    return None


def _evaluated_before(run_dir: Path, name: str) -> dict[int, Path]:
    """The evaluation of such a row, by its update, of a run whose weights are gone."""
    file = run_dir / "evaluation" / EQUAL_TIME / name
    updates = json_object(file).get("updates")
    return {updates: file} if updates else {}
