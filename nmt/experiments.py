"""The experiments of a comparison: its runs, the training and evaluation left to do for each, their test set."""

import json
import sys
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from hydra import compose
from hydra.core.global_hydra import GlobalHydra
from hydra.utils import instantiate
from omegaconf import OmegaConf

from nmt.cli import readable_override
from nmt.data.corpus import Corpus
from nmt.data.test_sets import EvaluationSet, evaluation_sets, read_selection, read_test_set
from nmt.errors import ConfigError, UserError
from nmt.files import read_json, require_self_contained
from nmt.loading import stored_corpus
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
from nmt.schema import check
from nmt.settings import CompareConfig, EvaluateConfig, SearchSettings
from nmt.study.arguments import SEARCH_GROUP, ChildOverrides
from nmt.study.jobs import JobStep
from nmt.study.report import choose_baseline
from nmt.training.checkpoints import SUFFIX
from nmt.training_settings import TrainConfig

NO_EFFECT_ON_TRANSLATIONS = ("test.", "evaluate.", "alignment.score=", "ter=", "metrics=", "data_dir=")
UNLESS_ASKED = ("ter=false",)  # sacreBLEU's takes minutes on repetitive output
CHECKPOINTS_KEPT = 10  # of a training, for rows of equal time


class PlannedRun(NamedTuple):
    """A run of the comparison: its directory, the overrides that train it, and the configuration they compose."""

    experiment: str
    seed: int
    run_dir: Path
    overrides: tuple[str, ...]
    config: dict[str, Any]


class RunInfo(NamedTuple):
    """A run whose settings tell what text is translated."""

    path: Path
    config: dict[str, Any]
    make_corpus: Callable[[], Corpus]


def require_translatable(settings: Sequence[str], paths: Sequence[Path]) -> None:
    """ConfigError for a setting of the search where no run can translate again."""
    search_keys = (SEARCH_GROUP, *SearchSettings.model_fields, "max_src_pieces")
    search_settings = [setting for setting in settings if setting.startswith(search_keys)]
    if search_settings and paths and all(path.is_file() for path in paths):
        raise ConfigError(
            f"{search_settings[0]} has no use: runs= names no run directory, "
            "and translations in files are taken as they are"
        )


def as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else [value]


def device_override(cfg: CompareConfig) -> list[str]:
    return [f"device={cfg.device}"] if cfg.device else []


def evaluation_settings(overrides: Sequence[str]) -> EvaluateConfig:
    """The settings of the evaluations that overrides compose; a mistyped one is refused now."""
    composed = compose("evaluate", [readable_override(override) for override in (*UNLESS_ASKED, *overrides)])
    values: Any = OmegaConf.to_container(composed, resolve=True)
    return check(EvaluateConfig, values)


def check_choices(cfg: CompareConfig, children: ChildOverrides) -> None:
    """ConfigError for a baseline, a search or a launcher that there is not, before any training."""
    if cfg.runs is None and cfg.baseline is not None:
        choose_baseline([str(experiment) for experiment in as_list(cfg.experiments)], cfg.baseline)
    for search in as_list(cfg.searches):
        if not all("=" in word for word in search.split()):
            raise ConfigError(f"searches={search}: give settings of nmt.evaluate, such as [beam=1,length_penalty=0]")
        evaluation_settings([*children.evaluate, *search.split()])
    launchers = GlobalHydra.instance().config_loader().get_group_options("hydra/launcher")
    if cfg.launcher is not None and cfg.launcher not in launchers:
        raise ConfigError(f"launcher={cfg.launcher}: there is none of this name here; one of: {', '.join(launchers)}")


def planned_runs(cfg: CompareConfig, children: ChildOverrides) -> list[PlannedRun]:
    """A run for each experiment and seed; HydraException for a setting that training does not know."""
    planned = []
    for experiment in as_list(cfg.experiments):
        for seed in as_list(cfg.seeds):
            overrides = [f"experiment={experiment}", f"seed={seed}", f"threads={cfg.threads}", *device_override(cfg)]
            overrides += [*children.train, *children.both]
            config, choices = _compose_training(overrides)
            if cfg.equal_time and config["training"]["keep_every"] is None:
                overrides.append(f"training.keep_every={_keep_every(config['training'])}")
                config, choices = _compose_training(overrides)
            root = Path(cfg.root or f"outputs/{choices['data']}").expanduser()
            run_dir = root / (f"{experiment}-seed{seed}" if seed != 1 else str(experiment))
            planned.append(PlannedRun(str(experiment), seed, run_dir, tuple(overrides), {**config, "name": experiment}))
    return planned


def slowest_first(planned: Sequence[PlannedRun], cfg: CompareConfig) -> list[PlannedRun]:
    """The order of starting, so that no long run is left to the end."""
    order = as_list(cfg.slowest_first)
    return sorted(planned, key=lambda run: order.index(run.experiment) if run.experiment in order else -1)


