"""Program: translations against references.      python -m nmt.evaluate checkpoint=RUN

Or without a model, for translations from anywhere: hypotheses=FILE references=FILE source=FILE.
"""

import dataclasses
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from omegaconf import DictConfig

from nmt.alignments import EvaluationSettings, read_gold, scored_links, with_alignment
from nmt.cli import program, require_kinds, say
from nmt.data.corpus import TestSet
from nmt.data.text import read_lines
from nmt.errors import ConfigError, UserError
from nmt.evaluation.bootstrap import Bootstrap
from nmt.evaluation.checks import require_equal_counts
from nmt.evaluation.report import alignment_lines, text_report
from nmt.evaluation.scores import Scores, score
from nmt.evaluation.store import lines_sha256, read_stored, require_writable, to_json
from nmt.files import file_sha256, write_text
from nmt.record import record
from nmt.test_sets import Test, paths, plain_name, read_test, require_one_column, run_tests, wanted_tests

TYPE_CHECKING = False
if TYPE_CHECKING:  # torch takes seconds to import, and scoring files needs none
    from nmt.decoding.translator import Translator
    from nmt.run import Run


class Scoring(NamedTuple):
    """How to score, whatever is scored."""

    language: str | None  # None: what the run says
    bootstrap: Bootstrap
    ter: bool


class Translations(NamedTuple):
    """What a run made of the sources, best hypotheses only."""

    texts: list[str]
    capped: int
    split: int  # sources translated in parts
    seconds: float


@program("evaluate")
def main(cfg: DictConfig) -> None:
    if cfg.alignment.links:
        print(links_report(cfg))
        return
    for evaluation in evaluations(cfg):
        print(to_json(evaluation, indent=None) if cfg.json else text_report(evaluation), flush=True)


def links_report(cfg: DictConfig) -> str:
    """Word alignments that someone else made, against gold ones."""
    settings = EvaluationSettings(**cfg.alignment)
    if cfg.checkpoint or cfg.hypotheses or not cfg.test.src or not cfg.test.ref:
        raise ConfigError("alignment.links=FILE goes with test.src=FILE test.ref=FILE, the text that is aligned, alone")
    test = Test(read_test(cfg.test.name, paths(cfg.test.src), paths(cfg.test.ref)), "files", "", "")
    gold = read_gold(test, settings)
    assert gold is not None  # the settings name a file
    found = scored_links(test, gold, settings)
    return to_json(found, indent=None) if cfg.json else "\n".join(alignment_lines(found, f"links of {found['system']}"))


def evaluations(cfg: DictConfig) -> Iterator[dict[str, Any]]:
    """One after the other, each written where it belongs before it comes out."""
    scoring = Scoring(cfg.target_language, Bootstrap(cfg.bootstrap.resamples, cfg.bootstrap.seed), cfg.ter)
    checkpoints, files = paths(cfg.checkpoint), paths(cfg.hypotheses)
    check_settings(cfg, checkpoints, files)
    for path in files:
        yield evaluate_file(path, cfg, scoring)
    for path in checkpoints:
        yield from evaluate_run(path, cfg, scoring, several=len(checkpoints) > 1)


def check_settings(cfg: DictConfig, checkpoints: Sequence[str], files: Sequence[str]) -> None:
    """ConfigError, before anything is computed, where the settings do not say what to score against what."""
    texts = ("test.name", "source", "output", "target_language", "alignment.gold", "alignment.links")
    require_kinds(cfg, texts, flags=("ter", "force", "json", "evaluate.pool"))
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
    EvaluationSettings(**cfg.alignment)  # refused now, where it cannot be used
    for path in checkpoints:
        if not Path(path).expanduser().exists():
            raise UserError(f"there is no checkpoint at {path}; give the run directory of a trained system")
    names = [Path(path).resolve().name for path in checkpoints or files]
    if cfg.output and len(set(names)) < len(names):
        raise ConfigError("output= is one folder, and two of the systems have the same name; evaluate them one by one")


def evaluate_file(path: str, cfg: DictConfig, scoring: Scoring) -> dict[str, Any]:
    """Translations that someone else made."""
    references = paths(cfg.references, once=False)
    require_one_column([*references, *([cfg.source] if cfg.source else [])])
    sources = list(read_lines(cfg.source)) if cfg.source else None
    texts = [list(read_lines(reference)) for reference in references]
    hypotheses = list(read_lines(path))
    counts = {path: len(hypotheses), **dict(zip(references, map(len, texts), strict=True))}
    require_equal_counts(counts if sources is None else {**counts, cfg.source: len(sources)})
    if sources is None:
        say("no source= given: no scores by length")
    test = Test(TestSet(cfg.test.name or plain_name(references[0]), sources or [], texts), "files", "", "")
    scores = score(hypotheses, texts, sources, scoring.language or "", scoring.bootstrap, scoring.ter)
    name = plain_name(path)
    evaluation = {
        **dict.fromkeys(("seed", "updates", "parameters", "search", "capped", "seconds")),
        **assemble(test, scores, scoring, hypotheses),
        "system": name,
        "run": name,
        "record": record(),
    }
    if not cfg.output:
        return evaluation
    folder = Path(cfg.output).expanduser()
    require_writable(folder)
    write_text(folder / f"{name}.json", to_json(evaluation) + "\n")
    say(f"written: {folder / name}.json")
    return evaluation


