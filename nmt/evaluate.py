"""Program: translations against references.      python -m nmt.evaluate checkpoint=RUN

Or without a model, for translations from anywhere: hypotheses=FILE references=FILE source=FILE.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nmt.cli import Composed, program, say
from nmt.data.corpus import TestSet
from nmt.data.test_sets import (
    EvaluationSet,
    evaluation_sets,
    name_without_gz,
    path_list,
    read_selection,
    require_one_column,
)
from nmt.data.text import read_lines, require_equal_counts
from nmt.errors import ConfigError, UserError
from nmt.evaluation.attention_alignment import add_alignment_scores, read_gold_alignments, require_layer
from nmt.evaluation.evaluation_report import Scores, score_translations, text_report
from nmt.evaluation.stored import lines_sha256, read_stored, require_writable, to_json
from nmt.files import file_sha256, write_text
from nmt.loading import Run, choose_device, load_run
from nmt.provenance import provenance
from nmt.run import read_data_facts
from nmt.settings import BootstrapSettings, EvaluateConfig, SearchSettings, further_metrics, search_settings

if TYPE_CHECKING:  # torch takes seconds to import, and scoring files needs none
    from nmt.decoding.translator import Translator


class ScoringSettings(NamedTuple):
    """How to score, whatever is scored."""

    language: str | None  # None: the run's
    bootstrap: BootstrapSettings
    metrics: tuple[str, ...]  # beside BLEU and chrF2


class BestTranslations(NamedTuple):
    """A run's best hypotheses for the sources."""

    texts: list[str]
    capped: int
    split: int  # sources translated in parts
    seconds: float


@program("evaluate")
def main(composed: Composed) -> None:
    config: EvaluateConfig = composed.settings
    for evaluation in evaluations(config, composed.trust):
        print(to_json(evaluation, indent=None) if config.as_json else text_report(evaluation), flush=True)


def evaluations(cfg: EvaluateConfig, trust: Sequence[str]) -> Iterator[dict[str, Any]]:
    """One after the other, each written before it is yielded."""
    scoring = ScoringSettings(cfg.target_language, cfg.bootstrap, further_metrics(cfg))
    checkpoints, files = path_list(cfg.checkpoint), path_list(cfg.hypotheses)
    check_settings(cfg, checkpoints, files)
    for path in files:
        yield evaluate_file(path, cfg, scoring)
    for path in checkpoints:
        yield from evaluate_run(path, cfg, trust, scoring, in_subfolder=len(checkpoints) > 1)


def check_settings(cfg: EvaluateConfig, checkpoints: Sequence[str], files: Sequence[str]) -> None:
    """ConfigError, before anything is computed, where the settings do not say what to score against what."""
    if not checkpoints and not files:
        raise ConfigError("what to evaluate? give checkpoint=RUN, or hypotheses=FILE references=FILE")
    if checkpoints and files:
        raise ConfigError("give checkpoint=RUN, or hypotheses=FILE references=FILE, not both")
    if files and not cfg.references:
        raise ConfigError("hypotheses=FILE needs references=FILE, or references=[FILE,FILE] for several translators")
    if files and (cfg.test.src or cfg.test.ref):
        raise ConfigError("test.src and test.ref go with checkpoint=; beside hypotheses= give source= and references=")
    if files and cfg.evaluate.test:
        raise ConfigError("evaluate.test goes with checkpoint=; beside hypotheses= give source= and references=")
    if cfg.evaluate.test and (cfg.test.src or cfg.test.ref or cfg.test.name):
        raise ConfigError("evaluate.test names test sets of sacreBLEU's; leave test.src, test.ref and test.name away")
    if checkpoints and (cfg.references or cfg.source):
        raise ConfigError("references= and source= go with hypotheses=; beside checkpoint= give test.src=, test.ref=")
    if cfg.test.src and not cfg.test.ref:
        raise ConfigError("test.src=FILE needs test.ref=FILE; to translate alone: python -m nmt.translate")
    if cfg.test.ref and not cfg.test.src:
        raise ConfigError("test.ref=FILE needs test.src=FILE, the text to be translated")
    if cfg.test.name and Path(cfg.test.name).name != cfg.test.name:
        raise ConfigError(f"test.name={cfg.test.name}: it names a file in a folder; leave / out")
    if files and cfg.alignment.gold:
        raise ConfigError("alignment.gold goes with checkpoint=: attention is compared with it")
    for path in checkpoints:
        if not Path(path).expanduser().exists():
            raise UserError(f"there is no checkpoint at {path}; give the run directory of a trained system")
    names = [Path(path).resolve().name for path in checkpoints or files]
    if cfg.output and len(set(names)) < len(names):
        raise ConfigError("output= is one folder, and two of the systems have the same name; evaluate them one by one")


