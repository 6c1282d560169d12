"""Parallel text of the Hugging Face hub, or of local files laid out as there, loaded with `datasets`: data=hub.

`datasets` converts what it loads once, to Arrow files in its cache (HF_HOME, shared by all programs), and reads these
memory-mapped. A folder copied from the hub may hold a part of it only: one configuration, with or without the card
(README.md) that lists the others; `datasets` itself would fail at the first one that is not there.
"""

import errno
import hashlib
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from glob import iglob
from pathlib import Path
from typing import Any

from nmt.data.corpus import Corpus, Pair, Subset, TestSet
from nmt.errors import ConfigError, UserError
from nmt.files import file_sha256
from nmt.progress import say

ROWS_IN_MEMORY = 10_000
TIMEOUT = 10.0  # seconds for the hub's first answer
CONVERTED = "refs/convert/parquet"  # the hub's own conversion of a dataset: a folder for each configuration
DEFAULT_SPLITS = {"valid_split": "validation", "test_split": "test"}  # read where they exist; any other must exist
FULL = (errno.ENOSPC, errno.EDQUOT)
LONGEST_REASON = 300  # characters of a foreign message
SUFFIXES = ("parquet", "jsonl", "json", "csv", "tsv", "arrow")
_ABOUT = ("README.md", "dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json", "config.json")
_SPLIT_FOLDER = re.compile(r"(data|train(ing)?|valid(ation)?|val|dev|test(ing)?|eval(uation)?)(?![A-Za-z])")


