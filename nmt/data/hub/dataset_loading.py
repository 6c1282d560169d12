"""A dataset opened with `datasets`: fetched where it is on the hub, converted once to Arrow files, read memory-mapped.

`datasets` keeps both in its own cache (HF_HOME), shared by all programs. Its log is captured for our error messages.
"""

import errno
import logging
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from nmt.data.hub.dataset_layout import CONVERTED, LoadRequest, load_request, local_path, unknown_configuration
from nmt.errors import ConfigError, UserError
from nmt.progress import say

# Class names in requests, httpx and huggingface_hub
NETWORK_ERRORS = ("ConnectionError", "TransportError", "LocalEntryNotFoundError")
MAX_MESSAGE = 300  # characters of a foreign message


@dataclass
class ErrorContext:
    """What there is besides the exception: logged errors, and why the hub was not asked."""

    errors: list[str] = field(default_factory=list)
    offline: str = ""


def explain_hub_error(error: Exception, path: str, name: str | None, on_hub: bool, context: ErrorContext) -> UserError:
    """An error of `datasets` or the hub as one line that tells the user what to do."""
    chain = list(_chain(error))
    texts = [_shortened(str(cause)) for cause in chain]
    for cause in chain:
        if isinstance(cause, UserError):
            return cause
    if any(_is_disk_full(cause) for cause in chain):
        return UserError(
            f"the disk is full: {path} needs more room ({_shown(texts)}); free some, or name a folder on another disk "
            f"with data.cache_dir=FOLDER or the environment variable HF_HOME"
        )
    if context.offline:
        return UserError(_unreachable(path, _shortened(context.offline)))
    listed = re.search(r"(?:available configs|Available): (\[.*?\])", texts[0])
    if listed and isinstance(error, ValueError):
        return unknown_configuration(path, name, re.findall(r"'([^']*)'", listed[1]))
    if "scripts are no longer supported" in texts[0] or "trust_remote_code" in texts[0]:
        instead = f"the hub's own conversion may be there: data.revision={CONVERTED}" if on_hub else "take it away"
        return UserError(f"{path} has a loading script, which is not run; {instead}")
    if on_hub and (message := _hub_message(path, name, chain, texts)):
        return UserError(message)
    reason = _shortened(context.errors[-1]) if context.errors else _shown(texts)
    return UserError(f"cannot read {path}: {reason}; is a file damaged or cut?")


def _hub_message(path: str, name: str | None, chain: Sequence[BaseException], texts: Sequence[str]) -> str:
    """What the hub answered, or why it cannot be reached; empty for any other cause."""
    kinds = {kind.__name__ for cause in chain for kind in type(cause).__mro__}
    if "gated dataset" in texts[0]:
        return (
            f"{path} is a gated dataset: ask for access at https://huggingface.co/datasets/{path}, "
            f"then log in: hf auth login"
        )
    if "Revision" in texts[0]:
        return f"{texts[0].rstrip('.')}; data.revision is a branch, a tag or a commit of {path}"
    if "DatasetNotFoundError" in kinds:
        return f"there is no dataset {path} on the hub, or it is a private one; and there is no such folder here"
    if kinds & set(NETWORK_ERRORS):
        return _unreachable(path, _shown(texts))
    if "HfHubHTTPError" in kinds:
        return f"the hub does not give {path}: {_shown(texts)}; try again later"
    if "Couldn't find cache" in texts[0] or kinds & {"EmptyDatasetError", "DataFilesNotFoundError"}:
        what = f"configuration {name}, nor a folder of that name" if name else "data files"
        return f"{path} has no {what}; look at https://huggingface.co/datasets/{path}/tree/main"
    return ""


def _unreachable(path: str, reason: str) -> str:
    return (
        f"cannot reach the hub for {path} ({reason.rstrip('.')}; no such folder here either); prepare on a machine "
        f"with a network: python -m nmt.prepare data=..., then copy its folder data/prepared/NAME here"
    )


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _is_disk_full(error: BaseException) -> bool:
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    return full or "Not enough disk space" in str(error) or "No space left on device" in str(error)


def _shown(texts: Sequence[str]) -> str:
    """The last cause is the most specific; where it is empty, the one before."""
    return next((text for text in reversed(texts) if text), "no reason given")


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_MESSAGE else f"{line[:MAX_MESSAGE]}..."


ROWS_IN_MEMORY = 10_000  # in memory at a time
CONNECT_TIMEOUT = 5.0  # seconds until a hub that does not answer counts as out of reach


