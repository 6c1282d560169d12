"""Train what is missing, evaluate, and put the systems side by side: python -m nmt.compare (--help for the rest)."""

import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from hydra import compose
from omegaconf import DictConfig

from nmt import comparison, record
from nmt.cli import conf_dir, program, readable_override, require_kinds, say
from nmt.data.tokenizer import SOURCE_MODEL, Tokenizer, load_tokenizers
from nmt.errors import ConfigError, UserError, require_whole
from nmt.evaluation.significance import Resampling
from nmt.evaluation.store import require_writable
from nmt.run_directory import read_config
from nmt.study.arguments import Handed, split_arguments
from nmt.study.headline import Ends
from nmt.study.jobs import Job, Step, child_environment, run_jobs
from nmt.study.notes import notes
from nmt.study.pictures import Pictures, file_name
from nmt.study.progress import watching
from nmt.study.protocol import Choices, Known, compared
from nmt.study.report import Texts, terminal, write_report
from nmt.study.results import Result, System, alignments, group, is_text, names_of, read_result
from nmt.study.training_text import TrainingText, training_text
from nmt.study.variants import Variant, equal_time, other_searches
from nmt.test_sets import Test


def compare(cfg: DictConfig, handed: Handed, typed: str) -> None:
    """typed is the command as the user gave it, for the record."""
    settings = compose("evaluate", [readable_override(one) for one in handed.evaluate])  # a mistyped one is refused now
    require_kinds(cfg, ("root", "output", "baseline", "launcher", "sentence"), ("equal_time", "draw_attention"))
    require_kinds(settings, ("test.name", "target_language", "alignment.gold"), ("ter", "evaluate.pool"))
    choices = _choices(cfg)
    _require_counts(cfg)
    wanted = comparison.wanted_runs(cfg, handed) if cfg.runs is None else []
    if cfg.runs is not None and handed.train:
        raise ConfigError(f"runs=... trains nothing, so {handed.train[0]} has no use; leave one of them away")
    listed = [Path(str(path)).expanduser() for path in comparison.listed(cfg.runs)] if not wanted else []
    comparison.require_use([*handed.evaluate, *map(str, comparison.listed(cfg.searches))], listed)
    for path in dict.fromkeys(path for path in listed if listed.count(path) > 1):
        say(f"note: {path.as_posix()} stands in runs= more than once; it is compared once")
    paths = _names([one.run_dir for one in wanted] or listed)
    if not paths:
        raise ConfigError("nothing to compare: experiments, seeds or runs is an empty list")
    run = comparison.told(wanted, list(paths))
    test = comparison.test_of(settings, run)
    root = Path(cfg.root).expanduser() if cfg.root else next(iter(paths)).parent
    output = Path(cfg.output).expanduser() if cfg.output else root / "comparison"
    logs = output / "logs"

    if cfg.launcher:
        missing = [one for one in comparison.slowest_first(wanted, cfg) if not comparison.is_trained(one)]
        _launch(missing, cfg, handed, logs)
    todo = [(one.run_dir, _steps(one, test, settings, cfg, handed)) for one in comparison.slowest_first(wanted, cfg)]
    todo += [(path, _evaluating(path, test, settings, cfg, handed)) for path in listed]
    failed = _run(
        [Job(paths[path], steps, logs / f"{file_name(paths[path])}.log") for path, steps in todo if steps], cfg
    )
    results = _results({path: name for path, name in paths.items() if name not in failed}, cfg, test, settings)
    if results:
        require_writable(output)
        systems = group(results)
        variants, said = _variants(systems, test, settings, cfg, handed, logs)
        known = _known(systems, test, run)
        report = compared(systems, variants, known, choices, {**record.record(), "command": typed})
        report["failures"] = [f"{name}: {why}" for name, why in failed.items()]
        report["notes"] = notes(report, report["failures"], said)
        _write(report, systems, test, choices.ends, cfg, output)
    if failed:
        shown = "the table is of the others" if results else "no system is left for a table"
        raise UserError(f"{len(failed)} of {len(paths)} runs failed ({', '.join(failed)}); {shown}; see above")


PARTS = {"headline": "short", "bootstrap": "resamples", "report": "text"}  # an example of each