class HubCorpus(Corpus):
    """Pairs of a dataset on the Hugging Face hub, or of a local copy of one, or of parquet, jsonl or csv files.

    `path` is a name on the hub (wmt/wmt14), a folder or a file; `name` one of the dataset's configurations. The two
    sides are languages of its `translation` feature, or columns of text; `source_column` and `target_column` name them
    where they are not called as the languages. Splits may be expressions: train[:1%].
    A pair is one line on each side: line ends inside a cell become a space. A missing cell is an empty line.
    """

    def __init__(
        self,
        path: str | None,
        name: str | None = None,
        source: str | None = None,
        target: str | None = None,
        source_column: str | None = None,
        target_column: str | None = None,
        revision: str | None = None,
        train_split: str | None = "train",
        valid_split: str | None = "validation",
        test_split: str | None = "test",
        max_pairs: int | None = None,
        subset: str = "first",
        join: int = 1,
        join_share: float = 1.0,
        seed: int = 1,
        licence: str | None = None,
        url: str | None = None,
        cache_dir: str | None = None,
    ) -> None:
        if not path:
            raise ConfigError("data=hub needs data.path: a name on the hub (wmt/wmt14), a folder or a file")
        if not source or not target:
            raise ConfigError("data=hub needs data.source and data.target: languages, for example en and fr")
        if not train_split:
            raise ConfigError("data.train_split=null: nothing to train on; name a split")
        self.name = Path(path).expanduser().name or Path(path).resolve().name
        self.source_language, self.target_language = source, target
        self._path, self._configuration, self._revision = path, name, revision
        self._columns = (source_column or source, target_column or target)
        self._splits = {"train_split": train_split, "valid_split": valid_split, "test_split": test_split}
        self._selection = Subset(max_pairs, subset, join, join_share, seed)
        self._about = {"licence": licence, "url": url}
        self._cache_dir = str(Path(cache_dir).expanduser()) if cache_dir else None
        self._unreachable = ""  # why the hub is not asked

    def train(self) -> Iterator[Pair]:
        return self._selection.apply(lambda: self._read("train_split"))

    def valid(self) -> Iterator[Pair]:
        return self._read("valid_split")

    def test_sets(self) -> dict[str, TestSet]:
        pairs = list(self._read("test_split"))
        return {"test": TestSet.of(pairs)} if pairs else {}

    def provenance(self) -> dict[str, Any]:
        """The dataset by name and, from the hub, by commit; fetched and converted for its sizes where it is not yet."""
        facts = {
            "corpus": self.name,
            "dataset": self._path if self._local is None else self.name,
            "config": self._configuration,
            "revision": self._revision,
            "commit": None if self._local else str(self._builder.hash),
            **self._about,
        }
        splits = {key: split for key in self._splits if (split := self._split(key))}
        given_facts = {key: value for key, value in facts.items() if value}
        return {**given_facts, **splits, "pairs": self._sizes, **self._selection.identity()}

    def identity(self) -> dict[str, Any]:
        """The dataset's name, as the hub has it, or the content of local files, whatever their folder is called."""
        text: dict[str, Any] = {"path": self._path, "revision": self._revision}
        if self._local:
            digest = hashlib.sha256()
            for file in self._files():
                inside = file.relative_to(self._local).as_posix() if file.is_relative_to(self._local) else "."
                digest.update(f"{file.name if inside == '.' else inside}\n{file_sha256(file)}\n".encode())
            text = {"files": digest.hexdigest()}
        chosen = {"name": self._configuration, "columns": list(self._columns), **self._splits}
        return {**text, **chosen, **self._selection.identity()}

    def expected_pairs(self) -> int | None:
        whole = len(self._dataset("train_split", self._splits["train_split"] or ""))
        return whole if self._selection.max_pairs is None else min(whole, self._selection.max_pairs)

    def _split(self, key: str) -> str | None:
        """What to read; None where a split is switched off, or is a default that does not exist."""
        name = self._splits[key]
        return None if DEFAULT_SPLITS.get(key) == name and name not in self._sizes else name

    def _read(self, key: str) -> Iterator[Pair]:
        name = self._split(key)
        if name is None:
            return iter(())
        dataset = self._dataset(key, name).flatten()  # translation -> translation.en, translation.fr
        where = f"{name} of {self._path}"
        return _read_pairs(dataset, [_find_column(dataset.features, column, where) for column in self._columns], where)

    def _dataset(self, key: str, split: str) -> Any:
        sizes = self._sizes
        with self._explained():
            try:
                return self._builder.as_dataset(split)
            except (ValueError, AssertionError) as error:
                reason = _one_line(error) if "[" in split else f"{self._path} has no such split"
                raise ConfigError(f"data.{key}={split}: {reason}; there are: {', '.join(sizes)}") from None

    @cached_property
    def _sizes(self) -> dict[str, int]:
        """Rows of each split. Fetches and converts what is not in the cache yet."""
        builder = self._builder
        if not Path(builder.cache_dir).exists():
            configuration = f" ({self._configuration})" if self._configuration else ""
            say(f"{self._path}{configuration}: fetched and converted once, into {builder.cache_dir}")
        with self._explained():
            builder.download_and_prepare()
        return {name: split.num_examples for name, split in builder.info.splits.items()}

    @cached_property
    def _local(self) -> Path | None:
        """The absolute path where there is such a file or folder; None for a name that can be one on the hub."""
        path, local = self._path, Path(self._path).expanduser()
        if local.exists():
            return local.resolve()
        suffixes = local.name.split(".")[1:]
        if path.count("/") > 1 or path[0] in "./~" or "\\" in path or any(suffix in SUFFIXES for suffix in suffixes):
            raise UserError(f"there is no file or folder {path}; data.path is one, or a name on the hub: wmt/wmt14")
        return None

    @cached_property
    def _builder(self) -> Any:
        """The dataset as `datasets` builds it; nothing is fetched but its card and file names."""
        import datasets
        from huggingface_hub.utils import disable_progress_bars, logging

        datasets.logging.set_verbosity(datasets.logging.CRITICAL)  # its errors are raised too
        logging.set_verbosity(logging.CRITICAL)
        if not sys.stderr.isatty():
            datasets.disable_progress_bars()
            disable_progress_bars()
        with self._explained():
            local, path, name = self._local, self._path, self._configuration
            request = _local_request(local, path, name) if local else self._hub_request()
            request["cache_dir"] = self._cache_dir
            builder = datasets.load_dataset_builder(**request)
            if builder.name == "csv":  # pandas would take the words NA, None and null for no text, and 7 for a number
                converters = dict.fromkeys(self._columns, str)
                builder = datasets.load_dataset_builder(**request, na_filter=False, converters=converters)
            if builder.name == "parquet":  # not whole row groups; set here it is no part of the cache's key
                builder.config.batch_size = ROWS_IN_MEMORY
            return builder

    def _hub_request(self) -> dict[str, Any]:
        """Arguments for `load_dataset_builder`, once the hub has been asked for the commit and the file names."""
        from datasets import config, get_dataset_config_names
        from huggingface_hub import HfApi, errors

        name, path = self._configuration, self._path
        converted = {"data_dir": name or "default"} if self._revision == CONVERTED else {"name": name}
        request: dict[str, Any] = {"path": path, "revision": self._revision, **converted}
        if config.HF_HUB_OFFLINE:
            self._unreachable = "HF_HUB_OFFLINE or HF_DATASETS_OFFLINE is set"
            return request
        try:
            info = HfApi().dataset_info(path, revision=self._revision, timeout=TIMEOUT)
        except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError):
            raise
        except Exception as error:  # of whichever HTTP library is in use
            self._unreachable = _one_line(error).rstrip(".") or type(error).__name__
            config.HF_HUB_OFFLINE = True  # straight to the cache: `datasets` would try again for 23 seconds
            return request
        folders = sorted({file.rfilename.split("/")[0] for file in info.siblings or () if "/" in file.rfilename})
        if self._revision == CONVERTED:
            available = folders
        else:
            request["revision"] = info.sha
            available = get_dataset_config_names(path, revision=info.sha)
            if available == ["default"]:  # no card lists any: they are folders
                available = folders
                if name in folders:
                    return {**request, "name": None, "data_dir": name}
        if name not in available and (name or len(available) > 1):
            raise _unknown_configuration(path, name, available)
        return request

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Any error of `datasets` or below becomes one line that tells what to do."""
        try:
            yield
        except UserError:
            raise
        except Exception as error:  # a library between us and the network, disks and foreign files may raise any
            raise UserError(self._explain(error)) from None

    def _explain(self, error: Exception) -> str:
        from huggingface_hub import errors

        causes: list[BaseException] = [error]
        while cause := causes[-1].__cause__ or causes[-1].__context__:
            causes.append(cause)
        reason = next((text for cause in reversed(causes) if (text := _one_line(cause))), type(error).__name__)
        path, page = self._path, f"https://huggingface.co/datasets/{self._path}"
        if any(getattr(cause, "errno", 0) in FULL or "Not enough disk space" in str(cause) for cause in causes):
            return (
                f"the disk is full: {path} needs more room ({reason}); free some, or name a folder on another disk "
                f"with data.cache_dir=FOLDER or the environment variable HF_HOME"
            )
        if self._unreachable:
            return (
                f"cannot reach the hub for {path} ({self._unreachable}; no such folder here either); prepare on a "
                f"machine with a network: python -m nmt.prepare data=..., then copy its folder data/prepared/NAME here"
            )
        if isinstance(error, errors.GatedRepoError) or "gated dataset" in str(error):
            return f"{path} is a gated dataset: ask for access at {page}, then log in: hf auth login"
        if isinstance(error, errors.RevisionNotFoundError):
            return f"no revision {self._revision}: data.revision is a branch, a tag or a commit of {path}"
        if isinstance(error, errors.RepositoryNotFoundError):
            return f"there is no dataset {path} on the hub, or it is a private one; and there is no such folder here"
        if "scripts are no longer supported" in str(error):
            instead = f"the hub's own conversion may be there: data.revision={CONVERTED}"
            return f"{path} has a loading script, which is not run; {'take it away' if self._local else instead}"
        if self._local:
            return f"cannot read {self._damaged_file() or path}: {reason}; is it damaged or cut? copy it again"
        return f"cannot fetch {path}: {reason}; try again later, and see {page}"

    def _damaged_file(self) -> Path | None:
        """The errors of parquet's reader do not name the file."""
        from pyarrow.parquet import ParquetFile

        for file in self._files() if "_builder" in vars(self) and self._builder.name == "parquet" else ():
            try:
                for _ in ParquetFile(file).iter_batches(ROWS_IN_MEMORY):
                    pass
            except Exception:  # pyarrow has several unrelated kinds
                return file
        return None

    def _files(self) -> list[Path]:
        listed = self._builder.config.data_files or {}
        return sorted({Path(str(file)) for files in listed.values() for file in files})