@dataclass(frozen=True)
class HubDataset:
    """One configuration of a dataset. Everything is looked up lazily; errors are UserErrors."""

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
        with self._explained() as context, _only_cache_if_unreachable(context, self.local is None):
            request = load_request(self.path, self.name, self.revision)
            builder = self._load(request)
            if builder.name == "csv":  # pandas would take the words NA, None and null for no text, and 7 for a number
                converters = dict.fromkeys(self.columns, str)
                builder = self._load(request, na_filter=False, converters=converters)
            return _with_bounded_parquet_reader(builder)

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
        """The `datasets.Dataset` of a split, or of an expression such as train[:1%]; `key` is named in errors."""
        splits = self.pairs
        with self._explained():
            try:
                return self.builder.as_dataset(name)
            except (ValueError, AssertionError) as error:
                reason = f"{self.path} has no such split" if "[" not in name else " ".join(str(error).split())
                raise ConfigError(f"data.{key}={name}: {reason}; there are: {', '.join(splits)}") from None

    def files(self) -> list[Path]:
        """The data files where the dataset is a local one, sorted."""
        listed = self.builder.config.data_files or {}
        return sorted({Path(str(file)) for files in listed.values() for file in files})

    def _load(self, request: LoadRequest, **settings: Any) -> Any:
        from datasets import config, load_dataset_builder

        if request.data_dir and self.local is None and not config.HF_HUB_OFFLINE:
            folders = _folders(request)
            if request.data_dir not in folders:
                raise unknown_configuration(self.path, self.name, folders)
        try:
            return load_dataset_builder(**request._asdict(), **settings, cache_dir=self.cache_dir)
        except ValueError as error:
            if request.name is None or request.data_files or "['default']" not in str(error):
                raise
        return self._load(request._replace(name=None, data_dir=request.name), **settings)  # a folder, not in the card

    @contextmanager
    def _explained(self) -> Iterator[ErrorContext]:
        with _captured_logs() as context:
            try:
                yield context
            except UserError:
                raise
            except Exception as error:  # a library between us and the network, disks and foreign files may raise any
                raise explain_hub_error(error, self.path, self.name, self.local is None, context) from None


@contextmanager
def _only_cache_if_unreachable(context: ErrorContext, on_hub: bool) -> Iterator[None]:
    """Ask the hub once, and quickly: `datasets` would try for half a minute before it looks into its cache."""
    from datasets import config

    was_offline = config.HF_HUB_OFFLINE
    if on_hub:
        context.offline = (
            "HF_HUB_OFFLINE or HF_DATASETS_OFFLINE is set" if was_offline else _why_unreachable(config.HF_ENDPOINT)
        )
        config.HF_HUB_OFFLINE = bool(context.offline)
    try:
        yield
    finally:
        config.HF_HUB_OFFLINE = was_offline


def _why_unreachable(url: str) -> str:
    """Empty where there is an answer, whatever it is."""
    from huggingface_hub import get_session

    try:
        get_session().head(url, timeout=CONNECT_TIMEOUT)
    except Exception as error:  # of whichever HTTP library is in use
        return str(error) or type(error).__name__
    return ""


def _folders(request: LoadRequest) -> list[str]:
    """Those of a dataset on the hub: its configurations, where no card lists them."""
    from huggingface_hub import HfApi

    tree = HfApi().list_repo_tree(request.path, repo_type="dataset", revision=request.revision)
    return sorted(entry.path for entry in tree if "tree_id" in vars(entry))


def _with_bounded_parquet_reader(builder: Any) -> Any:
    """Parquet is read a few rows at a time, and by one thread.

    `datasets` has Arrow scan it: whole row groups are in memory, twice, and a scan that is not read to its end (the
    disk is full, Ctrl-C) can keep the process from ending.
    """
    if builder.name == "parquet":
        builder._generate_tables = partial(_bounded_tables, builder)
    return builder


def _bounded_tables(builder: Any, files: Iterable[str], **_: Any) -> Iterator[tuple[int, Any]]:
    """In place of the builder's own; its arguments besides the files depend on the version of `datasets`."""
    from pyarrow import Table

    batches = (batch for file in files for batch in _batches(file, builder.config.columns))
    for number, batch in enumerate(batches):
        yield number, builder._cast_table(Table.from_batches([batch]))


def _batches(file: str, columns: list[str] | None) -> Iterator[Any]:
    from pyarrow import ArrowInvalid
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(file, pre_buffer=False, buffer_size=1 << 20) as opened:
            yield from opened.iter_batches(ROWS_IN_MEMORY, columns=columns, use_threads=False)
    except (ArrowInvalid, OSError) as error:
        raise UserError(f"{file} is damaged or cut ({error}); copy it again") from error


class _LogRecorder(logging.Handler):
    """Collects log messages instead of showing them."""

    def __init__(self, context: ErrorContext) -> None:
        super().__init__(logging.ERROR)
        self.context = context

    def emit(self, record: logging.LogRecord) -> None:
        self.context.errors.append(record.getMessage())


@contextmanager
def _captured_logs() -> Iterator[ErrorContext]:
    """No bar unless a person watches, and no log lines; yields what was logged."""
    import datasets
    from huggingface_hub.utils import disable_progress_bars

    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
        disable_progress_bars()
    context = ErrorContext()
    loggers = [logging.getLogger(name) for name in ("datasets", "huggingface_hub")]
    handlers_before = [list(logger.handlers) for logger in loggers]
    for logger in loggers:
        logger.handlers = [_LogRecorder(context)]
    try:
        yield context
    finally:
        for logger, handlers in zip(loggers, handlers_before, strict=True):
            logger.handlers = handlers