def _choices(cfg: DictConfig) -> Choices:
    for name, part in PARTS.items():
        if not isinstance(cfg[name], DictConfig):
            raise ConfigError(f"{name}={cfg[name]}: its parts are settings: {name}.{part}=...")
    if cfg.report.text not in ("all", "none"):
        raise ConfigError(f"report.text={cfg.report.text} is unknown: use all or none")
    short, long = (comparison.listed(cfg.headline[name]) for name in ("short", "long"))
    for name, both in (("short", short), ("long", long)):
        if len(both) != 2 or not isinstance(both[0], int) or not (both[1] is None or isinstance(both[1], int)):
            raise ConfigError(f"headline.{name}={list(both)}: give two numbers of words, [FIRST,LAST]; null: no end")
        if both[0] < 1 or (both[1] is not None and both[1] < both[0]):
            raise ConfigError(f"headline.{name}={list(both)}: FIRST is 1 or more, and LAST not below it")
    if short[1] is None or short[1] >= long[0]:
        raise ConfigError(f"headline: short ({short}) must end before long ({long}) begins")
    ends = Ends((short[0], short[1]), (long[0], long[1]))
    return Choices(cfg.baseline, cfg.pairs, ends, Resampling(**cfg.bootstrap))


def _require_counts(cfg: DictConfig) -> None:
    require_whole("report.samples", cfg.report.samples, 0)
    require_whole("report.explorer", cfg.report.explorer, 0)
    require_whole("threads", cfg.threads)
    if cfg.jobs is not None:
        require_whole("jobs", cfg.jobs)


def _names(paths: Sequence[Path]) -> dict[Path, str]:
    """What a run is called in messages: its directory's name, or all of its path where two share that."""
    return {
        path: path.name if sum(other.name == path.name for other in set(paths)) == 1 else path.as_posix()
        for path in paths
    }


def _launch(wanted: Sequence[comparison.Wanted], cfg: DictConfig, handed: Handed, logs: Path) -> None:
    """Trainings by one of Hydra's launchers; which of them fail is found out, and said, by the steps after it."""
    jobs = [
        Job(f"sweep {n}", (Step("training", command),), logs / f"sweep-{n}.log")
        for n, command in enumerate(comparison.sweeps(wanted, cfg.launcher, _at_once(cfg), handed), start=1)
    ]
    failed = _run(jobs, cfg, at_once=1)
    if failed and not any(one.run_dir.exists() for one in wanted):
        raise UserError(f"launcher={cfg.launcher} trained nothing: {next(iter(failed.values()))}")


def _steps(
    one: comparison.Wanted, test: Test, settings: DictConfig, cfg: DictConfig, handed: Handed
) -> tuple[Step, ...]:
    """What is left to do for a run: training, evaluation, both or nothing."""
    evaluating = comparison.evaluating(one.run_dir, cfg, handed, comparison.files_of_the_test(one.config, settings))
    if not comparison.is_trained(one):
        return comparison.training(one, handed), evaluating
    done = comparison.is_evaluated(one.run_dir / "evaluation", test, one.run_dir, settings, handed)
    return () if done else (evaluating,)


def _evaluating(path: Path, test: Test, settings: DictConfig, cfg: DictConfig, handed: Handed) -> tuple[Step, ...]:
    if not path.is_dir() or comparison.is_evaluated(path / "evaluation", test, path, settings, handed):
        return ()
    return (comparison.evaluating(path, cfg, handed),)


def _at_once(cfg: DictConfig) -> int:
    return int(cfg.jobs or min(2, os.cpu_count() or 1))


def _run(jobs: Sequence[Job], cfg: DictConfig, at_once: int | None = None) -> dict[str, str]:
    """Runs the jobs; the failed ones by name with what they said last."""
    if not jobs:
        return {}
    require_writable(jobs[0].log.parent)
    at_once = at_once or _at_once(cfg)
    say(
        f"{len(jobs)} runs to train or evaluate, {min(at_once, len(jobs))} at a time: "
        + ", ".join(job.name for job in jobs)
    )
    with watching() as watcher:
        outcomes = run_jobs(jobs, at_once, child_environment(cfg.threads), watcher)
    return {one.job.name: one.error for one in outcomes if one.error}


def _results(paths: dict[Path, str], cfg: DictConfig, test: Test, settings: DictConfig) -> list[Result]:
    texts = [path for path in paths if is_text(path)]
    names = names_of(texts)
    if cfg.names is not None:
        given = [str(name).strip() for name in comparison.listed(cfg.names)]
        if len(given) != len(texts):
            raise ConfigError(f"names= has {len(given)} names for {len(texts)} text files in runs=; give one for each")
        if "" in given or len(set(given)) < len(given):
            raise ConfigError(f"names={given}: each text file needs a name of its own")
        names = dict(zip(texts, given, strict=True))
    ter = bool(settings.ter)
    return [read_result(path, test.set, names.get(path, ""), test.target_language, ter) for path in paths]


