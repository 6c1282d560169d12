"""What a comparison is made of: the runs that it wants, what is left to do for each, and the test set of all."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hydra import compose
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

from nmt.cli import readable_override
from nmt.data.corpus import Corpus
from nmt.errors import ConfigError
from nmt.progress import say
from nmt.run_directory import UNFINISHED, differences, portable, read_config, read_facts, read_status
from nmt.study.arguments import SEARCH, Handed
from nmt.study.jobs import Step
from nmt.test_sets import Test, read_test, run_tests, wanted_tests
from nmt.training.kept import SUFFIX

ELSEWHERE = ("test.", "evaluate.", "alignment.score=", "ter=", "data_dir=")  # change no translation of a set
KEPT = 10  # checkpoints kept of a training, for rows of equal time


class Wanted(NamedTuple):
    """A run that the comparison wants: its directory, the settings that train it, and what they come to."""

    experiment: str
    seed: int
    run_dir: Path
    overrides: tuple[str, ...]
    config: dict[str, Any]


def require_use(settings: Sequence[str], listed: Sequence[Path]) -> None:
    """ConfigError for a setting of the search where nothing is there that could be translated again."""
    useless = [one for one in settings if one.startswith(SEARCH)]
    if useless and listed and all(path.is_file() for path in listed):
        raise ConfigError(
            f"{useless[0]} has no use: runs= names no run directory, and translations in files are taken as they are"
        )


def listed(value: Any) -> list[Any]:
    return list(value) if OmegaConf.is_list(value) else [value]


def device(cfg: DictConfig) -> list[str]:
    return [f"device={cfg.device}"] if cfg.device else []


def wanted_runs(cfg: DictConfig, handed: Handed) -> list[Wanted]:
    """A run for each experiment and seed; HydraException for a setting that training does not know."""
    wanted = []
    for experiment in listed(cfg.experiments):
        for seed in listed(cfg.seeds):
            chosen = [f"experiment={experiment}", f"seed={seed}", f"threads={cfg.threads}", *device(cfg)]
            chosen += [*handed.train, *handed.both]
            config, choices = _composed(chosen)
            if cfg.equal_time and config["training"]["keep_every"] is None:
                chosen.append(f"training.keep_every={_keep_every(config['training'])}")
                config, choices = _composed(chosen)
            root = Path(cfg.root or f"outputs/{choices['data']}").expanduser()
            run_dir = root / (f"{experiment}-seed{seed}" if seed != 1 else str(experiment))
            wanted.append(Wanted(str(experiment), seed, run_dir, tuple(chosen), {**config, "name": experiment}))
    return wanted


def slowest_first(wanted: Sequence[Wanted], cfg: DictConfig) -> list[Wanted]:
    """The order of starting, so that no long run is left to the end."""
    order = list(cfg.slowest_first)
    return sorted(wanted, key=lambda one: order.index(one.experiment) if one.experiment in order else -1)


def _composed(overrides: Sequence[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """The settings of a training, and the choices of groups that made them."""
    composed = compose("train", [readable_override(one) for one in overrides], return_hydra_config=True)
    settings = OmegaConf.masked_copy(composed, [str(key) for key in composed if key != "hydra"])
    config: Any = OmegaConf.to_container(settings, resolve=True)
    return config, dict(composed.hydra.runtime.choices)


def _keep_every(training: dict[str, Any]) -> int:
    updates = training["max_updates"]
    return max(1, updates // KEPT) if updates else int(training["validate_every"])


def is_trained(one: Wanted) -> bool:
    """Finished, with the same settings, budget and data; where in doubt no: nmt.train knows what is left to do."""
    state = read_status(one.run_dir)
    if not state:
        return False
    before, now = read_config(one.run_dir), portable(one.config)
    kept = {"keep_every": None}  # a finished training cannot keep more
    if state in UNFINISHED or differences(before, now) or {**before["training"], **kept} != {**now["training"], **kept}:
        return False
    identity = instantiate(one.config["data"]).identity()
    return bool(json.loads(json.dumps(identity)) == read_facts(one.run_dir).get("identity"))


def training(one: Wanted, handed: Handed) -> Step:
    return Step("training", (*program("train"), *handed.flags, *one.overrides, f"run_dir={one.run_dir.as_posix()}"))


def sweeps(wanted: Sequence[Wanted], launcher: str, at_once: int, handed: Handed) -> list[tuple[str, ...]]:
    """The same trainings for one of Hydra's launchers: a command for each seed, which runs all its experiments."""
    found = []
    for seed in dict.fromkeys(one.seed for one in wanted):
        runs = [one for one in wanted if one.seed == seed]
        suffix = f"-seed{seed}" if seed != 1 else ""
        shared = [value for value in runs[0].overrides if not value.startswith("experiment=")]
        experiments = ",".join(one.experiment for one in runs)
        root = runs[0].run_dir.parent.as_posix()
        command = [*program("train"), *handed.flags, "-m", f"hydra/launcher={launcher}", f"experiment={experiments}"]
        command += [f"hydra.launcher.n_jobs={at_once}"] if launcher == "joblib" else []
        found.append((*command, *shared, f"run_dir='{root}/${{hydra:runtime.choices.experiment}}{suffix}'"))
    return found


