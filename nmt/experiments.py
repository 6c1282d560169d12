"""The runs of a comparison: what the command line says to them, what is left to train and evaluate, their test set."""

import json
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from hydra import compose
from hydra.core.global_hydra import GlobalHydra
from hydra.utils import instantiate
from omegaconf import OmegaConf

from nmt.cli import key_of, readable_override
from nmt.data.corpus import Corpus
from nmt.data.test_sets import EvaluationSet, evaluation_sets, read_selection, read_test_set
from nmt.errors import ConfigError, UserError
from nmt.evaluation.attention_alignment import read_gold_alignments, stored_alignments
from nmt.evaluation.stored import lines_sha256, read_stored
from nmt.files import file_sha256, require_self_contained
from nmt.loading import longest_source, stored_corpus, weights_file
from nmt.progress import say
from nmt.run import (
    UNFINISHED,
    changed_settings,
    portable_config,
    read_config,
    read_data_facts,
    read_status,
    sections_in,
)
from nmt.schema import check, declared_settings, is_text
from nmt.settings import (
    REPLACED_KEYS,
    CompareConfig,
    EvaluateConfig,
    MeasuredSettings,
    SearchSettings,
    StudyConfig,
    search_settings,
)
from nmt.study.headline import LengthGroups, length_groups
from nmt.study.jobs import JobStep
from nmt.study.report import choose_baseline
from nmt.training.checkpoints import SUFFIX, update_of
from nmt.training_settings import TrainConfig

SEARCH_GROUP = "search"  # search=greedy, of nmt.evaluate
UNLESS_ASKED = ("ter=false",)  # sacreBLEU's takes minutes on repetitive output
CHECKPOINTS_KEPT = 10  # of a training, for rows of equal time


class ChildOverrides(NamedTuple):
    """What of the command line reaches the programs that are started."""

    train: tuple[str, ...] = ()
    evaluate: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()  # --config-dir


class ComparedRun(NamedTuple):
    """A run of the comparison; where it is to be trained, with the overrides for that and the settings they compose."""

    path: Path
    experiment: str = ""
    seed: int = 1
    overrides: tuple[str, ...] = ()
    config: dict[str, Any] | None = None  # None: given by study.runs, never trained


class RunInfo(NamedTuple):
    """A run whose settings tell what text is translated."""

    path: Path
    config: dict[str, Any]
    make_corpus: Callable[[], Corpus]


@dataclass(frozen=True)
class Comparison:
    """The settings of a comparison, the text that all systems translate, and where the results go."""

    study: StudyConfig
    children: ChildOverrides
    evaluation: EvaluateConfig
    trust: list[str]
    info: RunInfo | None
    test: EvaluationSet
    output: Path

    @property
    def groups(self) -> LengthGroups:
        return length_groups(self.study.headline)


def split_arguments(arguments: Sequence[str]) -> tuple[list[str], ChildOverrides]:
    """The command line for Hydra (flags and study.*), and what is handed on: evaluate.KEY as KEY to nmt.evaluate.

    Anything else goes to nmt.train, and what both programs declare (evaluate.test, data_dir, trust) to both.
    ConfigError for what a comparison sets itself, with what to say instead.
    """
    trainings, evaluations, every_evaluation = (
        {setting.key for setting in declared_settings(declared)}
        for declared in (TrainConfig, MeasuredSettings, EvaluateConfig)
    )
    own, train, evaluate, flags = (list[str]() for _ in range(4))
    for before, argument in pairwise(["", *arguments]):
        key = key_of(argument)
        name, section, value = key.removeprefix("evaluate."), key.split(".")[0], argument.partition("=")[2]
        is_folder = argument.startswith(("--config-dir", "-cd")) or before in ("--config-dir", "-cd")
        if is_folder or argument.startswith("-") or ("=" not in argument and not argument.startswith("~")):
            own.append(argument)  # a flag, or the value of one
            flags += [argument] if is_folder else []
        elif section in ("study", "hydra"):
            own.append(_with_brackets(argument))
        elif section in StudyConfig.model_fields or key in REPLACED_KEYS:
            raise ConfigError(f"{argument}: say {REPLACED_KEYS.get(key, f'study.{key}')}={value}")
        elif key in ({*evaluations, SEARCH_GROUP} - trainings) and name == key:
            raise ConfigError(f"{argument}: say evaluate.{argument}")
        elif name in every_evaluation - evaluations and name != key:
            instead = f"; say study.{name}={value}" if name.split(".")[0] in StudyConfig.model_fields else ""
            raise ConfigError(f"{argument}: a comparison sets it itself{instead}")
        elif key in trainings | evaluations or name == key:
            train += [argument] if key in trainings or name == key else []
            evaluate += [argument] if key in evaluations else []
        else:
            evaluate.append(argument.replace("evaluate.", "", 1))
    return own, ChildOverrides(tuple(train), tuple(evaluate), tuple(flags))


