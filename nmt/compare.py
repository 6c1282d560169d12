"""Train what is missing, evaluate, and put the systems side by side: python -m nmt.compare (--help for the rest)."""

import getpass
import hashlib
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from filelock import FileLock, Timeout

from nmt import experiments
from nmt.cli import Composed, program, say
from nmt.data.test_sets import path_list
from nmt.data.tokenizer import SOURCE_MODEL, load_tokenizers
from nmt.errors import ConfigError, UserError
from nmt.evaluation.attention_alignment import diagonal_entry, read_gold_alignments
from nmt.evaluation.stored import require_writable
from nmt.experiments import ChildOverrides, ComparedRun, Comparison, as_list
from nmt.files import file_name, printable
from nmt.loading import bottleneck_size, load_run
from nmt.provenance import command_line, provenance
from nmt.run import read_config
from nmt.settings import StudyConfig, further_metrics
from nmt.study.extra_rows import equal_time, other_searches
from nmt.study.jobs import Job, JobStep, child_environment, run_jobs
from nmt.study.length_views import training_lengths
from nmt.study.report import Report, StudyInputs, StudySettings, build_report, choose_baseline, remarks
from nmt.study.results import Result, System, group_by_system, is_text_file, mean_alignments, read_result, text_names
from nmt.study.samples import sample_outputs


def compare(composed: Composed, children: ChildOverrides, command: str) -> None:
    """`command` is the command line as the user typed it, for the report."""
    study: StudyConfig = composed.settings.study
    evaluation = experiments.evaluation_settings(children.evaluate)
    experiments.check_choices(study, children)
    trust = [*composed.trust, *path_list(evaluation.trust)]
    runs = experiments.compared_runs(study, children)
    if not runs:
        raise ConfigError("nothing to compare: study.experiments, seeds or runs is an empty list")
    for path, count in Counter(run.path for run in runs).items():
        if count > 1:
            say(f"note: {path.as_posix()} stands in study.runs= more than once; it is compared once")
    runs = list({run.path: run for run in runs}.values())
    info = experiments.run_info(runs, trust, Path(evaluation.data_dir))
    test = experiments.evaluation_set(evaluation, info)
    root = Path(study.root).expanduser() if study.root else runs[0].path.parent
    output = Path(study.output).expanduser() if study.output else root / "comparison"
    comparison = Comparison(study, children, evaluation, trust, info, test, output)
    with only_comparison_in(root if runs[0].config else output, output):
        failed, results = _results(runs, comparison)
        if results:
            _report(results, failed, comparison, command)
    if failed:
        rest = "the table is of the others" if results else "no system is left for a table"
        raise UserError(f"{len(failed)} of {len(runs)} runs failed ({', '.join(failed)}); {rest}; see above")


@contextmanager
def only_comparison_in(*folders: Path) -> Iterator[None]:
    """UserError where another comparison of this user is training into a folder, or writing its report there."""
    with ExitStack() as locks:
        for folder in dict.fromkeys(folders):
            name = hashlib.sha256(os.fsencode(folder.resolve()) + getpass.getuser().encode()).hexdigest()[:16]
            lock = Path(tempfile.gettempdir(), f"nmt-compare-{name}.lock")  # the folder itself may not exist yet
            try:
                locks.enter_context(FileLock(lock, timeout=0))
            except Timeout:
                raise UserError(
                    f"another comparison is at work in {folder}; wait for it, or choose another study.output"
                ) from None
            locks.callback(lock.unlink, missing_ok=True)  # before it is released
        yield


