"""The corpus of a dataset: its splits as pairs of lines."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nmt.data.corpus import Corpus, Pair, TestSet
from nmt.data.hub.opening import Opened
from nmt.data.hub.reading import column_in, read_pairs
from nmt.data.selection import Selection
from nmt.errors import ConfigError

USUAL = {"valid_split": "validation", "test_split": "test"}  # taken where they are there; any other must be


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
            raise ConfigError("data.train_split=null: there is nothing to train on; name a split")
        self.name = Path(path).expanduser().name or Path(path).resolve().name
        self.source_language = source
        self.target_language = target
        self._columns = (source_column or source, target_column or target)
        self._splits = {"train_split": train_split, "valid_split": valid_split, "test_split": test_split}
        self._selection = Selection(max_pairs, subset, join, join_share, seed)
        self._about = {"licence": licence, "url": url}
        self._data = Opened(path, name, revision, self._columns, cache_dir)

    def train(self) -> Iterator[Pair]:
        return self._selection.of(lambda: self._read("train_split"))

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
        known = {key: value for key, value in facts.items() if value}
        return {**known, **splits, "pairs": data.pairs, **self._selection.identity()}

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
        """What to read; None where a split is not wanted, or is not there and was not asked for by name."""
        name = self._splits[key]
        return None if USUAL.get(key) == name and name not in self._data.pairs else name

    def _read(self, key: str) -> Iterator[Pair]:
        name = self._split(key)
        if name is None:
            return iter(())
        dataset = self._data.split(key, name)
        where = f"{name} of {self._data.path}"
        columns = [column_in(dataset, column, where) for column in self._columns]
        return read_pairs(dataset, columns[0], columns[1], where)

    def _sha256(self) -> str:
        """Of the names inside the folder and the contents of all its data files."""
        digest = hashlib.sha256()
        base = self._data.local or Path()
        for file in self._data.files():
            inside = file.relative_to(base).as_posix() if file.is_relative_to(base) and file != base else file.name
            with file.open("rb") as stream:
                digest.update(f"{inside}\n{hashlib.file_digest(stream, 'sha256').hexdigest()}\n".encode())
        return digest.hexdigest()