def _with_brackets(argument: str) -> str:
    """study.KEY=a,b as the list that it means, each element as text: 20261129 stays a name."""
    key, _, value = argument.partition("=")
    schema = next((setting.schema for setting in declared_settings(CompareConfig) if setting.key == key), {})
    if argument == "study.runs=":  # of an unset variable; nothing named is not all of it
        raise ConfigError("study.runs= is empty: name run directories or files of translations")
    is_list = any(choice.get("type") == "array" for choice in schema.get("anyOf", []))
    if not is_list or value in ("", "null", "None") or set(value) & set("'\""):
        return argument
    elements = [element.strip() for element in value.removeprefix("[").removesuffix("]").split(",")]
    if is_text(schema):  # a backslash counts only before a quote, and at a folder's end it says nothing
        elements = ['"' + element.rstrip("\\") + '"' for element in elements if element]
    return f"{key}=[{','.join(elements)}]"


def as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else [value]


def _composed(program: str, overrides: Sequence[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """The settings of a program that is to be started, and the choices of groups that made them."""
    composed = compose(program, [readable_override(override) for override in overrides], return_hydra_config=True)
    settings = OmegaConf.masked_copy(composed, [str(key) for key in composed if key != "hydra"])
    values: Any = OmegaConf.to_container(settings, resolve=True)
    return values, dict(composed.hydra.runtime.choices)


def evaluation_settings(overrides: Sequence[str]) -> EvaluateConfig:
    """The settings of the evaluations that overrides compose; a mistyped one is refused now."""
    return check(EvaluateConfig, _composed("evaluate", (*UNLESS_ASKED, *overrides))[0])


def check_choices(study: StudyConfig, children: ChildOverrides) -> None:
    """ConfigError, before any training, for what names nothing or has no use."""
    runs = [Path(path).expanduser() for path in as_list(study.runs or [])]
    searches = [str(search).split() for search in as_list(study.searches)]
    if study.runs is None and study.baseline is not None:
        choose_baseline([str(experiment) for experiment in as_list(study.experiments)], study.baseline)
    for search in searches:
        if not all("=" in setting for setting in search):
            raise ConfigError(f"study.searches={' '.join(search)}: give settings of nmt.evaluate, such as [beam=1]")
        evaluation_settings([*children.evaluate, *search])
    launchers = GlobalHydra.instance().config_loader().get_group_options("hydra/launcher")
    if study.launcher is not None and study.launcher not in launchers:
        raise ConfigError(
            f"study.launcher={study.launcher}: there is none of this name here; one of: {', '.join(launchers)}"
        )
    of_training = [override for override in children.train if override not in children.evaluate]
    if study.runs is not None and of_training:
        raise ConfigError(f"study.runs=... trains nothing, so {of_training[0]} has no use; leave one of them away")
    search_keys = (SEARCH_GROUP, *SearchSettings.model_fields, "max_src_pieces")
    of_search = [word for word in (*children.evaluate, *chain(*searches)) if word.startswith(search_keys)]
    if of_search and runs and all(path.is_file() for path in runs):
        raise ConfigError(
            f"{of_search[0]} has no use: study.runs= names no run directory, "
            "and translations in files are taken as they are"
        )


def compared_runs(study: StudyConfig, children: ChildOverrides) -> list[ComparedRun]:
    """A run for each experiment and seed, or those of study.runs; HydraException for a setting that training lacks."""
    if study.runs is not None:
        return [ComparedRun(Path(path).expanduser()) for path in as_list(study.runs)]
    runs = []
    for experiment in as_list(study.experiments):
        for seed in as_list(study.seeds):
            overrides = [f"experiment={experiment}", f"seed={seed}", *_machine(study), *children.train]
            config, choices = _composed("train", overrides)
            training = check(TrainConfig, config).training
            if study.equal_time and training.keep_every is None:
                updates = training.max_updates
                keep_every = max(1, updates // CHECKPOINTS_KEPT) if updates else training.validate_every
                overrides.append(f"training.keep_every={keep_every}")
                config, choices = _composed("train", overrides)
            root = Path(study.root or f"outputs/{choices['data']}").expanduser()
            path = root / (f"{experiment}-seed{seed}" if seed != 1 else str(experiment))
            runs.append(ComparedRun(path, str(experiment), seed, tuple(overrides), {**config, "name": experiment}))
    return runs


def _machine(study: StudyConfig) -> list[str]:
    return [f"threads={study.threads}", *([f"device={study.device}"] if study.device else [])]


def is_trained(run: ComparedRun) -> bool:
    """Finished, with the same settings, budget and data; where in doubt no: nmt.train knows what is left to do."""
    state = read_status(run.path).get("state", "")
    if not state or state in UNFINISHED or run.config is None:
        return False
    trust = [section["_target_"] for section in sections_in(run.config)]  # the command names these classes
    before, now = read_config(run.path, trust), portable_config(run.config)
    ignored = {"keep_every": None}  # a finished training cannot keep more
    if changed_settings(before, now) or {**before["training"], **ignored} != {**now["training"], **ignored}:
        return False
    identity = instantiate(run.config["data"]).identity()
    return bool(json.loads(json.dumps(identity)) == read_data_facts(run.path).get("identity"))


def is_evaluated(
    folder: Path, test: EvaluationSet, checkpoint: Path, settings: EvaluateConfig, trust: Collection[str]
) -> bool:
    """The stored translations are what evaluating would make again: same text, weights, search, and alignments.

    Those of a run kept without its weights are as they are, if they come from the search that is asked for.
    """
    stored = read_stored(folder, test.set.name)
    search = stored[0].get("search") if stored else None
    asked = search_settings(settings, n_best=1).model_dump()
    if not stored or not isinstance(search, dict) or any(asked.get(key, search[key]) != search[key] for key in search):
        return False
    evaluation = stored[0]
    if checkpoint.suffix != SUFFIX and not any(checkpoint.glob(f"*{SUFFIX}")):
        return True
    try:
        weights = checkpoint if checkpoint.is_file() else weights_file(checkpoint)
        if update_of(weights) is None:  # gigabytes of nothing, say, whose checksum would take its time
            return False
        run_dir = checkpoint if checkpoint.is_dir() else checkpoint.parent.parent
        limit = settings.max_src_pieces or longest_source(run_dir, read_config(run_dir, trust))
        references = [lines_sha256(lines) for lines in test.set.references]
        text = {"source_sha256": lines_sha256(test.set.sources), "references_sha256": references}
        made_from = {"weights_sha256": file_sha256(weights), "max_src_pieces": limit, "test": evaluation["test"] | text}
    except (OSError, UserError, KeyError, TypeError):  # nmt.evaluate writes it again, or says why not
        return False
    gold = read_gold_alignments(test.set, settings.alignment)
    return all(evaluation.get(key) == value for key, value in made_from.items()) and (
        gold is None or stored_alignments(evaluation, test.set, gold, settings.alignment, folder) is not None
    )


def steps_left(run: ComparedRun, comparison: Comparison) -> tuple[JobStep, ...]:
    """What is left to do for a run: training, evaluation, both or nothing."""
    study, settings = comparison.study, comparison.evaluation
    evaluate = evaluation_step(run.path, comparison, _test_files(run.config, settings) if run.config else ())
    if run.config is not None and not is_trained(run):
        launched = ("-m", f"hydra/launcher={study.launcher}") if study.launcher else ()
        command = (*_program("train"), *comparison.children.flags, *launched, *run.overrides)
        return JobStep("training", (*command, f"run_dir={run.path.as_posix()}")), evaluate
    folder = run.path / "evaluation"
    if not run.path.is_dir() or is_evaluated(folder, comparison.test, run.path, settings, comparison.trust):
        return ()
    return (evaluate,)


def evaluation_step(checkpoint: Path, comparison: Comparison, extra: Sequence[str] = ()) -> JobStep:
    """nmt.evaluate on a run directory or a file of weights, as the command line says."""
    overrides = (*_machine(comparison.study), *UNLESS_ASKED, *comparison.children.evaluate, *extra)
    program = (*_program("evaluate"), *comparison.children.flags)
    return JobStep("evaluating", (*program, f"checkpoint={checkpoint.as_posix()}", *overrides))


def _test_files(config: dict[str, Any], settings: EvaluateConfig) -> tuple[str, ...]:
    """Test files outside the current folder by name: a run keeps only the last part of an absolute path."""
    source, references = config["data"].get("test_src"), config["data"].get("test_tgt")
    if not source or not references or not Path(source).expanduser().is_absolute():
        return ()
    if settings.test.src or settings.evaluate.test or (config.get("evaluate") or {}).get("test"):
        return ()
    quoted = [readable_override(f"references={path}").split("=", 1)[1] for path in as_list(references)]
    return (f"test.src={source}", f"test.ref=[{','.join(quoted)}]", "test.name=test")


def run_info(runs: Sequence[ComparedRun], trust: Collection[str], data_dir: Path) -> RunInfo | None:
    """Of the first run; one that is yet to be trained as well."""
    if runs[0].config is not None:
        return RunInfo(runs[0].path, runs[0].config, partial(instantiate, runs[0].config["data"]))
    known = []
    for path in dict.fromkeys(run.path for run in runs):  # all are checked before anything in them is read
        if path.is_dir():
            require_self_contained(path)
        folder = path if path.is_dir() else path.parent.parent
        if path.exists() and (folder / "config.yaml").is_file():
            config = read_config(folder, trust)
            known.append(RunInfo(folder, config, partial(stored_corpus, folder, config, data_dir)))
    return known[0] if known else None


def evaluation_set(settings: EvaluateConfig, info: RunInfo | None) -> EvaluationSet:
    """The test set of all systems; the first of several. ConfigError where neither files nor a run name one."""
    selection = read_selection(settings)
    if info is not None:
        first, *others = evaluation_sets(info.path, info.config, info.make_corpus, selection, read_data_facts)
        if others:
            names = ", ".join(other.set.name for other in others)
            say(f"note: compared on {first.set.name} alone, not on {names}; evaluate.pool=true makes one set of them")
        return first if settings.target_language is None else first._replace(target_language=settings.target_language)
    if not selection.src or not selection.ref:
        raise ConfigError(
            "translations in text files need the text: evaluate.test.src=FILE evaluate.test.ref=FILE (or [A,B])"
        )
    texts = read_test_set(selection.name, selection.src, selection.ref)
    return EvaluationSet(texts, "files", "", settings.target_language or "")


def _program(name: str) -> tuple[str, ...]:
    return (sys.executable, "-m", f"nmt.{name}")
