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
            name = f"{system.label}, {' '.join(settings)}"
            for result in system.results:
                if (run := result.run_dir) is not None:
                    rows.append(ExtraRow(name, result, run, run / "evaluation" / slug, settings, result.training))
    return rows


def equal_time(systems: Sequence[System]) -> tuple[list[ExtraRow], list[str]]:
    """The latest kept weights of each run that cost no more CPU time than the cheapest system did in all.

    For a run kept without its weights, the row evaluated earlier, where that cost no more.
    With remarks: which systems have no such weights, and what a reader of the rows should know.
    """
    costs = {system.label: system.mean(lambda result: result.training.cpu_seconds) for system in systems}
    known = {label: cost for label, cost in costs.items() if cost}
    if len(known) < 2:
        return [], []
    cheapest = min(known, key=known.__getitem__)
    budget = known[cheapest]
    precision = next(_precision(system) for system in systems if system.label == cheapest)
    rows: list[ExtraRow] = []
    missing, other_precision = [], []
    for system in systems:
        if known.get(system.label, budget) <= budget:  # no more in all, or unknown
            continue
        name = f"{system.label} at {cheapest}'s CPU time ({format_duration(budget)})"
        earlier = [_latest_within(name, result, budget) for result in system.results]
        if _precision(system) != precision:
            other_precision.append(system.label)
        elif None in earlier:
            missing.append(system.label)
        else:
            rows += filter(None, earlier)
    remarks = []
    if missing:
        remarks.append(f"No row of equal time for {', '.join(missing)}: train with training.keep_every=N.")
    if other_precision:
        remarks.append(f"No row of equal time for {', '.join(other_precision)}: trained in another precision.")
    if rows:
        remarks.append("Weights of equal time are from within a training whose learning rate was still to fall.")
    return rows, remarks


def _precision(system: System) -> set[str | None]:
    return {(result.training.settings or {}).get("precision") for result in system.results}


def _latest_within(name: str, result: Result, budget: float) -> ExtraRow | None:
    """The row of a run's latest kept weights within a budget of CPU seconds, with the cost of their training."""
    if result.run_dir is None:
        return None
    lines = {line["update"]: line for line in read_metrics(result.run_dir) if {"cpu_seconds", "update"} <= set(line)}
    folder = result.run_dir / "evaluation" / EQUAL_TIME
    kept = kept_files(result.run_dir)
    if not kept:  # what was evaluated then may still be there
        updates = json_object(folder / result.path.name).get("updates")
        kept = {updates: folder / result.path.name} if updates and isinstance(updates, int) else {}
    for update, file in reversed(kept.items()):
        after = min((at for at in lines if at >= update), default=None)  # the first line at or after: never too cheap
        if after is not None and (seconds := lines[after]["cpu_seconds"]) <= budget:
            pieces = lines[after].get("target_pieces")
            cost = result.training._replace(updates=update, target_pieces=pieces, cpu_seconds=seconds, seconds=None)
            return ExtraRow(name, result, file, folder, (), cost)
    return None
