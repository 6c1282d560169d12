"""Train what is missing, evaluate, and put the systems side by side: python -m nmt.compare (--help for the rest)."""

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from nmt import experiments
from nmt.cli import Composed, program, say
from nmt.data.test_sets import EvaluationSet, path_list
from nmt.data.tokenizer import SOURCE_MODEL, Tokenizer, load_tokenizers
from nmt.errors import ConfigError, UserError
from nmt.evaluation.alignment_error import AlignmentEntry
from nmt.evaluation.attention_alignment import diagonal_entry, read_gold_alignments
from nmt.evaluation.stored import require_writable
from nmt.files import file_name, printable
from nmt.loading import bottleneck_size, load_run
from nmt.provenance import command_line, provenance
from nmt.run import read_config
from nmt.settings import CompareConfig, EvaluateConfig, further_metrics
from nmt.study.arguments import ChildOverrides, split_arguments
from nmt.study.attention_maps import draw_example_attention
from nmt.study.explorer import explore_test_set
from nmt.study.extra_rows import ExtraRow, equal_time, other_searches
from nmt.study.headline import LengthGroups, length_groups
from nmt.study.job_progress import job_watcher
from nmt.study.jobs import Job, JobStep, child_environment, run_jobs
from nmt.study.length_views import TrainingLengths, training_lengths
from nmt.study.report import Report, StudyInputs, StudySettings, build_report, choose_baseline, remarks
from nmt.study.report_files import ReportTexts, terminal_report, write_report
from nmt.study.results import Result, System, group_by_system, is_text_file, mean_alignments, read_result, text_names
from nmt.study.samples import sample_outputs


def compare(composed: Composed, children: ChildOverrides, command: str) -> None:
    """`command` is the command line as the user typed it, for the report."""
    cfg: CompareConfig = composed.settings
    settings = experiments.evaluation_settings(children.evaluate)
    experiments.check_choices(cfg, children)
    choices = _choices(cfg, settings)
    trust = [*composed.trust, *path_list(settings.trust)]
    planned = experiments.planned_runs(cfg, children) if cfg.runs is None else []
    if cfg.runs is not None and children.train:
        raise ConfigError(f"runs=... trains nothing, so {children.train[0]} has no use; leave one of them away")
    run_paths = [Path(path).expanduser() for path in experiments.as_list(cfg.runs)] if not planned else []
    experiments.require_translatable([*children.evaluate, *experiments.as_list(cfg.searches)], run_paths)
    for path in dict.fromkeys(path for path in run_paths if run_paths.count(path) > 1):
        say(f"note: {path.as_posix()} stands in runs= more than once; it is compared once")
    paths = _run_names([run.run_dir for run in planned] or run_paths)
    if not paths:
        raise ConfigError("nothing to compare: experiments, seeds or runs is an empty list")
    info = experiments.run_info(planned, list(paths), trust, Path(settings.data_dir))
    test = experiments.evaluation_set(settings, info)
    root = Path(cfg.root).expanduser() if cfg.root else next(iter(paths)).parent
    output = Path(cfg.output).expanduser() if cfg.output else root / "comparison"
    logs = output / "logs"

    if cfg.launcher is not None:
        missing = [run for run in experiments.slowest_first(planned, cfg) if not experiments.is_trained(run)]
        _launch(missing, cfg.launcher, cfg, children, logs)
    steps_left = [
        (run.run_dir, _remaining_steps(run, test, settings, cfg, children))
        for run in experiments.slowest_first(planned, cfg)
    ]
    steps_left += [(path, _remaining_evaluation(path, test, settings, cfg, children)) for path in run_paths]
    failed = _run_jobs(
        [Job(paths[path], steps, logs / f"{file_name(paths[path])}.log") for path, steps in steps_left if steps], cfg
    )
    results = _read_results({path: name for path, name in paths.items() if name not in failed}, cfg, test, settings)
    if results:
        systems = group_by_system(results)
        choose_baseline([system.label for system in systems], cfg.baseline)
        require_writable(output)
        extra_rows, missing_rows = _extra_rows(systems, test, settings, cfg, children, logs)
        inputs = _study_inputs(systems, test, info, settings, trust)
        report = build_report(systems, extra_rows, inputs, choices, {**provenance(), "command": command})
        failures = [f"{name}: {error}" for name, error in failed.items()]
        report = replace(report, failures=failures, notes=remarks(report, failures, missing_rows))
        _write(report, systems, test, choices.groups, cfg, trust, output)
    if failed:
        rest = "the table is of the others" if results else "no system is left for a table"
        raise UserError(f"{len(failed)} of {len(paths)} runs failed ({', '.join(failed)}); {rest}; see above")


def _choices(cfg: CompareConfig, settings: EvaluateConfig) -> StudySettings:
    groups = length_groups(cfg.headline)
    return StudySettings(cfg.baseline, cfg.pairs, groups, cfg.bootstrap, further_metrics(settings))