def evaluate_run(path: str, cfg: DictConfig, scoring: Scoring, several: bool) -> Iterator[dict[str, Any]]:
    """Translate test sets with a run, unless that was done before, and score them one after the other."""
    from nmt.run import load_run

    run = load_run(path)
    folder = run.path / "evaluation"
    if cfg.output:
        folder = Path(cfg.output).expanduser() / (run.path.resolve().name if several else "")
    tests = run_tests(run.path, run.config, run.corpus(), wanted_tests(cfg))
    settings = EvaluationSettings(**cfg.alignment)
    gold = [read_gold(test, settings) for test in tests]
    make = partial(translator_of, run, cfg)
    for test, true in zip(tests, gold, strict=True):
        evaluation = evaluate_test(run, test, cfg, scoring, folder)
        yield with_alignment(evaluation, run, test, true, settings, folder, make, cfg.force) if true else evaluation


def evaluate_test(run: "Run", test: Test, cfg: DictConfig, scoring: Scoring, folder: Path) -> dict[str, Any]:
    """One set: its translations, stored or new, and their scores."""
    search = search_values(cfg)
    made_by = {
        "weights_sha256": file_sha256(run.weights),
        "max_src_pieces": cfg.max_src_pieces or run.config["batching"]["max_pieces"],
        "search": {key: value for key, value in search.items() if key != "batch"},
    }
    stored = read_stored(folder, test.set.name)
    translations = None if cfg.force or stored is None else reusable(stored, made_by, test)
    if translations:
        say(f"{run.name}: translations of {test.set.name} are there ({folder}); translated again with force=true")
    else:
        require_writable(folder)
        translations = translate(run, test, cfg, search)

    language = scoring.language if scoring.language is not None else test.target_language
    scores = score(translations.texts, test.set.references, test.set.sources, language, scoring.bootstrap, scoring.ter)
    evaluation = {
        "system": run.name,
        "run": run.path.resolve().name,
        "seed": run.seed,
        "updates": run.updates,
        "parameters": run.parameters,
        **assemble(test, scores, scoring, translations.texts),
        **made_by,
        "capped": translations.capped,
        "split": translations.split,
        "seconds": round(translations.seconds, 2),
        "record": record(),
    }
    if translations.split:
        evaluation["warnings"].append(
            f"{translations.split:,} sources have more than {made_by['max_src_pieces']} pieces; "
            f"they were translated in parts"
        )
    return keep(evaluation, translations.texts, folder, stored[0] if stored else None)


def search_values(cfg: DictConfig) -> dict[str, Any]:
    """beam, length_penalty and the others, checked; evaluation wants one translation a sentence."""
    from nmt.decoding.search import SearchSettings

    names = [field.name for field in dataclasses.fields(SearchSettings)]
    return dataclasses.asdict(SearchSettings(**{**{name: cfg[name] for name in names}, "n_best": 1}))


def translator_of(run: "Run", cfg: DictConfig) -> "Translator":
    import torch

    from nmt.run import choose_device

    if cfg.threads:
        torch.set_num_threads(cfg.threads)
    return run.translator(choose_device(cfg.device), cfg.max_src_pieces)


def translate(run: "Run", test: Test, cfg: DictConfig, search: Mapping[str, Any]) -> Translations:
    """All the sources, with a bar on a terminal and one line at the start and at the end anywhere."""
    from nmt.decoding.search import SearchSettings

    translator = translator_of(run, cfg)
    sources = test.set.sources
    say(f"{run.name}: translating {test.set.name}, {len(sources):,} sentences, on {translator.device}")
    start = time.perf_counter()
    found = translator.hypotheses(sources, SearchSettings(**search), progress=True)
    seconds = time.perf_counter() - start
    say(f"{run.name}: {len(sources):,} sentences in {seconds:.1f} s")
    best = [hypotheses[0] for hypotheses in found]
    capped, split = sum(h.capped for h in best), sum(h.source_split > 1 for h in best)
    return Translations([h.text for h in best], capped, split, seconds)


def reusable(stored: tuple[dict[str, Any], list[str]], made_by: Mapping[str, Any], test: Test) -> Translations | None:
    """The stored translations where the same weights made them of the same sources by the same search."""
    evaluation, texts = stored
    try:
        same = all(evaluation[key] == value for key, value in made_by.items())
        if not same or evaluation["test"]["source_sha256"] != lines_sha256(test.set.sources):
            return None
        return Translations(texts, evaluation["capped"], evaluation["split"], evaluation["seconds"])
    except (KeyError, TypeError):
        return None


def assemble(test: Test, scores: Scores, scoring: Scoring, hypotheses: Sequence[str]) -> dict[str, Any]:
    """What every evaluation says, whoever translated."""
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


def keep(
    evaluation: dict[str, Any], hypotheses: Sequence[str], folder: Path, stored: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Write both files; where the stored evaluation says the same, it stays, and its record with it."""
    name = evaluation["test"]["name"]
    if stored is not None and {**evaluation, "record": None} == {**stored, "record": None}:
        with suppress(OSError):  # a read-only folder
            (folder / f"{name}.json").touch()  # newer than the weights: this evaluation is theirs
        return dict(stored)
    write_text(folder / f"{name}.hyp.txt", "".join(f"{line}\n" for line in hypotheses))
    write_text(folder / f"{name}.json", to_json(evaluation) + "\n")
    say(f"written: {folder / name}.json and .hyp.txt")
    return evaluation


if __name__ == "__main__":
    main()