def evaluate_file(path: str, cfg: EvaluateConfig, scoring: ScoringSettings) -> dict[str, Any]:
    """Scores of translations in a file, from any program."""
    references = path_list(cfg.references, unique=False)
    require_one_column([*references, *([cfg.source] if cfg.source else [])])
    sources = list(read_lines(cfg.source)) if cfg.source else None
    texts = [list(read_lines(reference)) for reference in references]
    hypotheses = list(read_lines(path))
    counts = {path: len(hypotheses), **dict(zip(references, map(len, texts), strict=True))}
    if sources is not None:
        counts[str(cfg.source)] = len(sources)
    require_equal_counts(counts)
    if sources is None:
        say("no source= given: no scores by length")
    test = EvaluationSet(
        TestSet(cfg.test.name or name_without_gz(references[0]), sources or [], texts), "files", "", ""
    )
    scores = score_translations(hypotheses, texts, sources, scoring.language or "", scoring.bootstrap, scoring.metrics)
    name = name_without_gz(path)
    evaluation = {
        **dict.fromkeys(("seed", "updates", "parameters", "search", "capped", "seconds")),
        **evaluation_record(test, scores, scoring, hypotheses),
        "system": name,
        "run": name,
        "provenance": provenance(),
    }
    if not cfg.output:
        return evaluation
    folder = Path(cfg.output).expanduser()
    require_writable(folder)
    write_text(folder / f"{name}.json", to_json(evaluation) + "\n")
    say(f"written: {folder / name}.json")
    return evaluation


def evaluate_run(
    path: str, cfg: EvaluateConfig, trust: Sequence[str], scoring: ScoringSettings, in_subfolder: bool
) -> Iterator[dict[str, Any]]:
    """Translate test sets with a run, unless stored translations can be used, and score them one after the other."""
    run = load_run(path, trust)
    folder = run.path / "evaluation"
    if cfg.output:
        folder = Path(cfg.output).expanduser() / (run.path.resolve().name if in_subfolder else "")
    make_corpus = partial(run.corpus, Path(cfg.data_dir))
    tests = evaluation_sets(run.path, run.config, make_corpus, read_selection(cfg), read_data_facts)
    gold_alignments = [read_gold_alignments(test.set, cfg.alignment) for test in tests]
    make_translator = partial(run_translator, run, cfg)
    if any(gold_alignments) and cfg.alignment.layer != "mean":
        require_layer(cfg.alignment, make_translator())
    for test, gold_links in zip(tests, gold_alignments, strict=True):
        evaluation = evaluate_test(run, test, cfg, scoring, folder)
        if gold_links:
            evaluation = add_alignment_scores(
                evaluation, test.set, gold_links, cfg.alignment, folder, make_translator, provenance, cfg.force
            )
        yield evaluation


