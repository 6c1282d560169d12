"""Test sets: from files, by sacreBLEU's names (wmt14/full; fetched and kept by sacreBLEU), or those of a corpus."""

import dataclasses
import difflib
import errno
import json
import logging
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import URLError

from filelock import FileLock

from nmt.data.corpus import Corpus, TestSet
from nmt.data.text import read_lines, require_equal_counts
from nmt.errors import ConfigError, UserError
from nmt.progress import say
from nmt.settings import EvaluateConfig

NETWORK_TIMEOUT = 30.0  # seconds without an answer until the network counts as out of reach
PREPARED_FOLDER = "prepared"  # inside data_dir: where preparation keeps its folders
STORED_TEST_SETS = "tests.json"  # in each of these


class EvaluationSet(NamedTuple):
    """A test set, and where it comes from: files, sacrebleu, or the name of its corpus."""

    set: TestSet
    data: str
    source_language: str
    target_language: str


class Selection(NamedTuple):
    """Test sets selected by files or by names; where neither is given, the settings of the run decide."""

    src: Sequence[str]  # several: as many sets, pooled
    ref: Sequence[str]  # for one source one or more translators; for several one each
    name: str | None  # one of the sets of the corpus, or a name for the files
    sacrebleu_names: Sequence[str]
    pool: bool  # the named sets as one
    data_dir: Path  # where prepared corpora are


def read_selection(config: EvaluateConfig) -> Selection:
    """What the settings of nmt.evaluate select."""
    return Selection(
        path_list(config.test.src, unique=False),
        path_list(config.test.ref, unique=False),
        config.test.name,
        set_names(config.evaluate.test),
        config.evaluate.pool,
        Path(config.data_dir),
    )


def path_list(value: str | Sequence[Any] | None, unique: bool = True) -> list[str]:
    """None, one path, a list, or A,B (unless a file has that very name) -> paths; `unique` drops repeated ones."""
    if value is None:
        return []
    items = [value] if isinstance(value, str) else [str(item) for item in value]
    if isinstance(value, str) and "," in value and not Path(value).expanduser().exists():
        items = [part.strip() for part in value.split(",") if part.strip()]
    return list(dict.fromkeys(items)) if unique else items


def select_test_sets(corpus: Corpus, names: Sequence[str]) -> dict[str, TestSet]:
    """Those by sacreBLEU's names, in the corpus's languages; without names those of the corpus itself."""
    return sacrebleu_test_sets(names, corpus.source_language, corpus.target_language) if names else corpus.test_sets()


def evaluation_sets(
    path: Path,
    config: Mapping[str, Any],
    make_corpus: Callable[[], Corpus],
    selection: Selection,
    read_data_facts: Callable[[Path], Mapping[str, Any]],
) -> list[EvaluationSet]:
    """The sets that the run at `path` is evaluated on, all read; UserError where one is not available.

    `read_data_facts(path)` names the prepared folder of the run: where a set is not available (no network, files
    elsewhere), it is read as it was when the training text was prepared.
    """
    if selection.src:  # nothing of the run's own corpus is built
        facts = {**config["data"], **read_data_facts(path)} if path.exists() else config["data"]
        languages = tuple(str(facts.get(f"{side}_language") or facts.get(side) or "") for side in ("source", "target"))
        return [EvaluationSet(read_test_set(selection.name, selection.src, selection.ref), "files", *languages)]
    corpus = make_corpus()
    languages = (corpus.source_language, corpus.target_language)
    names = selection.sacrebleu_names
    if not names and not selection.name:
        names = set_names((config.get("evaluate") or {}).get("test"))
    try:
        sets = select_test_sets(corpus, names)
    except UserError:
        folder = Path(str(read_data_facts(path).get("prepared"))).name if path.exists() else ""
        stored = stored_test_sets(selection.data_dir / PREPARED_FOLDER / folder)
        short_names = [short_name(name) for name in names] or ["test"]
        if not set(short_names) <= set(stored):
            raise
        say(
            f"the test text is not available here; read as it was prepared: "
            f"{selection.data_dir / PREPARED_FOLDER / folder}"
        )
        sets = {name: stored[name] for name in short_names}
    if names:
        chosen = [pool_test_sets(list(sets.values()), "+".join(sets))] if selection.pool else list(sets.values())
        return [EvaluationSet(test_set, "sacrebleu", *languages) for test_set in chosen]
    name = selection.name or "test"
    if name not in sets:
        available = f"it has: {', '.join(sets)}" if sets else "it has none"
        raise UserError(
            f"{path} has no test set {name} ({available}); give a file pair: test.src=FILE test.ref=FILE, "
            f"or a set of sacreBLEU's: evaluate.test=NAME"
        )
    test_set = dataclasses.replace(sets[name], name=name)
    counts = {f"the sources of {name}": len(test_set.sources)}
    counts |= {f"its references {k}": len(stream) for k, stream in enumerate(test_set.references, start=1)}
    require_equal_counts(counts)
    return [EvaluationSet(test_set, corpus.name, *languages)]


