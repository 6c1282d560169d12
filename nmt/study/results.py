"""What a comparison is made of: evaluations read back from disk, grouped into systems.

Only JSON and YAML are read here: no model is loaded, so that a table can be made on any machine.
"""

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from nmt.errors import UserError

DESCRIPTIVE = 100  # sentences: a length bin with fewer is shown, but no claim rests on it
SEED_SUFFIX = re.compile(r"-seed\d+$")

Interval = tuple[float, float]


class Bin(NamedTuple):
    """BLEU of the sentences whose raw source has low <= words < high (high None: no upper end)."""

    low: int
    high: int | None
    n: int
    bleu: float | None
    interval: Interval | None

    @property
    def label(self) -> str:
        """Whole words, both ends included: [10, 20) is "10–19", [60, inf) is "60+"."""
        return f"{self.low}+" if self.high is None else f"{self.low}–{self.high - 1}"


class Training(NamedTuple):
    """What a run directory says about its training; None where it says nothing."""

    updates: int | None = None
    target_pieces: int | None = None
    seconds: float | None = None
    cpu_seconds: float | None = None
    settings: dict[str, Any] | None = None  # the run's config.yaml
    data: dict[str, Any] | None = None  # the run's data.json


@dataclass(frozen=True)
class Result:
    """One evaluated run: the evaluation's JSON and the run's training facts."""

    evaluation: dict[str, Any]
    training: Training
    path: Path  # the evaluation's JSON
    run_dir: Path | None  # None where the JSON stands alone

    @property
    def bins(self) -> list[Bin]:
        return [_bin(row) for row in self.evaluation["by_length"]]

    @property
    def updates(self) -> int | None:
        """Updates trained; those of the evaluated weights where the run's metrics are gone."""
        count: int | None = self.training.updates
        return self.evaluation["updates"] if count is None else count

    def score(self, metric: str) -> float | None:
        value: float | None = self.evaluation["metrics"][metric]["score"]
        return value


@dataclass(frozen=True)
class System:
    """One row: a name and its results, one for each seed."""

    label: str
    results: tuple[Result, ...]

    @property
    def parameters(self) -> int | None:
        """None for translations that no run of ours made."""
        count: int | None = self.results[0].evaluation["parameters"]
        return count

    @property
    def bins(self) -> list[Bin]:
        """Mean BLEU over seeds; the interval runs from the lowest to the highest end of theirs."""
        return [_pool(rows) for rows in zip(*(result.bins for result in self.results), strict=True)]

    def mean(self, value: Callable[[Result], float | None]) -> float | None:
        """The mean over seeds of what value gives; None if a seed has none."""
        return mean_of([value(result) for result in self.results])