def evaluate_test(
    run: Run, test: EvaluationSet, cfg: EvaluateConfig, scoring: ScoringSettings, folder: Path
) -> dict[str, Any]:
    """One set: its translations, stored or new, and their scores."""
    search = search_settings(cfg, n_best=1)  # evaluation wants one translation a sentence
    inputs = {
        "weights_sha256": file_sha256(run.weights),
        "max_src_pieces": cfg.max_src_pieces or run.config["batching"]["max_pieces"],
        "search": {key: value for key, value in search.model_dump().items() if key != "batch"},
    }
    stored = read_stored(folder, test.set.name)
    translations = None if cfg.force or stored is None else reusable_translations(stored, inputs, test)
    if translations:
        say(f"{run.name}: translations of {test.set.name} are there ({folder}); translated again with force=true")
    else:
        require_writable(folder)
        translations = translate_test(run, test, cfg, search)

    language = scoring.language if scoring.language is not None else test.target_language
    scores = score_translations(
        translations.texts, test.set.references, test.set.sources, language, scoring.bootstrap, scoring.metrics
    )
    evaluation = {
        "system": run.name,
        "run": run.path.resolve().name,
        "seed": run.seed,
        "updates": run.updates,
        "parameters": run.parameters,
        **evaluation_record(test, scores, scoring, translations.texts),
        **inputs,
        "capped": translations.capped,
        "split": translations.split,
        "seconds": round(translations.seconds, 2),
        "provenance": provenance(),
    }
    if translations.split:
        evaluation["warnings"].append(
            f"{translations.split:,} sources have more than {inputs['max_src_pieces']} pieces; "
            f"they were translated in parts"
        )
    return write_evaluation(evaluation, translations.texts, folder, stored[0] if stored else None)


def run_translator(run: Run, cfg: EvaluateConfig) -> "Translator":
    import torch

    if cfg.threads:
        torch.set_num_threads(cfg.threads)
    return run.translator(choose_device(cfg.device), cfg.max_src_pieces)


def translate_test(run: Run, test: EvaluationSet, cfg: EvaluateConfig, search: SearchSettings) -> BestTranslations:
    """All the sources, with a bar on a terminal and one line at the start and at the end anywhere."""
    translator = run_translator(run, cfg)
    sources = test.set.sources
    say(f"{run.name}: translating {test.set.name}, {len(sources):,} sentences, on {translator.device}")
    start = time.perf_counter()
    n_best_lists = translator.hypotheses(sources, search, progress=True)
    seconds = time.perf_counter() - start
    say(f"{run.name}: {len(sources):,} sentences in {seconds:.1f} s")
    best = [hypotheses[0] for hypotheses in n_best_lists]
    capped, split = sum(h.capped for h in best), sum(h.source_split > 1 for h in best)
    return BestTranslations([h.text for h in best], capped, split, seconds)


def reusable_translations(
    stored: tuple[dict[str, Any], list[str]], inputs: Mapping[str, Any], test: EvaluationSet
) -> BestTranslations | None:
    """The stored translations where the same weights made them of the same sources by the same search."""
    evaluation, texts = stored
    try:
        same_inputs = all(evaluation[key] == value for key, value in inputs.items())
        if not same_inputs or evaluation["test"]["source_sha256"] != lines_sha256(test.set.sources):
            return None
        capped, split, seconds = (evaluation[key] for key in ("capped", "split", "seconds"))
        return BestTranslations(texts, int(capped), int(split), float(seconds))
    except (KeyError, TypeError, ValueError):
        return None


def evaluation_record(
    test: EvaluationSet, scores: Scores, scoring: ScoringSettings, hypotheses: Sequence[str]
) -> dict[str, Any]:
    """The part of an evaluation that does not depend on who translated."""
    return {
        "test": {
            "name": test.set.name,
            "data": test.data,
            "source_language": test.source_language,
            "target_language": test.target_language if scoring.language is None else scoring.language,
            "sentences": len(hypotheses),
            "source_sha256": lines_sha256(test.set.sources) if test.set.sources else None,
            "references_sha256": [lines_sha256(lines) for lines in test.set.references],
        },
        "hypotheses_sha256": lines_sha256(hypotheses),
        "metrics": scores.metrics,
        "by_length": scores.by_length,
        "bootstrap": scores.bootstrap,
        "warnings": scores.warnings,
    }


def write_evaluation(
    evaluation: dict[str, Any], hypotheses: Sequence[str], folder: Path, stored: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Write both files; an equal stored evaluation stays as it is, its provenance included."""
    name = evaluation["test"]["name"]
    if stored is not None and {**evaluation, "provenance": None} == {**stored, "provenance": None}:
        return dict(stored)
    write_text(folder / f"{name}.hyp.txt", "".join(f"{line}\n" for line in hypotheses))
    write_text(folder / f"{name}.json", to_json(evaluation) + "\n")
    say(f"written: {folder / name}.json and .hyp.txt")
    return evaluation


if __name__ == "__main__":
    main()