def _find_column(features: Any, name: str, where: str) -> str:
    """A column of that name, or a part of one (translation.en). ConfigError where there is none, or it is no text."""
    column = next((column for column in features if name in (column, column.split(".")[-1])), None)
    if column is None:
        parts = [column.rpartition(".") for column in features]
        listed = ", ".join(f"{part} (in {whole})" if whole else part for whole, _, part in parts)
        raise ConfigError(f"{where} has no column {name}; there are: {listed}; see data.source_column, target_column")
    kind = getattr(features[column], "dtype", features[column])
    if kind not in ("string", "large_string", "string_view"):
        raise ConfigError(f"column {name} of {where} is not text but {kind}; name another data.source_column")
    return column


def _read_pairs(dataset: Any, columns: list[str], where: str) -> Iterator[Pair]:
    """All rows. UserError where a cell is not UTF-8."""
    count = 0
    for table in dataset.select_columns(list(dict.fromkeys(columns))).with_format("arrow").iter(ROWS_IN_MEMORY):
        try:
            source, target = (map(_without_line_ends, table.column(column).to_pylist()) for column in columns)
        except UnicodeDecodeError:
            rows = f"{count + 1:,} to {count + table.num_rows:,}"
            raise UserError(f"{where}: a cell in rows {rows} is not UTF-8; mend the file it is from") from None
        count += table.num_rows
        yield from map(Pair, source, target)