def read_test_set(name: str | None, sources: Sequence[str], references: Sequence[str]) -> TestSet:
    """One source with one reference or more, or as many sources as references, pooled.

    UserError with files and counts where they differ.
    """
    if len(sources) > 1:
        if len(references) != len(sources):
            raise ConfigError(
                f"test.src names {len(sources)} files and test.ref {len(references)}: "
                "pooled sets need one reference each"
            )
        parts = [read_test_set(None, [source], [ref]) for source, ref in zip(sources, references, strict=True)]
        return pool_test_sets(parts, name or "+".join(part.name for part in parts))
    require_one_column([*sources, *references])
    texts = {path: list(read_lines(path)) for path in (*sources, *references)}
    require_equal_counts({path: len(lines) for path, lines in texts.items()})
    return TestSet(name or name_without_gz(sources[0]), texts[sources[0]], [texts[path] for path in references])


def require_one_column(files: Sequence[str]) -> None:
    """UserError for a table of both sides: its lines would be read as sentences."""
    for path in files:
        if path.removesuffix(".gz").endswith(".tsv"):
            raise UserError(f"{path}: a .tsv holds both sides; give a file for each, for example from: cut -f1 {path}")


def pool_test_sets(sets: Sequence[TestSet], name: str) -> TestSet:
    """Test sets one after the other, as one; ConfigError where they have different numbers of references."""
    counts = {test_set.name: len(test_set.references) for test_set in sets}
    if len(set(counts.values())) > 1:
        raise ConfigError(f"sets with different numbers of references cannot be pooled: {counts}")
    streams = zip(*(test_set.references for test_set in sets), strict=True)
    return TestSet(
        name,
        [source for test_set in sets for source in test_set.sources],
        [[line for part in stream for line in part] for stream in streams],
    )


def name_without_gz(path: str) -> str:
    """news.en.gz -> news.en"""
    return Path(path).name.removesuffix(".gz")


def stored_test_sets(folder: Path) -> dict[str, TestSet]:
    """The test sets as they were when the folder was made, for a machine without the corpus; {} without a folder."""
    try:
        stored = json.loads((folder / STORED_TEST_SETS).read_text(encoding="utf-8"))
    except OSError:
        return {}
    return {name: TestSet(**content) for name, content in stored.items()}


def set_names(value: str | Iterable[str] | None) -> list[str]:
    """None, wmt14/full, "wmt13,wmt14/full" or a list -> names, each once."""
    listed = (value or "").split(",") if value is None or isinstance(value, str) else value
    return list(dict.fromkeys(name.strip() for name in listed if name.strip()))


def short_name(name: str) -> str:
    """The name of a set where it names files: wmt14/full -> wmt14-full."""
    return name.replace("/", "-")


