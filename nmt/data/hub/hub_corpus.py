"""A dataset of the hub as a corpus: its splits as pairs of lines, read a batch of rows at a time."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from nmt.data.corpus import Corpus, Pair, Subset, TestSet
from nmt.data.hub.dataset_loading import ROWS_IN_MEMORY, HubDataset
from nmt.errors import ConfigError, UserError

DEFAULT_SPLITS = {"valid_split": "validation", "test_split": "test"}  # read where they exist; any other must exist


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
        self.source_language = source
        self.target_language = target
        self._columns = (source_column or source, target_column or target)
        self._splits = {"train_split": train_split, "valid_split": valid_split, "test_split": test_split}
        self._selection = Subset(max_pairs, subset, join, join_share, seed)
        self._about = {"licence": licence, "url": url}
        self._data = HubDataset(path, name, revision, self._columns, cache_dir)

    def train(self) -> Iterator[Pair]:
        return self._selection.apply(lambda: self._read("train_split"))

    def valid(self) -> Iterator[Pair]:
        return self._read("valid_split")

    def test_sets(self) -> dict[str, TestSet]:
        pairs = list(self._read("test_split"))
        if not pairs:
            return {}
        return {"test": TestSet("test", [pair.source for pair in pairs], [[pair.target for pair in pairs]])}

    def provenance(self) -> dict[str, Any]:
        """The dataset by name and, from the hub, by commit; fetched and converted for its sizes where it is not yet."""
        data = self._data
        facts = {
            "corpus": self.name,
            "dataset": data.path if data.local is None else self.name,
            "config": data.name,
            "revision": data.revision,
            "commit": None if data.local else str(data.builder.hash),
            **self._about,
        }
        splits = {key: split for key in self._splits if (split := self._split(key))}
        given_facts = {key: value for key, value in facts.items() if value}
        return {**given_facts, **splits, "pairs": data.pairs, **self._selection.identity()}

    def identity(self) -> dict[str, Any]:
        """The dataset's name, as the hub has it, or the content of local files, whatever their folder is called."""
        data = self._data
        text = {"path": data.path, "revision": data.revision} if data.local is None else {"files": self._sha256()}
        chosen = {"name": data.name, "columns": list(self._columns), **self._splits}
        return {**text, **chosen, **self._selection.identity()}

    def expected_pairs(self) -> int | None:
        whole = len(self._data.split("train_split", self._splits["train_split"] or ""))
        return whole if self._selection.max_pairs is None else min(whole, self._selection.max_pairs)

    def _split(self, key: str) -> str | None:
        """What to read; None where a split is switched off, or is a default that does not exist."""
        name = self._splits[key]
        return None if DEFAULT_SPLITS.get(key) == name and name not in self._data.pairs else name

    def _read(self, key: str) -> Iterator[Pair]:
        name = self._split(key)
        if name is None:
            return iter(())
        dataset = self._data.split(key, name)
        where = f"{name} of {self._data.path}"
        columns = [find_column(dataset, column, where) for column in self._columns]
        return read_dataset_pairs(dataset, columns[0], columns[1], where)

    def _sha256(self) -> str:
        """Of the names inside the folder and the contents of all its data files."""
        digest = hashlib.sha256()
        base = self._data.local or Path()
        for file in self._data.files():
            inside = file.relative_to(base).as_posix() if file.is_relative_to(base) and file != base else file.name
            with file.open("rb") as stream:
                digest.update(f"{inside}\n{hashlib.file_digest(stream, 'sha256').hexdigest()}\n".encode())
        return digest.hexdigest()


class TextColumn(NamedTuple):
    """A column, or with `key` a part of it: translation, en."""

    name: str
    key: str | None


def find_column(dataset: Any, name: str, where: str) -> TextColumn:
    """A column of that name, or a part of the translation. ConfigError where there is none, or where it is no text."""
    import pyarrow as pa

    schema = dataset.data.schema
    types = {TextColumn(field.name, None): field.type for field in schema if not pa.types.is_struct(field.type)}
    for field in schema:
        if pa.types.is_struct(field.type):
            types |= {TextColumn(field.name, part.name): part.type for part in field.type}
    column = next((column for column in types if (column.key or column.name) == name), None)
    if column is None:
        listed = ", ".join(f"{column.key} (in {column.name})" if column.key else column.name for column in types)
        raise ConfigError(f"{where} has no column {name}; there are: {listed}; see data.source_column, target_column")
    if not _is_text(types[column]):
        raise ConfigError(f"column {name} of {where} is not text but {types[column]}; name another data.source_column")
    return column


def read_dataset_pairs(dataset: Any, source: TextColumn, target: TextColumn, where: str) -> Iterator[Pair]:
    """All rows. UserError where a cell is not UTF-8."""
    names = list(dict.fromkeys((source.name, target.name)))
    count = 0
    for table in dataset.select_columns(names).with_format("arrow").iter(ROWS_IN_MEMORY):
        try:
            sources, targets = _lines(table, source), _lines(table, target)
        except UnicodeDecodeError:
            rows = f"{count + 1:,} to {count + table.num_rows:,}"
            raise UserError(f"{where}: a cell in rows {rows} is not UTF-8; mend the file it is from") from None
        count += table.num_rows
        yield from map(Pair, sources, targets)


def _lines(table: Any, column: TextColumn) -> list[str]:
    from pyarrow.compute import struct_field

    cells = table.column(column.name)
    texts = (struct_field(cells, column.key) if column.key else cells).to_pylist()
    return [_one_line(text) for text in texts]


def _one_line(text: str | None) -> str:
    if text is None:
        return ""
    if "\n" in text or "\r" in text:
        return text.replace("\r\n", " ").replace("\n", " ").replace("\r", " ")
    return text


def _is_text(kind: Any) -> bool:
    return str(kind) in ("string", "large_string", "string_view")
