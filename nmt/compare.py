"""Train what is missing, evaluate, and put the systems side by side: python -m nmt.compare (--help for the rest)."""

import json
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from hydra import compose
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

from nmt import record
from nmt.cli import conf_dir, program, readable_override, say
from nmt.data.corpus import Corpus
from nmt.data.named import set_names, short_name
from nmt.errors import ConfigError, UserError
from nmt.study.arguments import Handed, split_arguments
from nmt.study.jobs import Job, Step, child_environment, run_jobs
from nmt.study.pictures import draw_pictures, file_name
from nmt.study.progress import watching
from nmt.study.report import write_report
from nmt.study.results import System, group, read_result, refuse_different_tests
from nmt.study.sentence import Example, example_of
from nmt.study.table import Comparison, text_table


class Wanted(NamedTuple):
    """A run that the comparison wants: its directory and the command line that trains it."""

    experiment: str
    run_dir: Path
    overrides: tuple[str, ...]
    config: dict[str, Any]


def compare(cfg: DictConfig, handed: Handed, typed: str) -> None:
    """typed is the command as the user gave it, for the record."""
    compose("evaluate", [readable_override(one) for one in handed.evaluate])  # a mistyped setting is refused now
    wanted: list[Wanted] = []
    if cfg.runs is None:
        wanted = _wanted(cfg, handed)
        names = _names([one.run_dir for one in wanted])
        steps = {one.run_dir: _steps(one, cfg, handed) for one in _slowest_first(wanted, cfg)}
    elif handed.train:
        raise ConfigError(f"runs=... trains nothing, so {handed.train[0]} has no use; leave one of them away")
    else:
        names = _names([Path(str(path)).expanduser() for path in _listed(cfg.runs)])
        unscored = [path for path in names if path.is_dir() and not _is_evaluated(path, handed)]
        steps = {path: (_evaluating(path, cfg, handed),) for path in unscored}
    if not names:
        raise ConfigError("nothing to compare: experiments, seeds or runs is an empty list")
    root = Path(cfg.root).expanduser() if cfg.root else next(iter(names)).parent
    output = Path(cfg.output).expanduser() if cfg.output else root / "comparison"
    logs = output / "logs"
    jobs = [Job(names[path], todo, logs / f"{file_name(names[path])}.log") for path, todo in steps.items() if todo]
    failed = _run(jobs, cfg)
    results = [read_result(path, _test_name(path, handed)) for path, name in names.items() if name not in failed]
    if results:
        refuse_different_tests(results)
        corpus = instantiate(wanted[0].config["data"]) if wanted else None
        _report(group(results), cfg, output, corpus, tuple(f"{name}: {said}" for name, said in failed.items()), typed)
    if failed:
        shown = "the table is of the others" if results else "no system is left for a table"
        raise UserError(f"{len(failed)} of {len(names)} runs failed ({', '.join(failed)}); {shown}; see above")


def _names(paths: Sequence[Path]) -> dict[Path, str]:
    """What a run is called in messages: its directory's name, or all of its path where two share that."""
    return {
        path: path.name if sum(other.name == path.name for other in set(paths)) == 1 else path.as_posix()
        for path in paths
    }


def _wanted(cfg: DictConfig, handed: Handed) -> list[Wanted]:
    """A run for each experiment and seed; HydraException for a setting that training does not know."""
    wanted = []
    for experiment in _listed(cfg.experiments):
        for seed in _listed(cfg.seeds):
            chosen = [
                f"experiment={experiment}",
                f"seed={seed}",
                f"threads={cfg.threads}",
                *_device(cfg),
                *handed.train,
                *handed.both,
            ]
            composed = compose("train", [readable_override(one) for one in chosen], return_hydra_config=True)
            root = Path(cfg.root or f"outputs/{composed.hydra.runtime.choices['data']}").expanduser()
            run_dir = root / (f"{experiment}-seed{seed}" if seed != 1 else str(experiment))
            settings = OmegaConf.masked_copy(composed, [str(key) for key in composed if key != "hydra"])
            config: Any = OmegaConf.to_container(settings, resolve=True)
            overrides = (*chosen, f"run_dir={run_dir.as_posix()}")
            wanted.append(Wanted(str(experiment), run_dir, overrides, {**config, "name": experiment}))
    return wanted


def _slowest_first(wanted: Sequence[Wanted], cfg: DictConfig) -> list[Wanted]:
    order = list(cfg.slowest_first)
    return sorted(wanted, key=lambda one: order.index(one.experiment) if one.experiment in order else -1)


def _steps(one: Wanted, cfg: DictConfig, handed: Handed) -> tuple[Step, ...]:
    """What is left to do for a run: training, evaluation, both or nothing."""
    training = Step("training", (*_program("train"), *handed.flags, *one.overrides))
    evaluating = _evaluating(one.run_dir, cfg, handed, _test_files(one.config, handed))
    if not _is_trained(one):
        return training, evaluating
    return () if _is_evaluated(one.run_dir, handed) else (evaluating,)


def _is_trained(one: Wanted) -> bool:
    """Finished, with the same settings, budget and data; where in doubt no: nmt.train knows what is left to do."""
    from nmt.run_directory import UNFINISHED, differences, portable, read_config, read_facts, read_status

    state = read_status(one.run_dir)
    if not state:
        return False
    before, now = read_config(one.run_dir), portable(one.config)
    if state in UNFINISHED or differences(before, now) or before["training"] != now["training"]:
        return False
    identity = instantiate(one.config["data"]).identity()
    return bool(json.loads(json.dumps(identity)) == read_facts(one.run_dir).get("identity"))


