"""Program: translations against references.      python -m nmt.evaluate checkpoint=RUN

Or without a model, for translations from anywhere: hypotheses=FILE references=FILE source=FILE.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from nmt.evaluation.attention_alignment import add_alignment_scores, layer_index, read_gold_alignments
from nmt.evaluation.evaluation_report import score_translations, text_report
from nmt.evaluation.stored import lines_sha256, read_stored, require_writable, to_json, write_with_lines
from nmt.files import file_sha256, write_text
from nmt.loading import Run, choose_device, load_run, longest_source
from nmt.provenance import provenance
from nmt.run import read_data_facts
from nmt.settings import EvaluateConfig, SearchSettings, further_metrics, search_settings

if TYPE_CHECKING:  # torch takes seconds to import, and scoring files needs none
    from nmt.decoding.translator import Translator


@program("evaluate")
def main(composed: Composed) -> None:
    config: EvaluateConfig = composed.settings
    for evaluation in evaluations(config, composed.trust):
        print(to_json(evaluation, indent=None) if config.as_json else text_report(evaluation), flush=True)


def evaluations(cfg: EvaluateConfig, trust: Sequence[str]) -> Iterator[dict[str, Any]]:
    """One after the other, each written before it is yielded."""
    checkpoints, files = path_list(cfg.checkpoint), path_list(cfg.hypotheses)
    check_settings(cfg, checkpoints, files)
    for path in files:
        yield evaluate_file(path, cfg)
    for path in checkpoints:
        yield from evaluate_run(path, cfg, trust, in_subfolder=len(checkpoints) > 1)


def check_settings(cfg: EvaluateConfig, checkpoints: Sequence[str], files: Sequence[str]) -> None:
    """ConfigError, before anything is computed, where the settings do not say what to score against what."""
    test, names, references = cfg.test, cfg.evaluate.test, cfg.references
    pair = test.src or test.ref
    own_set = pair or test.name
    systems = [Path(path).resolve().name for path in checkpoints or files]
    wrong = {
        "what to evaluate? give checkpoint=RUN, or hypotheses=FILE references=FILE": not systems,
        "give checkpoint=RUN, or hypotheses=FILE references=FILE, not both": checkpoints and files,
        "hypotheses=FILE needs references=FILE, or references=[FILE,FILE] for several translators": (
            files and not references
        ),
        "test.src and test.ref go with checkpoint=; beside hypotheses= give source= and references=": files and pair,
        "evaluate.test goes with checkpoint=; beside hypotheses= give source= and references=": files and names,
        "evaluate.test names test sets of sacreBLEU's; leave test.src, test.ref and test.name away": names and own_set,
        "references= and source= go with hypotheses=; beside checkpoint= give test.src=, test.ref=": (
            checkpoints and (references or cfg.source)
        ),
        "test.src=FILE needs test.ref=FILE; to translate alone: python -m nmt.translate": test.src and not test.ref,
        "test.ref=FILE needs test.src=FILE, the text to be translated": test.ref and not test.src,
        f"test.name={test.name}: it names a file in a folder; leave / out": "/" in (test.name or ""),
        "alignment.gold goes with checkpoint=: attention is compared with it": files and cfg.alignment.gold,
    }
    if messages := [message for message, is_wrong in wrong.items() if is_wrong]:
        raise ConfigError(messages[0])
    for path in checkpoints:
        if not Path(path).expanduser().exists():
            raise UserError(f"there is no checkpoint at {path}; give the run directory of a trained system")
    if cfg.output and len(set(systems)) < len(systems):
        raise ConfigError("output= is one folder, and two of the systems have the same name; evaluate them one by one")


def evaluate_file(path: str, cfg: EvaluateConfig) -> dict[str, Any]:
    """Scores of translations in a file, from any program."""
    references = path_list(cfg.references, unique=False)
    files = [*references, *([cfg.source] if cfg.source else [])]
    require_one_column(files)
    texts = {file: list(read_lines(file)) for file in (path, *files)}
    require_equal_counts({file: len(lines) for file, lines in texts.items()})
    if not cfg.source:
        say("no source= given: no scores by length")
    sources = texts[cfg.source] if cfg.source else []
    test = TestSet(cfg.test.name or name_without_gz(references[0]), sources, [texts[file] for file in references])
    name = name_without_gz(path)
    evaluation = {
        **dict.fromkeys(("seed", "updates", "parameters", "search", "capped", "seconds")),
        **score_record(EvaluationSet(test, "files", "", ""), texts[path], cfg),
        "system": name,
        "run": name,
        "provenance": provenance(),
    }
    if cfg.output:
        folder = Path(cfg.output).expanduser()
        require_writable(folder)
        write_text(folder / f"{name}.json", to_json(evaluation) + "\n")
        say(f"written: {folder / name}.json")
    return evaluation


def evaluate_run(path: str, cfg: EvaluateConfig, trust: Sequence[str], in_subfolder: bool) -> Iterator[dict[str, Any]]:
    """Translate test sets with a run, unless stored translations can be used, and score them one after the other."""
    import torch

    if cfg.threads:
        torch.set_num_threads(cfg.threads)
    run = load_run(path, trust)
    folder = run.path / "evaluation"
    if cfg.output:
        folder = Path(cfg.output).expanduser() / (run.path.resolve().name if in_subfolder else "")

    def make_translator() -> "Translator":
        return run.translator(choose_device(cfg.device), cfg.max_src_pieces)

    make_corpus = partial(run.corpus, Path(cfg.data_dir))
    tests = evaluation_sets(run.path, run.config, make_corpus, read_selection(cfg), read_data_facts)
    gold_alignments = [read_gold_alignments(test.set, cfg.alignment) for test in tests]
    if any(gold_alignments) and cfg.alignment.layer != "mean":  # refused before anything is translated
        from nmt.decoding.forced_alignment import attention_shape

        if shape := attention_shape(make_translator()):
            layer_index(cfg.alignment, shape)
    weights_sha256 = file_sha256(run.weights)
    for test, gold in zip(tests, gold_alignments, strict=True):
        evaluation = evaluate_test(run, weights_sha256, test, cfg, folder, make_translator)
        if gold:
            evaluation = add_alignment_scores(
                evaluation, test.set, gold, cfg.alignment, folder, make_translator, provenance, cfg.force
            )
        yield evaluation


def evaluate_test(
    run: Run,
    weights_sha256: str,
    test: EvaluationSet,
    cfg: EvaluateConfig,
    folder: Path,
    make_translator: Callable[[], "Translator"],
) -> dict[str, Any]:
    """One set: its translations, stored or new, and their scores.

    An equal evaluation that is there already stays as it is, its provenance included.
    """
    name = test.set.name
    search = search_settings(cfg, n_best=1)  # evaluation wants one translation a sentence
    inputs = {
        "weights_sha256": weights_sha256,
        "max_src_pieces": cfg.max_src_pieces or longest_source(run.path, run.config),
        "search": {key: value for key, value in search.model_dump().items() if key != "batch"},
    }
    stored, hypotheses = read_stored(folder, name) or ({}, [])
    facts = {} if cfg.force else reusable_facts(stored, inputs, test)
    if facts:
        say(f"{run.name}: translations of {name} are there ({folder}); translated again with force=true")
    else:
        require_writable(folder)
        hypotheses, facts = translate_test(run.name, test.set, make_translator(), search)
    evaluation = {
        "system": run.name,
        "run": run.path.resolve().name,
        "seed": run.seed,
        "updates": run.updates,
        "parameters": run.parameters,
        **score_record(test, hypotheses, cfg),
        **inputs,
        **facts,
        "provenance": provenance(),
    }
    if facts["split"]:
        limit = inputs["max_src_pieces"]
        evaluation["warnings"].append(
            f"{facts['split']:,} sources have more than {limit} pieces; they were translated in parts"
        )
    if {**evaluation, "provenance": None} == {**stored, "provenance": None}:
        return stored
    write_with_lines(folder, name, "hyp.txt", hypotheses, evaluation)
    return evaluation


def reusable_facts(stored: Mapping[str, Any], inputs: Mapping[str, Any], test: EvaluationSet) -> dict[str, Any]:
    """What is stored of the translating where the same weights translated the same sources by the same search."""
    try:
        same_inputs = all(stored[key] == value for key, value in inputs.items())
        if not same_inputs or stored["test"]["source_sha256"] != lines_sha256(test.set.sources):
            return {}
        return {"capped": int(stored["capped"]), "split": int(stored["split"]), "seconds": float(stored["seconds"])}
    except (KeyError, TypeError, ValueError):
        return {}


def translate_test(
    system: str, test: TestSet, translator: "Translator", search: SearchSettings
) -> tuple[list[str], dict[str, Any]]:
    """The best translation of each source; how many were capped, and how many sources translated in parts."""
    say(f"{system}: translating {test.name}, {len(test.sources):,} sentences, on {translator.device}")
    start = time.perf_counter()
    best = [hypotheses[0] for hypotheses in translator.hypotheses(test.sources, search, progress=True)]
    seconds = time.perf_counter() - start
    say(f"{system}: {len(test.sources):,} sentences in {seconds:.1f} s")
    capped, split = sum(h.capped for h in best), sum(h.source_split > 1 for h in best)
    return [h.text for h in best], {"capped": capped, "split": split, "seconds": round(seconds, 2)}


def score_record(test: EvaluationSet, hypotheses: Sequence[str], cfg: EvaluateConfig) -> dict[str, Any]:
    """The part of an evaluation that does not depend on who translated: the test set and the scores."""
    sources, references = test.set.sources, test.set.references
    language = test.target_language if cfg.target_language is None else cfg.target_language
    scores = score_translations(hypotheses, references, sources or None, language, cfg.bootstrap, further_metrics(cfg))
    return {
        "test": {
            "name": test.set.name,
            "data": test.data,
            "source_language": test.source_language,
            "target_language": language,
            "sentences": len(hypotheses),
            "source_sha256": lines_sha256(sources) if sources else None,
            "references_sha256": [lines_sha256(lines) for lines in references],
        },
        "hypotheses_sha256": lines_sha256(hypotheses),
        **scores._asdict(),
    }


if __name__ == "__main__":
    main()