def _compose_training(overrides: Sequence[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """The settings of a training, and the choices of groups that made them."""
    composed = compose("train", [readable_override(override) for override in overrides], return_hydra_config=True)
    settings = OmegaConf.masked_copy(composed, [str(key) for key in composed if key != "hydra"])
    config: Any = OmegaConf.to_container(settings, resolve=True)
    check(TrainConfig, config)
    return config, dict(composed.hydra.runtime.choices)


def _keep_every(training: dict[str, Any]) -> int:
    updates = training["max_updates"]
    return max(1, updates // CHECKPOINTS_KEPT) if updates else int(training["validate_every"])


def is_trained(planned: PlannedRun) -> bool:
    """Finished, with the same settings, budget and data; where in doubt no: nmt.train knows what is left to do."""
    state = str(read_status(planned.run_dir).get("state", ""))
    if not state:
        return False
    trust = [section["_target_"] for section in sections_in(planned.config)]  # the command names these classes
    before, now = read_config(planned.run_dir, trust), portable_config(planned.config)
    ignored = {"keep_every": None}  # a finished training cannot keep more
    if state in UNFINISHED or changed_settings(before, now):
        return False
    if {**before["training"], **ignored} != {**now["training"], **ignored}:
        return False
    identity = instantiate(planned.config["data"]).identity()
    return bool(json.loads(json.dumps(identity)) == read_data_facts(planned.run_dir).get("identity"))


def training_step(planned: PlannedRun, children: ChildOverrides) -> JobStep:
    run_dir = f"run_dir={planned.run_dir.as_posix()}"
    return JobStep("training", (*program_command("train"), *children.flags, *planned.overrides, run_dir))


def sweep_commands(
    planned: Sequence[PlannedRun], launcher: str, at_once: int, children: ChildOverrides
) -> list[tuple[str, ...]]:
    """The same trainings for one of Hydra's launchers: a command for each seed, which runs all its experiments."""
    commands = []
    for seed in dict.fromkeys(run.seed for run in planned):
        runs = [run for run in planned if run.seed == seed]
        suffix = f"-seed{seed}" if seed != 1 else ""
        shared = [value for value in runs[0].overrides if not value.startswith("experiment=")]
        experiments = ",".join(run.experiment for run in runs)
        root = runs[0].run_dir.parent.as_posix()
        command = [*program_command("train"), *children.flags, "-m", f"hydra/launcher={launcher}"]
        command += [f"experiment={experiments}"]
        command += [f"hydra.launcher.n_jobs={at_once}"] if launcher == "joblib" else []
        commands.append((*command, *shared, f"run_dir='{root}/${{hydra:runtime.choices.experiment}}{suffix}'"))
    return commands


def is_evaluated(
    folder: Path, test: EvaluationSet, checkpoint: Path, settings: EvaluateConfig, children: ChildOverrides
) -> bool:
    """There is an evaluation with these settings, newer than the weights (a run kept without them is as it is).

    With settings of the user's own nmt.evaluate is asked: it translates again only where it must, if it can.
    """
    stored = folder / f"{test.set.name}.json"
    weights = [checkpoint] if checkpoint.suffix == SUFFIX else list(checkpoint.glob(f"*{SUFFIX}"))
    if weights and any(not setting.startswith(NO_EFFECT_ON_TRANSLATIONS) for setting in children.evaluate):
        return False
    needs_alignment = test.set.alignments is not None and not (folder / f"{test.set.name}.alignment.json").exists()
    if not stored.is_file() or (needs_alignment and checkpoint.is_dir() and weights):
        return False
    try:
        search = dict(read_json(stored).get("search") or {})
    except (UserError, TypeError, ValueError):  # nmt.evaluate writes it again, or says why not
        return False
    if any(key != "n_best" and getattr(settings, key, value) != value for key, value in search.items()):
        return False
    evaluated_at = stored.stat().st_mtime
    return all(evaluated_at >= file.stat().st_mtime for file in weights)


def evaluation_step(
    checkpoint: Path, cfg: CompareConfig, children: ChildOverrides, extra: Sequence[str] = ()
) -> JobStep:
    """nmt.evaluate on a run directory or a file of weights, as the command line says."""
    run = (f"checkpoint={checkpoint.as_posix()}", f"threads={cfg.threads}", *device_override(cfg))
    command = program_command("evaluate")
    return JobStep("evaluating", (*command, *children.flags, *run, *UNLESS_ASKED, *children.evaluate, *extra))


def test_file_overrides(config: dict[str, Any], settings: EvaluateConfig) -> tuple[str, ...]:
    """Test files outside the current folder by name: a run keeps only the last part of an absolute path."""
    source, references = config["data"].get("test_src"), config["data"].get("test_tgt")
    if not source or not references or not Path(source).expanduser().is_absolute():
        return ()
    if settings.test.src or settings.evaluate.test or (config.get("evaluate") or {}).get("test"):
        return ()
    paths = [references] if isinstance(references, str) else references
    quoted = [readable_override(f"references={path}").split("=", 1)[1] for path in paths]
    return (f"test.src={source}", f"test.ref=[{','.join(quoted)}]", "test.name=test")


def run_info(
    planned: Sequence[PlannedRun], paths: Sequence[Path], trust: Collection[str], data_dir: Path
) -> RunInfo | None:
    """Of the first run; one that is yet to be trained as well."""
    if planned:
        return RunInfo(planned[0].run_dir, planned[0].config, partial(instantiate, planned[0].config["data"]))
    runs = []
    for path in paths:  # all are checked before anything in them is read
        if path.is_dir():
            require_self_contained(path)
        folder = path if path.is_dir() else path.parent.parent
        if path.exists() and (folder / "config.yaml").is_file():
            config = read_config(folder, trust)
            runs.append(RunInfo(folder, config, partial(stored_corpus, folder, config, data_dir)))
    return runs[0] if runs else None


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
        raise ConfigError("translations in text files need the text: test.src=FILE test.ref=FILE (or [A,B])")
    texts = read_test_set(selection.name, selection.src, selection.ref)
    return EvaluationSet(texts, "files", "", settings.target_language or "")


def program_command(name: str) -> tuple[str, ...]:
    return (sys.executable, "-m", f"nmt.{name}")