def _is_evaluated(run_dir: Path, handed: Handed) -> bool:
    """There is an evaluation with the usual settings, newer than the weights (a run kept without them is as it is).

    With settings of the user's own nmt.evaluate is asked: it translates again only where it must.
    """
    file = run_dir / "evaluation" / f"{_test_name(run_dir, handed)}.json"
    if handed.evaluate or not file.is_file():
        return False
    usual = compose("evaluate")
    search = json.loads(file.read_text(encoding="utf-8")).get("search") or {}
    if any(key != "n_best" and usual[key] != value for key, value in search.items() if key in usual):
        return False
    made = file.stat().st_mtime
    return all(made >= weights.stat().st_mtime for weights in run_dir.glob("*.safetensors"))


def _test_name(path: Path, handed: Handed) -> str:
    """What nmt.evaluate calls the test set: as the command line says, else as the run's own settings do."""
    file = path / "config.yaml"
    if handed.chooses_test or not file.is_file():
        return handed.test
    settings = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
    recorded = set_names((settings.get("evaluate") or {}).get("test"))
    return short_name(recorded[0]) if recorded else handed.test


def _test_files(config: dict[str, Any], handed: Handed) -> tuple[str, ...]:
    """Test files outside the current folder by name: a run keeps only the last part of an absolute path."""
    source, references = config["data"].get("test_src"), config["data"].get("test_tgt")
    if not source or not references or not Path(source).expanduser().is_absolute():
        return ()
    if handed.chooses_test or (config.get("evaluate") or {}).get("test"):
        return ()
    listed = [references] if isinstance(references, str) else references
    quoted = [readable_override(f"references={path}").split("=", 1)[1] for path in listed]
    return (f"test.src={source}", f"test.ref=[{','.join(quoted)}]", "test.name=test")


def _evaluating(run_dir: Path, cfg: DictConfig, handed: Handed, test: tuple[str, ...] = ()) -> Step:
    run = (f"checkpoint={run_dir.as_posix()}", f"threads={cfg.threads}", *_device(cfg))
    return Step("evaluating", (*_program("evaluate"), *handed.flags, *run, *test, *handed.evaluate))


def _run(jobs: Sequence[Job], cfg: DictConfig) -> dict[str, str]:
    """Runs the jobs; the failed ones by name with what they said last."""
    if not jobs:
        return {}
    at_once = cfg.jobs or min(2, os.cpu_count() or 1)
    say(
        f"{len(jobs)} runs to train or evaluate, {min(at_once, len(jobs))} at a time: "
        + ", ".join(j.name for j in jobs)
    )
    with watching() as watcher:
        outcomes = run_jobs(jobs, at_once, child_environment(cfg.threads), watcher)
    return {one.job.name: one.error for one in outcomes if one.error}


def _report(
    systems: list[System],
    cfg: DictConfig,
    output: Path,
    corpus: Corpus | None,
    failures: tuple[str, ...],
    typed: str,
) -> None:
    """Pictures, page and JSON into output; table and the figure's path to stdout."""
    made = {**record.record(), "command": typed}
    comparison = Comparison(systems, made, failures=failures)
    if cfg.draw_attention:
        pictures, sentence = _draw_attention(systems, cfg.sentence, output, corpus)
        comparison = comparison._replace(attention=pictures, sentence=sentence)
    figure = write_report(comparison, output)
    print(text_table(comparison))
    print()
    for label, picture in comparison.attention:
        print(f"attention of {label}: {(output / picture).as_posix()}")
    print(f"figure: {figure.as_posix()}")


def _draw_attention(
    systems: Sequence[System], sentence: str | None, output: Path, corpus: Corpus | None
) -> tuple[tuple[tuple[str, str], ...], str | None]:
    """A picture for each system that attends (its first seed): (system, file name) and the sentence.

    What cannot be drawn is said and left out: the table does not depend on it.
    """
    folders = [(system.label, system.results[0].run_dir) for system in systems]
    weighty = [(label, folder) for label, folder in folders if folder and any(folder.glob("*.safetensors"))]
    if not weighty:
        return (), None
    from nmt.run import load_run

    runs = [(label, load_run(folder)) for label, folder in weighty]
    try:
        example = example_of(corpus or runs[0][1].corpus(), sentence)
    except UserError as error:  # the run's text is not here; a sentence of the user's own needs none
        if not sentence:
            say(f"note: no attention pictures, for lack of a sentence ({error}); give one: sentence='...'")
        example = Example(sentence) if sentence else None
    if example is None:
        return (), None
    pictures = draw_pictures([(label, run.translator()) for label, run in runs], example, output)
    for note in pictures.notes:
        say(f"note: {note}")
    return pictures.files, example.source


def _program(name: str) -> tuple[str, ...]:
    return (sys.executable, "-m", f"nmt.{name}")


def _device(cfg: DictConfig) -> list[str]:
    return [f"device={cfg.device}"] if cfg.device else []


def _listed(value: Any) -> list[Any]:
    return list(value) if OmegaConf.is_list(value) else [value]


def main() -> None:
    typed = record.command()
    own = yaml.safe_load((Path(conf_dir()) / "compare.yaml").read_text(encoding="utf-8"))
    try:
        sys.argv[1:], handed = split_arguments(sys.argv[1:], own)
    except ConfigError as error:
        say(f"error: {error}")
        sys.exit(error.code)
    program("compare")(partial(compare, handed=handed, typed=typed))()


if __name__ == "__main__":
    main()