def _results(runs: Sequence[ComparedRun], comparison: Comparison) -> tuple[dict[str, str], list[Result]]:
    """Trains and evaluates what is left; why runs failed, by name, and the results of the others."""
    study, test = comparison.study, comparison.test
    order = as_list(study.slowest_first)  # so that no long run is left to the end
    queue = sorted(runs, key=lambda run: order.index(run.experiment) if run.experiment in order else -1)
    shared = {name for name, count in Counter(run.path.name for run in runs).items() if count > 1}
    names = {run.path: run.path.as_posix() if run.path.name in shared else run.path.name for run in runs}
    failed = _run_jobs({names[run.path]: experiments.steps_left(run, comparison) for run in queue}, comparison)
    paths = [run.path for run in runs if names[run.path] not in failed]
    texts = [path for path in paths if is_text_file(path)]
    labels = text_names(texts)
    if study.names is not None:
        given = [name.strip() for name in as_list(study.names)]
        if len(given) != len(texts):
            raise ConfigError(
                f"study.names= has {len(given)} names for {len(texts)} text files in study.runs=; give one for each"
            )
        if "" in given or len(set(given)) < len(given):
            raise ConfigError(f"study.names={given}: each text file needs a name of its own")
        labels = dict(zip(texts, given, strict=True))
    return failed, [read_result(path, test.set, labels.get(path, ""), test.target_language) for path in paths]


def _run_jobs(steps: Mapping[str, tuple[JobStep, ...]], comparison: Comparison) -> dict[str, str]:
    """Run the jobs that have steps left; the last line of output of those that failed, by name."""
    jobs = [
        Job(name, commands, comparison.output / "logs" / f"{file_name(name)}.log")
        for name, commands in steps.items()
        if commands
    ]
    if not jobs:
        return {}
    require_writable(jobs[0].log.parent)
    at_once = comparison.study.jobs or min(2, os.cpu_count() or 1)
    names = ", ".join(job.name for job in jobs)
    say(f"{len(jobs)} runs to train or evaluate, {min(at_once, len(jobs))} at a time: {names}")
    return run_jobs(jobs, at_once, child_environment(comparison.study.threads))


def _report(results: Sequence[Result], failed: Mapping[str, str], comparison: Comparison, command: str) -> None:
    """The report of the systems and of the rows beside them, written and printed."""
    study = comparison.study
    systems = group_by_system(results)
    choose_baseline([system.label for system in systems], study.baseline)
    require_writable(comparison.output)
    extra_rows, missing_rows = _extra_rows(systems, comparison)
    metrics = further_metrics(comparison.evaluation)
    settings = StudySettings(study.baseline, study.pairs, comparison.groups, study.bootstrap, metrics)
    inputs, origin = _study_inputs(systems, comparison), {**provenance(), "command": command}
    report = build_report(systems, extra_rows, inputs, settings, origin)
    failures = [f"{name}: {error}" for name, error in failed.items()]
    report = replace(report, failures=failures, notes=remarks(report, failures, missing_rows))
    _write(report, systems, comparison)


def _extra_rows(systems: Sequence[System], comparison: Comparison) -> tuple[list[System], list[str]]:
    """Further rows under the main ones, evaluated unless they are already; and why some of them are missing."""
    study, test, children = comparison.study, comparison.test, comparison.children
    rows, missing = equal_time(systems) if study.equal_time else ([], [])
    rows = [*other_searches(systems, as_list(study.searches)), *rows]
    steps: dict[str, tuple[JobStep, ...]] = {}
    for row in rows:
        overrides = (*row.settings, "alignment.score=false")
        settings = experiments.evaluation_settings((*children.evaluate, *overrides))
        if not experiments.is_evaluated(row.folder, test, row.checkpoint, settings, comparison.trust):
            overrides = (*overrides, f"output={row.folder.as_posix()}")
            name = f"{row.result.run}, {row.system.split(', ', 1)[-1]}"
            steps[name] = (experiments.evaluation_step(row.checkpoint, comparison, overrides),)
    if failed := _run_jobs(steps, comparison):
        raise UserError("; ".join(f"{name}: {error}" for name, error in failed.items()))
    results: dict[str, list[Result]] = {}
    for row in rows:
        stored = read_result(row.folder / f"{test.set.name}.json", test.set)
        results.setdefault(row.system, []).append(replace(stored, training=row.training, run_dir=row.result.run_dir))
    return [System(label, tuple(of_label)) for label, of_label in results.items()], missing