def _run_names(paths: Sequence[Path]) -> dict[Path, str]:
    """What a run is called in messages: its directory's name, or all of its path where two share that."""
    return {
        path: path.name if sum(other.name == path.name for other in set(paths)) == 1 else path.as_posix()
        for path in paths
    }


def _launch(
    planned: Sequence[experiments.PlannedRun],
    launcher: str,
    cfg: CompareConfig,
    children: ChildOverrides,
    logs: Path,
) -> None:
    """Trainings by one of Hydra's launchers; the steps after it find out and report which of them failed."""
    jobs = [
        Job(f"sweep {n}", (JobStep("training", command),), logs / f"sweep-{n}.log")
        for n, command in enumerate(
            experiments.sweep_commands(planned, launcher, _parallel_jobs(cfg), children), start=1
        )
    ]
    failed = _run_jobs(jobs, cfg, at_once=1)
    if failed and not any(run.run_dir.exists() for run in planned):
        raise UserError(f"launcher={launcher} trained nothing: {next(iter(failed.values()))}")


def _remaining_steps(
    planned: experiments.PlannedRun,
    test: EvaluationSet,
    settings: EvaluateConfig,
    cfg: CompareConfig,
    children: ChildOverrides,
) -> tuple[JobStep, ...]:
    """What is left to do for a run: training, evaluation, both or nothing."""
    evaluate = experiments.evaluation_step(
        planned.run_dir, cfg, children, experiments.test_file_overrides(planned.config, settings)
    )
    if not experiments.is_trained(planned):
        return experiments.training_step(planned, children), evaluate
    evaluated = experiments.is_evaluated(planned.run_dir / "evaluation", test, planned.run_dir, settings, children)
    return () if evaluated else (evaluate,)


def _remaining_evaluation(
    path: Path, test: EvaluationSet, settings: EvaluateConfig, cfg: CompareConfig, children: ChildOverrides
) -> tuple[JobStep, ...]:
    if not path.is_dir() or experiments.is_evaluated(path / "evaluation", test, path, settings, children):
        return ()
    return (experiments.evaluation_step(path, cfg, children),)


def _parallel_jobs(cfg: CompareConfig) -> int:
    return int(cfg.jobs or min(2, os.cpu_count() or 1))


def _run_jobs(jobs: Sequence[Job], cfg: CompareConfig, at_once: int | None = None) -> dict[str, str]:
    """Run the jobs; the last line of output of those that failed, by name."""
    if not jobs:
        return {}
    require_writable(jobs[0].log.parent)
    at_once = at_once or _parallel_jobs(cfg)
    say(
        f"{len(jobs)} runs to train or evaluate, {min(at_once, len(jobs))} at a time: "
        + ", ".join(job.name for job in jobs)
    )
    with job_watcher() as watcher:
        outcomes = run_jobs(jobs, at_once, child_environment(cfg.threads), watcher)
    return {outcome.job.name: outcome.error for outcome in outcomes if outcome.error}


def _read_results(
    paths: dict[Path, str], cfg: CompareConfig, test: EvaluationSet, settings: EvaluateConfig
) -> list[Result]:
    texts = [path for path in paths if is_text_file(path)]
    names = text_names(texts)
    if cfg.names is not None:
        labels = [name.strip() for name in experiments.as_list(cfg.names)]
        if len(labels) != len(texts):
            raise ConfigError(f"names= has {len(labels)} names for {len(texts)} text files in runs=; give one for each")
        if "" in labels or len(set(labels)) < len(labels):
            raise ConfigError(f"names={labels}: each text file needs a name of its own")
        names = dict(zip(texts, labels, strict=True))
    return [read_result(path, test.set, names.get(path, ""), test.target_language) for path in paths]


def _extra_rows(
    systems: Sequence[System],
    test: EvaluationSet,
    settings: EvaluateConfig,
    cfg: CompareConfig,
    children: ChildOverrides,
    logs: Path,
) -> tuple[list[System], list[str]]:
    """Further rows under the main ones, evaluated unless they are already; and why some of them are missing."""
    rows, missing = equal_time(systems) if cfg.equal_time else ([], [])
    rows = [*other_searches(systems, experiments.as_list(cfg.searches)), *rows]
    jobs = []
    for row in rows:
        name = f"{row.result.run}, {row.system.split(', ', 1)[-1]}"
        step = experiments.evaluation_step(
            row.checkpoint, cfg, children, (*row.settings, f"output={row.folder.as_posix()}", "alignment.score=false")
        )
        row_children = ChildOverrides((), (*children.evaluate, *row.settings))
        row_settings = experiments.evaluation_settings(row_children.evaluate) if row.settings else settings
        if not experiments.is_evaluated(row.folder, test, row.checkpoint, row_settings, row_children):
            jobs.append(Job(name, (step,), logs / f"{file_name(name)}.log"))
    failed = _run_jobs(jobs, cfg)
    if failed:
        raise UserError("; ".join(f"{name}: {error}" for name, error in failed.items()))
    return _group_rows(rows, test), missing


