"""What a run is measured on: files, test sets by sacreBLEU's names, or those of its own corpus."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from omegaconf import DictConfig, ListConfig

from nmt.data.corpus import Corpus, TestSet
from nmt.data.named import named_test_sets, set_names, short_name
from nmt.data.prepared import FOLDER, stored_test_sets
from nmt.data.text import read_lines
from nmt.errors import ConfigError, UserError
from nmt.evaluation.checks import require_equal_counts
from nmt.progress import say
from nmt.run_directory import read_facts


class Test(NamedTuple):
    """A test set, and where it is from."""

    set: TestSet
    data: str
    source_language: str
    target_language: str


class Wanted(NamedTuple):
    """What was asked for, by files or by names; nothing: what the run's own settings say."""

    src: Sequence[str]  # several: as many sets, pooled
    ref: Sequence[str]  # for one source one or more translators; for several one each
    name: str | None  # one of the corpus's own sets, or what to call the files
    named: Sequence[str]  # sacreBLEU's names
    pool: bool  # the named sets as one
    data_dir: Path  # where prepared corpora are


def wanted_tests(cfg: DictConfig) -> Wanted:
    """What the settings of nmt.evaluate ask for."""
    return Wanted(
        paths(cfg.test.src, once=False),
        paths(cfg.test.ref, once=False),
        cfg.test.name,
        set_names(cfg.evaluate.test),
        bool(cfg.evaluate.pool),
        Path(cfg.data_dir),
    )


def paths(value: str | ListConfig | None, once: bool = True) -> list[str]:
    """None, one path, a list, or A,B (unless a file has that very name) -> paths, each once (where places do not
    matter)."""
    if value is None:
        return []
    if not isinstance(value, str):
        found = [str(item) for item in value]
    elif "," in value and not Path(value).expanduser().exists():
        found = [part.strip() for part in value.split(",") if part.strip()]
    else:
        found = [value]
    return list(dict.fromkeys(found)) if once else found


def chosen_test_sets(corpus: Corpus, names: Sequence[str]) -> dict[str, TestSet]:
    """Those by sacreBLEU's names, in the corpus's languages; without names those of the corpus itself."""
    return named_test_sets(names, corpus.source_language, corpus.target_language) if names else corpus.test_sets()


def run_tests(path: Path, config: dict[str, Any], corpus: Corpus, wanted: Wanted) -> list[Test]:
    """The sets that the run at `path` is measured on, all read; UserError where one is not to be had."""
    languages = (corpus.source_language, corpus.target_language)
    if wanted.src:
        return [Test(read_test(wanted.name, wanted.src, wanted.ref), "files", *languages)]
    names = wanted.named
    if not names and not wanted.name:
        names = set_names((config.get("evaluate") or {}).get("test"))
    sets = _chosen_or_kept(path, corpus, names, wanted.data_dir)
    if names:
        chosen = [pooled(list(sets.values()), "+".join(sets))] if wanted.pool else list(sets.values())
        return [Test(one, "sacrebleu", *languages) for one in chosen]
    name = wanted.name or "test"
    if name not in sets:
        there = f"it has: {', '.join(sets)}" if sets else "it has none"
        raise UserError(
            f"{path} has no test set {name} ({there}); give a file pair: test.src=FILE test.ref=FILE, "
            f"or a set of sacreBLEU's: evaluate.test=NAME"
        )
    found = dataclasses.replace(sets[name], name=name)
    counts = {f"the sources of {name}": len(found.sources)}
    counts |= {f"its references {k}": len(stream) for k, stream in enumerate(found.references, start=1)}
    require_equal_counts(counts)
    return [Test(found, corpus.name, *languages)]


def _chosen_or_kept(path: Path, corpus: Corpus, names: Sequence[str], data_dir: Path) -> dict[str, TestSet]:
    """Where a set is not to be had (no network, files elsewhere): as it was when the training text was prepared."""
    try:
        return chosen_test_sets(corpus, names)
    except UserError:
        if not path.exists():
            raise
        folder = data_dir / FOLDER / str(read_facts(path).get("prepared"))
        kept = stored_test_sets(folder)
        wanted = [short_name(name) for name in names] or ["test"]
        if not set(wanted) <= set(kept):
            raise
        say(f"the test text is not to be had here; as it was prepared: {folder}")
        return {name: kept[name] for name in wanted}


def read_test(name: str | None, sources: Sequence[str], references: Sequence[str]) -> TestSet:
    """One source with one reference or more, or as many sources as references, pooled.

    UserError with files and counts where they differ.
    """
    if len(sources) > 1:
        if len(references) != len(sources):
            raise ConfigError(
                f"test.src names {len(sources)} files and test.ref {len(references)}: "
                "pooled sets need one reference each"
            )
        parts = [read_test(None, [source], [reference]) for source, reference in zip(sources, references, strict=True)]
        return pooled(parts, name or "+".join(part.name for part in parts))
    require_one_column([*sources, *references])
    texts = {path: list(read_lines(path)) for path in (*sources, *references)}
    require_equal_counts({path: len(lines) for path, lines in texts.items()})
    return TestSet(name or plain_name(sources[0]), texts[sources[0]], [texts[path] for path in references])


def require_one_column(files: Sequence[str]) -> None:
    """UserError for a table of both sides: its lines would be read as sentences."""
    for path in files:
        if path.removesuffix(".gz").endswith(".tsv"):
            raise UserError(f"{path}: a .tsv holds both sides; give a file for each, for example from: cut -f1 {path}")


def pooled(sets: Sequence[TestSet], name: str) -> TestSet:
    """Test sets one after the other, as one; ConfigError where they have different numbers of references."""
    counts = {one.name: len(one.references) for one in sets}
    if len(set(counts.values())) > 1:
        raise ConfigError(f"sets with different numbers of references cannot be pooled: {counts}")
    streams = zip(*(one.references for one in sets), strict=True)
    return TestSet(
        name,
        [source for one in sets for source in one.sources],
        [[line for part in stream for line in part] for stream in streams],
    )


def plain_name(path: str) -> str:
    """news.en.gz -> news.en"""
    return Path(path).name.removesuffix(".gz")