def _study_inputs(systems: Sequence[System], comparison: Comparison) -> StudyInputs:
    """What the runs contribute beside their translations."""
    test, info = comparison.test, comparison.info
    folders = {system.label: system.results[0].run_dir for system in systems}
    pieces, training, states = None, None, {}
    with_tokenizers = [folder for folder in folders.values() if folder and (folder / SOURCE_MODEL).exists()]
    if with_tokenizers:
        source, target = load_tokenizers(with_tokenizers[0])
        pieces = [len(ids) for ids in source.encode_batch(test.set.sources)]
        configs = {label: read_config(folder, comparison.trust) for label, folder in folders.items() if folder}
        states = {label: bottleneck_size(config) for label, config in configs.items()}
        if info:
            limits = (info.config.get("cleaning") or {}).get("max_words"), info.config["batching"]["max_pieces"]
            try:
                training = training_lengths(info.make_corpus().train(), source, target, *limits)
            except UserError as error:  # the text is elsewhere: the curve is drawn without its histogram
                say(f"note: nothing is drawn of the training text ({error})")
    # what nmt.evaluate wrote of the systems' attention, and the diagonal that it should beat
    alignment = [entry for system in systems for entry in mean_alignments(system, test.set.name)]
    gold = read_gold_alignments(test.set, comparison.evaluation.alignment) if alignment else None
    return StudyInputs(
        test=test.set,
        data=test.data,
        languages=(test.source_language, test.target_language),
        pieces=pieces,
        training=training,
        states={label: numbers for label, numbers in states.items() if numbers is not None},
        alignment=[*alignment, *([diagonal_entry(test.set, gold)] if gold else [])],
    )


def _write(report: Report, systems: Sequence[System], comparison: Comparison) -> None:
    """Everything into the output folder; headline, tables and the figures' paths to stdout."""
    # these import Altair: 0.3 s that a refusal need not take
    from nmt.study.attention_maps import draw_example_attention
    from nmt.study.explorer import explore_test_set
    from nmt.study.report_files import ReportTexts, terminal_report, write_report

    study, test, output = comparison.study, comparison.test, comparison.output
    with_text = study.report.text == "all"
    translators = []  # of the first seed of each system whose weights are there
    if with_text or (study.draw_attention and study.sentence):
        folders = [(system.label, system.results[0].run_dir) for system in systems]
        with_weights = [(label, folder) for label, folder in folders if folder and any(folder.glob("*.safetensors"))]
        translators = [(label, load_run(folder, comparison.trust).translator()) for label, folder in with_weights]
    texts, pictures = ReportTexts(None, None), list[tuple[str, str]]()
    if with_text:
        texts = ReportTexts(
            sample_outputs(systems, test.set, comparison.groups, study.report.samples),
            explore_test_set(systems, translators, test.set, study.report.explorer, study.sentence),
        )
    if study.draw_attention and (with_text or study.sentence):
        pictures = draw_example_attention(translators, test.set, study.sentence, output)
    figure = write_report(report, texts, pictures, output)
    print(terminal_report(report))
    print()
    for label, picture in pictures:
        print(printable(f"attention of {label}: {(output / picture).as_posix()}"))
    print(printable(f"report: {(output / 'comparison.html').as_posix()}"))
    print(printable(f"figure: {figure.as_posix()}"))


def main() -> None:
    command = command_line()
    try:
        sys.argv[1:], children = experiments.split_arguments(sys.argv[1:])
    except ConfigError as error:
        say(f"error: {error}")
        sys.exit(error.code)
    program("compare")(partial(compare, children=children, command=command))()


if __name__ == "__main__":
    main()
