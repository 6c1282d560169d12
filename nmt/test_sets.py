"""What a run is measured on: files, test sets by sacreBLEU's names, or those of its own corpus."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nmt.data.corpus import Corpus, TestSet
from nmt.data.named import named_test_sets, set_names, short_name
from nmt.data.prepared import FOLDER, stored_test_sets
from nmt.data.text import read_lines
from nmt.errors import UserError
from nmt.evaluation.checks import require_equal_counts
from nmt.progress import say
from nmt.run_directory import read_facts

if TYPE_CHECKING:  # torch takes seconds to import, and scoring files needs none
    from nmt.run import Run


class Test(NamedTuple):
    """A test set, and where it is from."""

    set: TestSet
    data: str
    source_language: str
    target_language: str


class Wanted(NamedTuple):
    """What was asked for, by files or by names; nothing: what the run's own settings say."""

    src: str | None
    ref: Sequence[str]
    name: str | None  # one of the corpus's own sets, or what to call the files
    named: Sequence[str]  # sacreBLEU's names
    data_dir: Path  # where prepared corpora are


def chosen_test_sets(corpus: Corpus, names: Sequence[str]) -> dict[str, TestSet]:
    """Those by sacreBLEU's names, in the corpus's languages; without names those of the corpus itself."""
    return named_test_sets(names, corpus.source_language, corpus.target_language) if names else corpus.test_sets()


def run_tests(run: "Run", wanted: Wanted) -> list[Test]:
    """The sets to be translated, all read before the first is; UserError where one is not to be had."""
    corpus = run.corpus()
    languages = (corpus.source_language, corpus.target_language)
    if wanted.src:
        return [Test(read_test(wanted.name, wanted.src, wanted.ref), "files", *languages)]
    names = wanted.named
    if not names and not wanted.name:
        names = set_names((run.config.get("evaluate") or {}).get("test"))
    sets = _chosen_or_kept(run, corpus, names, wanted.data_dir)
    if names:
        return [Test(one, "sacrebleu", *languages) for one in sets.values()]
    name = wanted.name or "test"
    if name not in sets:
        there = f"it has: {', '.join(sets)}" if sets else "it has none"
        raise UserError(
            f"{run.path} has no test set {name} ({there}); give a file pair: test.src=FILE test.ref=FILE, "
            f"or a set of sacreBLEU's: evaluate.test=NAME"
        )
    found = dataclasses.replace(sets[name], name=name)
    counts = {f"the sources of {name}": len(found.sources)}
    counts |= {f"its references {k}": len(stream) for k, stream in enumerate(found.references, start=1)}
    require_equal_counts(counts)
    return [Test(found, corpus.name, *languages)]


def _chosen_or_kept(run: "Run", corpus: Corpus, names: Sequence[str], data_dir: Path) -> dict[str, TestSet]:
    """Where a set is not to be had (no network, files elsewhere): as it was when the training text was prepared."""
    try:
        return chosen_test_sets(corpus, names)
    except UserError:
        folder = data_dir / FOLDER / str(read_facts(run.path).get("prepared"))
        kept = stored_test_sets(folder)
        wanted = [short_name(name) for name in names] or ["test"]
        if not set(wanted) <= set(kept):
            raise
        say(f"the test text is not to be had here; as it was prepared: {folder}")
        return {name: kept[name] for name in wanted}


def read_test(name: str | None, source: str, references: Sequence[str]) -> TestSet:
    """A file pair, or one source with several references; UserError with files and counts where they differ."""
    texts = {path: list(read_lines(path)) for path in (source, *references)}
    require_equal_counts({path: len(lines) for path, lines in texts.items()})
    return TestSet(name or plain_name(source), texts[source], [texts[path] for path in references])


def plain_name(path: str) -> str:
    """news.en.gz -> news.en"""
    return Path(path).name.removesuffix(".gz")
