"""Results to compare: translations of one test set, read back from disk, grouped into systems.

They come from run directories of ours, with what is known of the run, or as plain text from any other program.
No model is loaded here.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from nmt.data.corpus import TestSet
from nmt.data.text import read_lines, require_equal_counts
from nmt.errors import UserError
from nmt.evaluation.alignment_error import AlignmentEntry, mean_entry, mean_or_none, read_entry
from nmt.evaluation.metrics import tokenization
from nmt.evaluation.stored import lines_sha256, read_stored
from nmt.evaluation.text_checks import text_warnings
from nmt.files import LONGEST_LINE, printable, read_bounded, read_json, read_yaml, strict_json, visible

SEED_SUFFIX = re.compile(r"-seed\d+$")
Search = dict[str, float]  # the settings of a search by name, as nmt.evaluate records them
Curve = list[tuple[int, float]]  # (target pieces, validation BLEU)


class TrainingInfo(NamedTuple):
    """What a run directory records of its training; None where nothing is recorded."""

    updates: int | None = None
    target_pieces: int | None = None
    seconds: float | None = None
    cpu_seconds: float | None = None
    settings: dict[str, Any] | None = None  # the run's config.yaml
    data: dict[str, Any] | None = None  # the run's data.json
    extended: bool = False  # it was continued with another budget


@dataclass(frozen=True)
class Result:
    """The translations of one run, and what is known of it; None where other programs made them."""

    system: str
    run: str
    path: Path
    hypotheses: Sequence[str]
    seed: int | None = None
    evaluated_at: int | None = None  # updates of the weights that translated
    parameters: int | None = None
    search: Search | None = None
    capped: int | None = None
    warnings: list[str] = field(default_factory=list)
    training: TrainingInfo = field(default_factory=TrainingInfo)
    run_dir: Path | None = None

    @property
    def updates(self) -> int | None:
        """Updates trained; those of the evaluated weights where the run's metrics are gone."""
        return self.evaluated_at if self.training.updates is None else self.training.updates


@dataclass(frozen=True)
class System:
    """One row: a name and its results, one for each seed."""

    label: str
    results: tuple[Result, ...]

    @property
    def parameters(self) -> int | None:
        """None for translations that no run of ours made."""
        return self.results[0].parameters

    def mean(self, value: Callable[[Result], float | None]) -> float | None:
        """The mean over seeds of what value gives; None if a seed has none."""
        return mean_or_none([value(result) for result in self.results])

    def total(self, value: Callable[[Result], int | None]) -> int | None:
        """The sum over seeds; None if a seed has none."""
        counts = [count for result in self.results if (count := value(result)) is not None]
        return sum(counts) if len(counts) == len(self.results) else None


def is_text_file(path: Path) -> bool:
    """A plain text file of translations, a line a sentence."""
    return path.is_file() and not path.name.endswith(".json")


def text_names(paths: Sequence[Path]) -> dict[Path, str]:
    """What text files are called: their stems, a.fr.gz -> a; the whole file name where two in a folder share one."""
    names = {path: printable(Path(path.name.removesuffix(".gz")).stem) for path in paths}
    shared = Counter((path.parent, name) for path, name in names.items())
    return {path: name if shared[path.parent, name] == 1 else printable(path.name) for path, name in names.items()}


def read_result(path: Path, test: TestSet, name: str = "", language: str = "") -> Result:
    """The translations of `test` at `path`: a run directory, an evaluation's JSON, or a text file called `name`.

    UserError where there are none, where they are of another text, or where the number of lines is another.
    """
    if not path.exists():
        raise UserError(f"{path.as_posix()}: there is no such run or file")
    if not is_text_file(path):
        return _read_evaluated(path, test)
    hypotheses = list(read_lines(path))
    require_equal_counts({path.as_posix(): len(hypotheses), f"the sources of {test.name}": len(test.sources)})
    warnings = text_warnings(hypotheses, test.references, test.sources, tokenization(language).name)
    return Result(name or path.name, name or path.name, path, hypotheses, warnings=warnings)


def _read_evaluated(path: Path, test: TestSet) -> Result:
    file = path / "evaluation" / f"{test.name}.json" if path.is_dir() else path
    command = f"python -m nmt.evaluate checkpoint={(path if path.is_dir() else file.parent.parent).as_posix()}"
    if not file.is_file():
        raise UserError(f"{path.as_posix()}: no evaluation ({file.as_posix()}); make it with: {command}")
    stored = read_stored(file.parent, file.name.removesuffix(".json"))
    if stored is None:
        raise UserError(f"{file.as_posix()}: no evaluation with its translations beside it; make them with: {command}")
    evaluation, hypotheses = stored
    run_dir = next((folder for folder in list(file.parents)[1:3] if (folder / "config.yaml").is_file()), None)
    try:
        refuse_other_text(evaluation, test, file)
        values = {key: evaluation[key] for key in ("system", "run", "seed", "parameters", "search", "capped")}
        stored_result = TypeAdapter(Result).validate_python(
            {**values, "evaluated_at": evaluation["updates"], "path": file, "hypotheses": hypotheses}
        )
        warnings = [printable(str(warning)) for warning in evaluation["warnings"]]
    except (KeyError, TypeError, ValueError) as error:
        reason = error.errors()[0]["loc"][0] if isinstance(error, ValidationError) else error
        raise UserError(f"{file.as_posix()}: not an evaluation written by nmt.evaluate (no {reason})") from None
    training = read_training(run_dir) if run_dir else TrainingInfo()
    return replace(stored_result, warnings=warnings, training=training, run_dir=run_dir)