def sacrebleu_test_sets(names: Sequence[str], source: str, target: str) -> dict[str, TestSet]:
    """By their short names: the sources as they are, and all the references that sacreBLEU scores against.

    Raises ConfigError for a set or a pair of languages that sacreBLEU does not know, before anything is fetched;
    UserError where one cannot be fetched, or is damaged on disk.
    """
    sets = {}
    for dataset in [_find_dataset(name, source, target) for name in names]:
        name = short_name(dataset.name)
        files = _fetch(dataset, f"{source}-{target}")
        try:
            texts = [list(read_lines(file)) for file in files]
        except UserError as error:
            raise _damaged(dataset.name, str(error)) from None
        if not texts[0] or len({len(lines) for lines in texts}) > 1 or len(texts) < 2:
            counts = (f"{Path(file).name} has {len(lines):,} lines" for file, lines in zip(files, texts, strict=True))
            raise _damaged(dataset.name, ", ".join(counts))
        sets[name] = TestSet(name, texts[0], texts[1:])
    return sets


def _find_dataset(name: str, source: str, target: str) -> Any:
    """sacreBLEU's own object. Nothing is fetched."""
    from sacrebleu.dataset import DATASETS

    if name not in DATASETS:
        near = difflib.get_close_matches(name, DATASETS, n=5, cutoff=0.5)
        listed = f"the nearest: {', '.join(near)}" if near else f"it has: {', '.join(DATASETS)}"
        raise ConfigError(f"sacreBLEU has no test set {name}; {listed}")
    if not source or not target:
        raise ConfigError(
            f"{name} exists for pairs of languages, and the corpus does not say which it has; "
            f"give data.source and data.target, or files: test.src=FILE test.ref=FILE"
        )
    dataset = DATASETS[name]
    if f"{source}-{target}" not in dataset.langpairs:
        raise ConfigError(f"{name} has no pair {source}-{target}; it has: {', '.join(dataset.langpairs)}")
    return dataset


def _fetch(dataset: Any, pair: str) -> list[str]:
    """The source's file and those of the references.

    One process at a time: sacreBLEU takes a file that another one is still writing for a whole one.
    """
    lock = FileLock(str(_cache() / f".{short_name(dataset.name)}.lock"))
    with suppress(OSError):  # a folder that cannot be written is not being written
        _cache().mkdir(parents=True, exist_ok=True)
        lock.acquire()
    with _captured_log() as errors:
        try:
            return [dataset.get_source_file(pair), *dataset.get_reference_files(pair)]
        except (Exception, SystemExit) as error:  # whatever readers of archives and foreign XML raise
            reason = " ".join(errors) or " ".join(str(error).split()) or type(error).__name__
            if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS):
                raise UserError(f"cannot write into {_cache()} ({reason}); SACREBLEU=FOLDER names another") from None
            if isinstance(error, URLError | HTTPException | ConnectionError | TimeoutError):
                raise UserError(
                    f"cannot fetch {dataset.name} ({reason}); sacreBLEU keeps it in {_cache() / dataset.name}: copy "
                    f"that folder from a machine with a network, or set the variable SACREBLEU to another place"
                ) from None
            raise _damaged(dataset.name, reason) from None
        finally:
            lock.release()


def _damaged(name: str, reason: str) -> UserError:
    return UserError(f"{name} is damaged in sacreBLEU's folder ({reason}); delete {_cache() / name} and start again")


def _cache() -> Path:
    from sacrebleu.utils import SACREBLEU_DIR

    return Path(SACREBLEU_DIR)


@contextmanager
def _captured_log() -> Iterator[list[str]]:
    """sacreBLEU logs what is wrong with a file and exits; and it waits for a server as long as the system lets it."""
    errors: list[str] = []

    def collect(record: logging.LogRecord) -> bool:
        if record.levelno >= logging.ERROR:
            errors.append(record.getMessage())
        return record.levelno < logging.ERROR

    logger, timeout = logging.getLogger("sacrebleu"), socket.getdefaulttimeout()
    logger.addFilter(collect)
    socket.setdefaulttimeout(NETWORK_TIMEOUT)
    try:
        yield errors
    finally:
        socket.setdefaulttimeout(timeout)
        logger.removeFilter(collect)