def mean_of(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def read_result(path: Path, test: str = "test") -> Result:
    """The evaluation of a run directory on the named test set, or one evaluation JSON.

    Raises UserError where there is none, or where the file is something else.
    """
    file = path / "evaluation" / f"{test}.json" if path.is_dir() else path
    if not file.is_file():
        command = f"python -m nmt.evaluate checkpoint={path.as_posix()}"
        raise UserError(f"{path.as_posix()}: no evaluation ({file.as_posix()}); make it with: {command}")
    try:
        evaluation = json.loads(file.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
        run_dir = file.parent.parent if (file.parent.parent / "config.yaml").is_file() else None
        result = Result(evaluation, read_training(run_dir) if run_dir else Training(), file, run_dir)
        _touch_everything(result)
    except (ValueError, KeyError, TypeError, IndexError) as error:
        reason = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise UserError(f"{file.as_posix()}: not an evaluation written by nmt.evaluate ({reason})") from None
    return result


def read_training(run_dir: Path) -> Training:
    """Totals from status.json, or else the largest of each in metrics.jsonl; settings and data as recorded."""
    totals = _json_object(run_dir / "status.json")
    metrics = run_dir / "metrics.jsonl"
    for line in metrics.read_text(encoding="utf-8").split("\n") if metrics.is_file() and not totals else []:
        entry = _json_or_nothing(line)  # a run that was killed while writing leaves half a line
        entry["updates"] = entry.get("update", 0)
        for key in ("updates", "target_pieces", "seconds", "cpu_seconds"):
            totals[key] = max(totals.get(key) or 0, entry.get(key) or 0)
    config = run_dir / "config.yaml"
    settings = yaml.safe_load(config.read_text(encoding="utf-8")) if config.is_file() else None
    return Training(
        updates=totals.get("updates"),
        target_pieces=totals.get("target_pieces") or None,
        seconds=totals.get("seconds") or None,
        cpu_seconds=totals.get("cpu_seconds") or None,
        settings=settings if isinstance(settings, dict) else None,
        data=_json_object(run_dir / "data.json") or None,
    )


def _json_object(file: Path) -> dict[str, Any]:
    return _json_or_nothing(file.read_text(encoding="utf-8")) if file.is_file() else {}


def _json_or_nothing(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def group(results: Sequence[Result]) -> list[System]:
    """Results to systems, in order; runs that differ only by "-seedN" in their name become one system.

    A system is called by its experiment; where two share that, by the run's name, then by its path too.
    """
    groups: dict[tuple[str, str, str], list[Result]] = {}
    for result in results:
        place = result.run_dir.parent.as_posix() if result.run_dir else result.path.parent.as_posix()
        run = SEED_SUFFIX.sub("", str(result.evaluation["run"]))
        groups.setdefault((str(result.evaluation["system"]), run, place), []).append(result)
    labels = [_first_unique(key, list(groups)) for key in groups]
    return [System(label, tuple(rows)) for label, rows in zip(labels, groups.values(), strict=True)]


def refuse_different_tests(results: Sequence[Result]) -> None:
    """Raises UserError unless all results are on the same sources and references, by checksum."""
    if not results:
        raise UserError("nothing to compare: no run has an evaluation")
    first = results[0]
    for other in results[1:]:
        for what, key in (("sources", "source_sha256"), ("references", "references_sha256")):
            if other.evaluation["test"][key] != first.evaluation["test"][key]:
                raise UserError(
                    f"different test sets cannot be compared (the {what} differ): "
                    f"{_named(first)}; {_named(other)}. Evaluate them on one test set first"
                )
        if [row[:3] for row in other.bins] != [row[:3] for row in first.bins]:
            raise UserError(f"different length bins: {first.path.as_posix()}; {other.path.as_posix()}")


def _named(result: Result) -> str:
    test = result.evaluation["test"]
    return (
        f"{result.path.as_posix()} is on {test['data']}/{test['name']}, {test['sentences']:,} sentences, "
        f"source {test['source_sha256'][:12]}"
    )


def _first_unique(key: tuple[str, str, str], keys: list[tuple[str, str, str]]) -> str:
    system, run, place = key
    if sum(other[0] == system for other in keys) == 1:
        return system
    if sum(other[1] == run for other in keys) == 1:
        return run
    longer = f"{Path(place).name}/{run}"
    return longer if sum(other[1:] == key[1:] for other in keys) == 1 else f"{longer} ({system})"


def _bin(row: dict[str, Any]) -> Bin:
    interval = row["interval"]
    ends = None if interval is None else (float(interval[0]), float(interval[1]))
    return Bin(row["low"], row["high"], row["n"], row["bleu"], ends)


def _pool(rows: Sequence[Bin]) -> Bin:
    intervals = [row.interval for row in rows if row.interval is not None]
    ends = None
    if len(intervals) == len(rows):
        ends = (min(low for low, _ in intervals), max(high for _, high in intervals))
    return rows[0]._replace(bleu=mean_of([row.bleu for row in rows]), interval=ends)


def _touch_everything(result: Result) -> None:
    """Reads each value that a table needs, so that a wrong file is named here and not in the middle of it."""
    evaluation = result.evaluation
    for key in ("system", "run", "seed", "parameters", "updates", "search", "capped", "warnings"):
        evaluation[key]
    for key in ("name", "data", "sentences", "source_sha256", "references_sha256"):
        evaluation["test"][key]
    for metric in ("bleu", "chrf", "ter"):
        score = result.score(metric)
        if score is not None and not math.isfinite(score):
            raise ValueError(f"{metric} is {score}")
        evaluation["metrics"][metric]["signature"]
    if not result.bins:
        raise ValueError("no scores by length; evaluate with source=FILE")


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")