def _without_line_ends(text: str | None) -> str:
    if text and ("\n" in text or "\r" in text):
        return text.replace("\r\n", " ").replace("\n", " ").replace("\r", " ")
    return text or ""


def _one_line(error: BaseException) -> str:
    line = " ".join(str(error).split())
    return line if len(line) <= LONGEST_REASON else f"{line[:LONGEST_REASON]}..."


def _local_request(local: Path, path: str, name: str | None) -> dict[str, Any]:
    """Arguments for `load_dataset_builder`: a file, or one configuration of a folder."""
    if set(local.as_posix()) & set("*?["):
        raise UserError(f"{path}: rename what has one of * ? [ in its name; `datasets` takes them for patterns")
    if local.is_file():
        if not _is_data(local):
            raise UserError(f"{path} is no parquet, jsonl or csv file; for plain text there is data=text")
        return {"path": local.parent.as_posix(), "data_files": {"train": [local.name]}}
    if card := _configurations(local):
        return _request_by_card(local, path, name, card)
    has_files = any(map(_is_data, local.iterdir()))
    folders = sorted(sub.name for sub in local.iterdir() if sub.is_dir() and not sub.name.startswith((".", "__")))
    folders = [folder for folder in folders if any(map(_is_data, (local / folder).rglob("*")))]
    if not folders and not has_files:
        raise UserError(f"{path} holds no data: no parquet, jsonl or csv file")
    if name in folders and not has_files:
        return {"path": local.as_posix(), "data_dir": name}
    is_one = has_files or len(folders) == 1 or any(map(_SPLIT_FOLDER.match, folders))
    if name != local.name and (name or not is_one):
        raise _unknown_configuration(path, name, () if has_files else folders)
    return {"path": local.as_posix()}


def _configurations(folder: Path) -> Any:
    """By name, as the card (README.md) lists them; empty where it lists none."""
    from datasets.utils.metadata import MetadataConfigs
    from huggingface_hub import DatasetCard
    from yaml import YAMLError

    file = folder / "README.md"
    try:
        return MetadataConfigs.from_dataset_card_data(DatasetCard.load(file).data) if file.is_file() else {}
    except (YAMLError, ValueError) as error:
        raise UserError(
            f"{file}: the head of this card is not as `datasets` wants it ({_one_line(error)}); mend it"
        ) from None


def _request_by_card(folder: Path, path: str, name: str | None, card: Any) -> dict[str, Any]:
    """What the card lists for one configuration, as far as its files exist."""
    from datasets.data_files import sanitize_patterns

    chosen = name or card.get_default_config_name() or (next(iter(card)) if len(card) == 1 else None)
    if chosen not in card:
        raise _unknown_configuration(path, name, card)
    request = {"path": folder.as_posix(), "name": chosen}
    settings = card[chosen]
    if settings.get("data_files") is None:
        return request
    inside = f"{settings['data_dir']}/" if settings.get("data_dir") else ""
    listed = [
        (split, f"{inside}{pattern}")
        for split, patterns in sanitize_patterns(settings["data_files"]).items()
        for pattern in patterns
    ]
    present: dict[str, list[str]] = {}
    for split, pattern in listed:
        if any((folder / file).is_file() for file in iglob(pattern, root_dir=folder, recursive=True)):
            present.setdefault(str(split), []).append(pattern)
    if not present:
        every = ", ".join(pattern for _, pattern in listed)
        raise UserError(f"{path} holds no file of the configuration {chosen}: {every}")
    return {**request, "data_files": present}


def _is_data(file: Path) -> bool:
    named = file.name not in _ABOUT and not file.name.startswith(".")
    return named and any(suffix in SUFFIXES for suffix in file.name.lower().split(".")[1:]) and file.is_file()


def _unknown_configuration(path: str, name: str | None, available: Iterable[str]) -> ConfigError:
    """Which configurations there are, and how to name one."""
    listed = ", ".join(available)
    if not listed:
        return ConfigError(f"{path} has no configuration {name}, and no others: data.name=null")
    what = f"has no configuration {name}" if name else "has several configurations"
    return ConfigError(f"{path} {what}; choose data.name, one of: {listed}")