def refuse_other_text(evaluation: dict[str, Any], test: TestSet, file: Path) -> None:
    """UserError unless the evaluation is on these very sources and references."""
    its_test = evaluation["test"]
    text = {
        "sources": (its_test["source_sha256"], lines_sha256(test.sources)),
        "references": (its_test["references_sha256"], [lines_sha256(lines) for lines in test.references]),
    }
    for what, (of_file, of_test) in text.items():
        if of_file != of_test:
            raise UserError(
                f"different test sets cannot be compared (the {what} differ): {file.as_posix()} is on "
                f"{its_test['data']}/{its_test['name']}, {its_test['sentences']:,} sentences; "
                f"this comparison is on {test.name}, "
                f"{len(test.sources):,} sentences. Evaluate all on one test set first"
            )


def read_training(run_dir: Path) -> TrainingInfo:
    """Totals from status.json, settings from config.yaml, data from data.json, as far as they are there."""
    status, data = json_object(run_dir / "status.json"), json_object(run_dir / "data.json")
    totals = numbers_of(status)
    settings = read_yaml(run_dir / "config.yaml") if (run_dir / "config.yaml").is_file() else None
    is_complete = isinstance(data.get("train"), dict) and isinstance(data["train"].get("kept"), int)
    return TrainingInfo(
        updates=totals.get("updates"),
        target_pieces=totals.get("target_pieces") or None,
        seconds=totals.get("seconds") or None,
        cpu_seconds=totals.get("cpu_seconds") or None,
        settings=settings if isinstance(settings, dict) else None,
        data=data if is_complete and isinstance(data.get("train_sha256"), str) else None,
        extended=bool(status.get("extended")),
    )


def read_metrics(run_dir: Path) -> list[dict[str, Any]]:
    """The numbers in each line of metrics.jsonl; half a line, left by a run that was killed in writing, is skipped."""
    file = run_dir / "metrics.jsonl"
    entries = []
    for line in read_bounded(file, errors="replace").split("\n") if file.is_file() else []:
        with suppress(ValueError, RecursionError, AttributeError):  # no JSON, or no object
            entries.append(numbers_of(strict_json(line, LONGEST_LINE)))
    return [entry for entry in entries if entry]


def numbers_of(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if isinstance(value, int | float)}


def json_object(file: Path) -> dict[str, Any]:
    """The object in a JSON file; an empty one where there is no such file, or another value in it."""
    try:
        return read_json(file)
    except (OSError, UserError):
        return {}


def validation_curves(systems: Sequence[System]) -> dict[str, Curve]:
    """Each system's curve (its first run's), where the run directory has one."""
    curves = {system.label: read_validation_curve(system.results[0].run_dir) for system in systems}
    return {label: curve for label, curve in curves.items() if curve}


def read_validation_curve(run_dir: Path | None) -> Curve:
    """The validations of a run; none where there is no run directory, or nothing in it."""
    lines = read_metrics(run_dir) if run_dir else []
    return [
        (line["target_pieces"], line["valid/bleu"]) for line in lines if {"target_pieces", "valid/bleu"} <= set(line)
    ]


def mean_alignments(system: System, test: str) -> list[AlignmentEntry]:
    """The alignment scores of each layer and shift that nmt.evaluate wrote, means over the system's seeds."""
    folders = [result.path.parent for result in system.results]
    runs = [json_object(folder / f"{test}.alignment.json").get("alignment") or [] for folder in folders]
    try:
        runs = [[read_entry(entry) for entry in entries] for entries in runs]
    except (TypeError, ValueError):  # of another kind than this program writes
        return []
    return [mean_entry(system.label, entries) for entries in zip(*runs, strict=False)]


def group_by_system(results: Sequence[Result]) -> list[System]:
    """Results to systems, in order; runs that differ only by "-seedN" in their name become one system.

    A system is labelled by its experiment; where two share that, by the run's name, then by its path too. What cannot
    be seen in a name, such as a terminal's escapes, is U+FFFD in the label.
    """
    groups: dict[tuple[str, str, str], list[Result]] = {}
    for result in results:
        folder = result.run_dir.parent.as_posix() if result.run_dir else result.path.parent.as_posix()
        run = SEED_SUFFIX.sub("", result.run)
        groups.setdefault((result.system, run, folder), []).append(result)
    for rows in groups.values():  # seeds are paired in their order
        rows.sort(key=lambda result: result.seed or 0)
    candidates = [
        (system, run, f"{Path(folder).name}/{run}", f"{Path(folder).name}/{run} ({system})")
        for system, run, folder in groups
    ]
    counts = [Counter(names) for names in zip(*candidates, strict=True)]
    labels = [
        next((name for name, count in zip(names, counts, strict=True) if count[name] == 1), names[-1])
        for names in candidates
    ]
    return [System(visible(label), tuple(rows)) for label, rows in zip(labels, groups.values(), strict=True)]