def _group_rows(rows: Sequence[ExtraRow], test: EvaluationSet) -> list[System]:
    results: dict[str, list[Result]] = {}
    for row in rows:
        stored = read_result(row.folder / f"{test.set.name}.json", test.set)
        results.setdefault(row.system, []).append(replace(stored, training=row.training, run_dir=row.result.run_dir))
    return [System(label, tuple(of_label)) for label, of_label in results.items()]


def _study_inputs(
    systems: Sequence[System],
    test: EvaluationSet,
    info: experiments.RunInfo | None,
    settings: EvaluateConfig,
    trust: Sequence[str],
) -> StudyInputs:
    """What the runs contribute beside their translations."""
    folders = [system.results[0].run_dir for system in systems]
    folder_with_tokenizers = next((folder for folder in folders if folder and (folder / SOURCE_MODEL).exists()), None)
    pieces, training, states = None, None, {}
    if folder_with_tokenizers:
        tokenizers = load_tokenizers(folder_with_tokenizers)
        pieces = [len(ids) for ids in tokenizers[0].encode_batch(test.set.sources)]
        training = _training_text(info, *tokenizers) if info else None
        labelled_folders = dict(zip([system.label for system in systems], folders, strict=True))
        states = {
            label: bottleneck_size(read_config(folder, trust)) for label, folder in labelled_folders.items() if folder
        }
    return StudyInputs(
        test=test.set,
        data=test.data,
        languages=(test.source_language, test.target_language),
        pieces=pieces,
        training=training,
        states={label: numbers for label, numbers in states.items() if numbers is not None},
        alignment=_alignment(systems, test, settings),
    )


def _alignment(systems: Sequence[System], test: EvaluationSet, settings: EvaluateConfig) -> list[AlignmentEntry]:
    """What nmt.evaluate wrote of the systems' attention, and the diagonal that it should beat."""
    entries = [entry for system in systems for entry in mean_alignments(system, test.set.name)]
    gold = read_gold_alignments(test.set, settings.alignment) if entries else None
    return [*entries, *([diagonal_entry(test.set, gold)] if gold else [])]


def _training_text(info: experiments.RunInfo, source: Tokenizer, target: Tokenizer) -> TrainingLengths | None:
    max_words = (info.config.get("cleaning") or {}).get("max_words")
    try:
        return training_lengths(
            info.make_corpus().train(), source, target, max_words, info.config["batching"]["max_pieces"]
        )
    except UserError as error:  # the text is elsewhere: the curve is drawn without its histogram
        say(f"note: nothing is drawn of the training text ({error})")
        return None


def _write(
    report: Report,
    systems: Sequence[System],
    test: EvaluationSet,
    ends: LengthGroups,
    cfg: CompareConfig,
    trust: Sequence[str],
    output: Path,
) -> None:
    """Everything into output; headline, tables and the figures' paths to stdout."""
    with_text = cfg.report.text == "all"
    translators = _translators(systems, trust) if with_text or (cfg.draw_attention and cfg.sentence) else []
    texts, pictures = ReportTexts(None, None), list[tuple[str, str]]()
    if with_text:
        texts = ReportTexts(
            sample_outputs(systems, test.set, ends, cfg.report.samples),
            explore_test_set(systems, translators, test.set, cfg.report.explorer, cfg.sentence),
        )
    if cfg.draw_attention and (with_text or cfg.sentence):
        pictures = draw_example_attention(translators, test.set, cfg.sentence, output)
    figure = write_report(report, texts, pictures, output)
    print(terminal_report(report))
    print()
    for label, picture in pictures:
        print(printable(f"attention of {label}: {(output / picture).as_posix()}"))
    print(printable(f"report: {(output / 'comparison.html').as_posix()}"))
    print(printable(f"figure: {figure.as_posix()}"))


def _translators(systems: Sequence[System], trust: Sequence[str]) -> list[tuple[str, Any]]:
    """The first seed of each system whose weights are there."""
    folders = [(system.label, system.results[0].run_dir) for system in systems]
    with_weights = [(label, folder) for label, folder in folders if folder and any(folder.glob("*.safetensors"))]
    if not with_weights:
        return []
    return [(label, load_run(folder, trust).translator()) for label, folder in with_weights]


def main() -> None:
    command = command_line()
    try:
        sys.argv[1:], children = split_arguments(sys.argv[1:])
    except ConfigError as error:
        say(f"error: {error}")
        sys.exit(error.code)
    program("compare")(partial(compare, children=children, command=command))()


if __name__ == "__main__":
    main()