def _variants(
    systems: Sequence[System], test: Test, settings: DictConfig, cfg: DictConfig, handed: Handed, logs: Path
) -> tuple[list[System], list[str]]:
    """The rows beside the main ones, evaluated where they are not yet; and remarks on those that cannot be had."""
    rows, said = equal_time(systems) if cfg.equal_time else ([], [])
    rows = [*other_searches(systems, [str(one) for one in comparison.listed(cfg.searches)]), *rows]
    jobs = []
    for row in rows:
        name = f"{row.of.evaluation['run']}, {row.system.split(', ', 1)[-1]}"
        step = comparison.evaluating(
            row.checkpoint, cfg, handed, (*row.settings, f"output={row.folder.as_posix()}", "alignment.score=false")
        )
        own = Handed((), (*handed.evaluate, *row.settings))
        wanted = compose("evaluate", [readable_override(one) for one in own.evaluate]) if row.settings else settings
        if not comparison.is_evaluated(row.folder, test, row.checkpoint, wanted, own):
            jobs.append(Job(name, (step,), logs / f"{file_name(name)}.log"))
    failed = _run(jobs, cfg)
    if failed:
        raise UserError("; ".join(f"{name}: {why}" for name, why in failed.items()))
    return _grouped(rows, test), said


def _grouped(rows: Sequence[Variant], test: Test) -> list[System]:
    found: dict[str, list[Result]] = {}
    for row in rows:
        made = read_result(row.folder / f"{test.set.name}.json", test.set)
        found.setdefault(row.system, []).append(
            Result(made.evaluation, row.training, made.path, row.of.run_dir, made.hypotheses)
        )
    return [System(label, tuple(results)) for label, results in found.items()]


def _known(systems: Sequence[System], test: Test, run: comparison.Told | None) -> Known:
    """What the runs tell beside their translations."""
    folders = [system.results[0].run_dir for system in systems]
    own = next((folder for folder in folders if folder and (folder / SOURCE_MODEL).exists()), None)
    pieces, training, states = None, None, {}
    if own:
        tokenizers = load_tokenizers(own)
        pieces = [len(ids) for ids in tokenizers[0].encode_batch(test.set.sources)]
        training = _training(run, *tokenizers) if run else None
        from nmt.run import carried  # torch takes seconds to import

        known = dict(zip([system.label for system in systems], folders, strict=True))
        states = {label: carried(read_config(folder)) for label, folder in known.items() if folder}
    return Known(
        test=test.set,
        data=test.data,
        languages=(test.source_language, test.target_language),
        pieces=pieces,
        training=training,
        states={label: numbers for label, numbers in states.items() if numbers is not None},
        alignment=[entry for system in systems for entry in alignments(system, test.set.name)],
    )


def _training(run: comparison.Told, source: Tokenizer, target: Tokenizer) -> TrainingText | None:
    max_words = (run.config.get("cleaning") or {}).get("max_words")
    try:
        return training_text(run.corpus.train(), source, target, max_words, run.config["batching"]["max_pieces"])
    except UserError as error:  # the text is elsewhere: the curve is drawn without its histogram
        say(f"note: nothing is drawn of the training text ({error})")
        return None


def _write(
    report: dict[str, Any], systems: Sequence[System], test: Test, ends: Ends, cfg: DictConfig, output: Path
) -> None:
    """Everything into output; headline, tables and the figures' paths to stdout."""
    from nmt.study.texts import drawn_attention, texts_of  # matplotlib takes a second to import

    with_text = cfg.report.text == "all"
    translators = _translators(systems) if with_text or (cfg.draw_attention and cfg.sentence) else []
    texts, pictures = Texts(None, None), Pictures()
    if with_text:
        texts = texts_of(systems, translators, test.set, ends, cfg.report.samples, cfg.report.explorer)
    if cfg.draw_attention and (with_text or cfg.sentence):
        pictures = drawn_attention(translators, test.set, cfg.sentence, output)
    for line in pictures.notes:
        say(f"note: {line}")
    figure = write_report(report, texts, pictures.files, output)
    print(terminal(report))
    print()
    for label, picture in pictures.files:
        print(f"attention of {label}: {(output / picture).as_posix()}")
    print(f"report: {(output / 'comparison.html').as_posix()}")
    print(f"figure: {figure.as_posix()}")


def _translators(systems: Sequence[System]) -> list[tuple[str, Any]]:
    """The first seed of each system whose weights are there."""
    folders = [(system.label, system.results[0].run_dir) for system in systems]
    weighty = [(label, folder) for label, folder in folders if folder and any(folder.glob("*.safetensors"))]
    if not weighty:
        return []
    from nmt.run import load_run  # torch takes seconds to import

    return [(label, load_run(folder).translator()) for label, folder in weighty]


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