def is_evaluated(folder: Path, test: Test, checkpoint: Path, settings: DictConfig, handed: Handed) -> bool:
    """There is an evaluation with these settings, newer than the weights (a run kept without them is as it is).

    With settings of the user's own nmt.evaluate is asked: it translates again only where it must, if it can.
    """
    file = folder / f"{test.set.name}.json"
    weights = [checkpoint] if checkpoint.suffix == SUFFIX else list(checkpoint.glob(f"*{SUFFIX}"))
    if weights and any(not own.startswith(ELSEWHERE) for own in handed.evaluate):
        return False
    unaligned = test.set.alignments is not None and not (folder / f"{test.set.name}.alignment.json").exists()
    if not file.is_file() or (unaligned and checkpoint.is_dir() and weights):
        return False
    search = json.loads(file.read_text(encoding="utf-8")).get("search") or {}
    if any(key != "n_best" and settings[key] != value for key, value in search.items() if key in settings):
        return False
    made = file.stat().st_mtime
    return all(made >= one.stat().st_mtime for one in weights)


def evaluating(checkpoint: Path, cfg: DictConfig, handed: Handed, more: Sequence[str] = ()) -> Step:
    """nmt.evaluate on a run directory or a file of weights, as the command line says."""
    run = (f"checkpoint={checkpoint.as_posix()}", f"threads={cfg.threads}", *device(cfg))
    return Step("evaluating", (*program("evaluate"), *handed.flags, *run, *handed.evaluate, *more))


def files_of_the_test(config: dict[str, Any], settings: DictConfig) -> tuple[str, ...]:
    """Test files outside the current folder by name: a run keeps only the last part of an absolute path."""
    source, references = config["data"].get("test_src"), config["data"].get("test_tgt")
    if not source or not references or not Path(source).expanduser().is_absolute():
        return ()
    if settings.test.src or settings.evaluate.test or (config.get("evaluate") or {}).get("test"):
        return ()
    paths = [references] if isinstance(references, str) else references
    quoted = [readable_override(f"references={path}").split("=", 1)[1] for path in paths]
    return (f"test.src={source}", f"test.ref=[{','.join(quoted)}]", "test.name=test")


class Told(NamedTuple):
    """What the settings of a run tell of the text: None where no run is among what is compared."""

    path: Path
    config: dict[str, Any]
    corpus: Corpus


def told(wanted: Sequence[Wanted], paths: Sequence[Path]) -> Told | None:
    """Of the first run; one that is yet to be trained as well."""
    if wanted:
        return Told(wanted[0].run_dir, wanted[0].config, instantiate(wanted[0].config["data"]))
    for path in paths:
        folder = path if path.is_dir() else path.parent.parent
        if path.exists() and (folder / "config.yaml").is_file():
            config = read_config(folder)
            return Told(folder, config, instantiate(config["data"]))
    return None


def test_of(settings: DictConfig, run: Told | None) -> Test:
    """What all are compared on; the first of several sets. ConfigError where neither files nor a run say it."""
    wanted = wanted_tests(settings)
    if run is not None:
        first, *others = run_tests(run.path, run.config, run.corpus, wanted)
        if others:
            names = ", ".join(one.set.name for one in others)
            say(f"note: compared on {first.set.name} alone, not on {names}; evaluate.pool=true makes one set of them")
        return first if settings.target_language is None else first._replace(target_language=settings.target_language)
    if not wanted.src or not wanted.ref:
        raise ConfigError("translations in text files need the text: test.src=FILE test.ref=FILE (or [A,B])")
    return Test(read_test(wanted.name, wanted.src, wanted.ref), "files", "", settings.target_language or "")


def program(name: str) -> tuple[str, ...]:
    return (sys.executable, "-m", f"nmt.{name}")
