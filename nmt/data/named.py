"""Test sets by sacreBLEU's names (wmt14/full), fetched by sacreBLEU and kept where it keeps them."""

import difflib
import errno
import logging
import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock

from nmt.data.corpus import TestSet
from nmt.data.text import read_lines
from nmt.errors import ConfigError, UserError

PATIENCE = 30.0  # seconds without an answer until the network counts as out of reach


def set_names(value: str | Iterable[str] | None) -> list[str]:
    """None, wmt14/full, "wmt13,wmt14/full" or a list -> names, each once."""
    listed = (value or "").split(",") if value is None or isinstance(value, str) else value
    return list(dict.fromkeys(name.strip() for name in listed if name.strip()))


def short_name(name: str) -> str:
    """What a set is called here, where it names files: wmt14/full -> wmt14-full."""
    return name.replace("/", "-")


def named_test_sets(names: Sequence[str], source: str, target: str) -> dict[str, TestSet]:
    """By what they are called here; all names are looked at before anything is fetched."""
    for name in names:
        _known(name, source, target)
    sets = [named_test_set(name, source, target) for name in names]
    return {one.name: one for one in sets}


def named_test_set(name: str, source: str, target: str) -> TestSet:
    """The sources as they are, and all the references that sacreBLEU scores against.

    Raises ConfigError for a set or a pair of languages that sacreBLEU does not know; UserError where it cannot be
    fetched, or is damaged on disk.
    """
    dataset = _known(name, source, target)
    files = _fetched(dataset, f"{source}-{target}")
    try:
        texts = [list(read_lines(file)) for file in files]
    except UserError as error:
        raise _damaged(name, str(error)) from None
    if not texts[0] or len({len(lines) for lines in texts}) > 1 or len(texts) < 2:
        raise _damaged(
            name, ", ".join(f"{Path(f).name} has {len(t):,} lines" for f, t in zip(files, texts, strict=True))
        )
    return TestSet(short_name(name), texts[0], texts[1:])


def _known(name: str, source: str, target: str) -> Any:
    """sacreBLEU's own object. Nothing is fetched."""
    from sacrebleu.dataset import DATASETS

    if name not in DATASETS:
        near = difflib.get_close_matches(name, DATASETS, n=5, cutoff=0.5)
        listed = f"the nearest: {', '.join(near)}" if near else f"it has: {', '.join(DATASETS)}"
        raise ConfigError(f"sacreBLEU has no test set {name}; {listed}")
    if not source or not target:
        raise ConfigError(
            f"{name} is there for pairs of languages, and the corpus does not say which its are; "
            f"give data.source and data.target, or files: test.src=FILE test.ref=FILE"
        )
    dataset = DATASETS[name]
    if f"{source}-{target}" not in dataset.langpairs:
        raise ConfigError(f"{name} has no pair {source}-{target}; it has: {', '.join(dataset.langpairs)}")
    return dataset


def _fetched(dataset: Any, pair: str) -> list[str]:
    """The source's file and those of the references."""
    with _alone(dataset.name), _listening() as said:
        try:
            return [dataset.get_source_file(pair), *dataset.get_reference_files(pair)]
        except (Exception, SystemExit) as error:  # whatever readers of archives and foreign XML raise
            reason = " ".join(said) or " ".join(str(error).split()) or type(error).__name__
            if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS):
                raise UserError(f"cannot write into {_cache()} ({reason}); SACREBLEU=FOLDER names another") from None
            if _is_of_network(error):
                raise UserError(
                    f"cannot fetch {dataset.name} ({reason}); sacreBLEU keeps it in {_cache() / dataset.name}: copy "
                    f"that folder from a machine with a network, or set the variable SACREBLEU to another place"
                ) from None
            raise _damaged(dataset.name, reason) from None


def _is_of_network(error: BaseException) -> bool:
    from http.client import HTTPException
    from urllib.error import URLError

    return isinstance(error, URLError | HTTPException | ConnectionError | TimeoutError)


def _damaged(name: str, reason: str) -> UserError:
    return UserError(f"{name} is damaged in sacreBLEU's folder ({reason}); delete {_cache() / name} and start again")


def _cache() -> Path:
    from sacrebleu.utils import SACREBLEU_DIR

    return Path(SACREBLEU_DIR)


@contextmanager
def _alone(name: str) -> Iterator[None]:
    """One process at a time: sacreBLEU takes a file that another one is still writing for a whole one."""
    lock = FileLock(str(_cache() / f".{short_name(name)}.lock"))
    with suppress(OSError):  # a folder that cannot be written is not being written
        _cache().mkdir(parents=True, exist_ok=True)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


class _Kept(logging.Handler):
    """Keeps what is logged instead of showing it."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


@contextmanager
def _listening() -> Iterator[list[str]]:
    """sacreBLEU logs what is wrong with a file and exits; and it waits for a server as long as the system lets it."""
    kept, logger, before = _Kept(), logging.getLogger("sacrebleu"), socket.getdefaulttimeout()
    propagates = logger.propagate
    logger.addHandler(kept)
    logger.propagate = False
    socket.setdefaulttimeout(PATIENCE)
    try:
        yield kept.messages
    finally:
        socket.setdefaulttimeout(before)
        logger.removeHandler(kept)
        logger.propagate = propagates
