"""A dataset opened with `datasets`: fetched where it is on the hub, converted once to Arrow files, read memory-mapped.

`datasets` keeps both in its own cache (HF_HOME), shared by all programs. What it logs is kept for our own message.
"""

import logging
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from nmt.data.hub.errors import Heard, explain
from nmt.data.hub.layout import Request, local_path, request_for, unknown_name
from nmt.errors import ConfigError, UserError
from nmt.progress import say

ROWS = 10_000  # in memory at a time
CONNECT = 5.0  # seconds until a hub that does not answer counts as out of reach


@dataclass(frozen=True)
class Opened:
    """One configuration of a dataset. Nothing is looked for before it is asked for; errors are UserErrors."""

    path: str
    name: str | None
    revision: str | None
    columns: tuple[str, str]
    cache_dir: str | None = None

    @cached_property
    def local(self) -> Path | None:
        """The file or folder; None for a name on the hub."""
        return local_path(self.path)

    @cached_property
    def builder(self) -> Any:
        """A `datasets.DatasetBuilder` that knows its files; they are neither fetched nor converted yet."""
        with self._explained() as heard, _only_cache_if_unreachable(heard, self.local is None):
            request = request_for(self.path, self.name, self.revision)
            builder = self._load(request)
            if builder.name == "csv":  # pandas would take the words NA, None and null for no text, and 7 for a number
                converters = dict.fromkeys(self.columns, str)
                builder = self._load(request, na_filter=False, converters=converters)
            return _bounded(builder)

    @cached_property
    def pairs(self) -> dict[str, int]:
        """Rows of each split. Fetches and converts what is not in the cache yet."""
        builder = self.builder
        if not Path(builder.cache_dir).exists():
            configuration = f" ({self.name})" if self.name else ""
            say(f"{self.path}{configuration}: fetched and converted once, into {builder.cache_dir}")
        with self._explained():
            builder.download_and_prepare()
        return {name: split.num_examples for name, split in builder.info.splits.items()}

    def split(self, key: str, name: str) -> Any:
        """The `datasets.Dataset` of a split, or of an expression such as train[:1%]; `key` is the setting to blame."""
        there = self.pairs
        with self._explained():
            try:
                return self.builder.as_dataset(name)
            except (ValueError, AssertionError) as error:
                reason = f"{self.path} has no such split" if "[" not in name else " ".join(str(error).split())
                raise ConfigError(f"data.{key}={name}: {reason}; there are: {', '.join(there)}") from None

    def files(self) -> list[Path]:
        """The data files where the dataset is a local one, sorted."""
        listed = self.builder.config.data_files or {}
        return sorted({Path(str(file)) for files in listed.values() for file in files})

    def _load(self, request: Request, **settings: Any) -> Any:
        from datasets import config, load_dataset_builder

        if request.data_dir and self.local is None and not config.HF_HUB_OFFLINE:
            there = _folders(request)
            if request.data_dir not in there:
                raise unknown_name(self.path, self.name, there)
        try:
            return load_dataset_builder(**request._asdict(), **settings, cache_dir=self.cache_dir)
        except ValueError as error:
            if request.name is None or request.data_files or "['default']" not in str(error):
                raise
        return self._load(request._replace(name=None, data_dir=request.name), **settings)  # a folder, not in the card

    @contextmanager
    def _explained(self) -> Iterator[Heard]:
        with _quiet() as heard:
            try:
                yield heard
            except UserError:
                raise
            except Exception as error:  # a library between us and the network, disks and foreign files may raise any
                raise explain(error, self.path, self.name, self.local is None, heard) from None


@contextmanager
def _only_cache_if_unreachable(heard: Heard, on_hub: bool) -> Iterator[None]:
    """Ask the hub once, and quickly: `datasets` would try for half a minute before it looks into its cache."""
    from datasets import config

    before = config.HF_HUB_OFFLINE
    if on_hub:
        heard.offline = (
            "HF_HUB_OFFLINE or HF_DATASETS_OFFLINE is set" if before else _why_unreachable(config.HF_ENDPOINT)
        )
        config.HF_HUB_OFFLINE = bool(heard.offline)
    try:
        yield
    finally:
        config.HF_HUB_OFFLINE = before


def _why_unreachable(url: str) -> str:
    """Empty where there is an answer, whatever it is."""
    from huggingface_hub import get_session

    try:
        get_session().head(url, timeout=CONNECT)
    except Exception as error:  # of whichever HTTP library is in use
        return str(error) or type(error).__name__
    return ""


def _folders(request: Request) -> list[str]:
    """Those of a dataset on the hub: its configurations, where no card lists them."""
    from huggingface_hub import HfApi

    tree = HfApi().list_repo_tree(request.path, repo_type="dataset", revision=request.revision)
    return sorted(entry.path for entry in tree if "tree_id" in vars(entry))


def _bounded(builder: Any) -> Any:
    """Parquet is read a few rows at a time, and by one thread.

    `datasets` has Arrow scan it: whole row groups are in memory, twice, and a scan that is not read to its end (the
    disk is full, Ctrl-C) can keep the process from ending.
    """
    if builder.name == "parquet":
        builder._generate_tables = partial(_tables, builder)
    return builder


def _tables(builder: Any, files: Iterable[str], **_: Any) -> Iterator[tuple[int, Any]]:
    """In place of the builder's own; which arguments it gets besides the files depends on the version of `datasets`."""
    from pyarrow import Table

    batches = (batch for file in files for batch in _batches(file, builder.config.columns))
    for number, batch in enumerate(batches):
        yield number, builder._cast_table(Table.from_batches([batch]))


def _batches(file: str, columns: list[str] | None) -> Iterator[Any]:
    from pyarrow import ArrowInvalid
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(file, pre_buffer=False, buffer_size=1 << 20) as opened:
            yield from opened.iter_batches(ROWS, columns=columns, use_threads=False)
    except (ArrowInvalid, OSError) as error:
        raise UserError(f"{file} is damaged or cut ({error}); copy it again") from error


class _Kept(logging.Handler):
    """Keeps what is logged instead of showing it."""

    def __init__(self, heard: Heard) -> None:
        super().__init__(logging.ERROR)
        self.heard = heard

    def emit(self, record: logging.LogRecord) -> None:
        self.heard.errors.append(record.getMessage())


@contextmanager
def _quiet() -> Iterator[Heard]:
    """No bar unless a person watches, and no log lines; gives what was logged."""
    import datasets
    from huggingface_hub.utils import disable_progress_bars

    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
        disable_progress_bars()
    heard = Heard()
    loggers = [logging.getLogger(name) for name in ("datasets", "huggingface_hub")]
    before = [list(logger.handlers) for logger in loggers]
    for logger in loggers:
        logger.handlers = [_Kept(heard)]
    try:
        yield heard
    finally:
        for logger, handlers in zip(loggers, before, strict=True):
            logger.handlers = handlers
