"""Lines of text from files and streams, and the corpus of a user's own files.

A line ends at `\n` (or `\r\n`) and nowhere else: real corpora hold U+0085, U+2028, form feeds and lone
carriage returns inside sentences, and breaking there puts the two sides out of step.
"""

import gzip
import hashlib
import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, BinaryIO

from nmt.data.corpus import Corpus, Pair, Subset, TestSet
from nmt.errors import ConfigError, UserError

Paths = str | Sequence[str] | None


def words(line: str) -> list[str]:
    """Whitespace-separated words: the unit of sentence length and of word alignments everywhere."""
    return line.split()


def decode_lines(stream: BinaryIO, name: str) -> Iterator[str]:
    """Lines of a UTF-8 byte stream without their ends; a byte order mark at the start is dropped.

    Raises UserError, naming `name` and the line, where bytes are not UTF-8.
    """
    for number, raw in enumerate(stream, start=1):  # binary iteration splits at \n only
        if number == 1:
            raw = raw.removeprefix(b"\xef\xbb\xbf")
        raw = raw.removesuffix(b"\n").removesuffix(b"\r")
        try:
            yield raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise UserError(
                f"{name}: line {number} is not UTF-8 (byte {error.start + 1} is 0x{raw[error.start]:02x}); "
                f"convert the file, for example: iconv -f latin1 -t utf-8"
            ) from None


def open_bytes(path: str | Path, unpacked: bool = True) -> BinaryIO:
    """The bytes of a plain or gzip'd (.gz) file; UserError where it cannot be read."""
    path = Path(path).expanduser()
    try:
        if path.is_dir():
            raise UserError(f"{path} is a directory; a text file is needed")
        stream = path.open("rb")
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    return gzip.GzipFile(fileobj=stream) if unpacked and path.suffix == ".gz" else stream  # type: ignore[return-value]


def read_lines(path: str | Path) -> Iterator[str]:
    """Lines of a plain or gzip'd UTF-8 file; UserError with file and line where something is wrong."""
    count = 0
    with open_bytes(path) as stream:
        try:
            for line in decode_lines(stream, str(path)):
                yield line
                count += 1
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise UserError(f"{path}: damaged or cut gzip file after line {count} ({error})") from None


def checksum(path: str | Path) -> str:
    """SHA-256 of the file's text, so that a.en and a.en.gz count as the same data."""
    digest = hashlib.sha256()
    for line in read_lines(path):
        digest.update(line.encode("utf-8") + b"\n")
    return digest.hexdigest()


def read_parallel(source: str, target: str) -> Iterator[Pair]:
    """Line n of `source` with line n of `target`; UserError where one file has more lines, or both have none."""
    number = 0
    lines = zip_longest(read_lines(source), read_lines(target))
    for number, (src, tgt) in enumerate(lines, start=1):
        if src is None or tgt is None:
            shorter, longer = (source, target) if src is None else (target, source)
            total = number + sum(1 for _ in lines)
            raise UserError(
                f"unequal line counts: {shorter} has {number - 1} lines, {longer} has {total}; "
                f"line {number} of {longer} has no partner"
            )
        yield Pair(src, tgt)
    if number == 0:
        raise UserError(f"{source} is empty, and so is {target}; give files with text")


def read_tsv(path: str) -> Iterator[Pair]:
    """Source and target of each line of a .tsv file, divided by its one tab; quotes mean nothing."""
    number = 0
    for number, line in enumerate(read_lines(path), start=1):
        columns = line.split("\t")
        if len(columns) != 2:
            raise UserError(
                f"{path}: line {number} has {len(columns)} column{'s' * (len(columns) != 1)}, "
                f"not 2 (source, tab, target)"
            )
        yield Pair(columns[0], columns[1])
    if number == 0:
        raise UserError(f"{path} is empty; give a file with text")


def require_equal_counts(counts: Mapping[str, int]) -> None:
    """UserError with every file and its number of lines unless all are equal; an empty set is refused too."""
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{name} has {count:,} line{'s' * (count != 1)}" for name, count in counts.items())
        raise UserError(f"the counts differ: {listed}; line n of each file must belong to the same sentence")
    if 0 in counts.values():
        raise UserError(f"nothing to score: {', '.join(counts)} {'has' if len(counts) == 1 else 'have'} no line")


class TextCorpus(Corpus):
    """Parallel text in the user's own files: a source and a target file each, or one .tsv for both.

    `test_tgt` may be a list of files, one for each reference translator. Give `train_src=pairs.tsv` alone
    (likewise for valid and test) where one file holds both sides.
    """

    def __init__(
        self,
        train_src: str | None = None,
        train_tgt: str | None = None,
        valid_src: str | None = None,
        valid_tgt: str | None = None,
        test_src: str | None = None,
        test_tgt: Paths = None,
        source: str | None = None,
        target: str | None = None,
        name: str = "text",
        max_pairs: int | None = None,
        subset: str = "first",
        join: int = 1,
        join_share: float = 1.0,
        seed: int = 1,
        licence: str | None = None,
        url: str | None = None,
    ) -> None:
        self.name = name
        self._selection = Subset(max_pairs, subset, join, join_share, seed)
        self._about = {"licence": licence, "url": url}
        self.source_language, self.target_language = source or "", target or ""
        if not train_src:
            raise ConfigError("data=text needs data.train_src=FILE (and data.train_tgt=FILE, or one .tsv for both)")
        self._files = {
            "train": _side_files("train", train_src, train_tgt),
            "valid": _side_files("valid", valid_src, valid_tgt),
            "test": _side_files("test", test_src, test_tgt),
        }

    def train(self) -> Iterator[Pair]:
        return self._selection.apply(lambda: _read(self._files["train"]))

    def valid(self) -> Iterator[Pair]:
        return _read(self._files["valid"])

    def test_sets(self) -> dict[str, TestSet]:
        if not self._files["test"]:
            return {}
        source, *references = self._files["test"]
        by_reference = [list(read_parallel(source, path)) for path in references] or [list(read_tsv(source))]
        sources = [pair.source for pair in by_reference[0]]
        return {"test": TestSet("test", sources, [[pair.target for pair in pairs] for pairs in by_reference])}

    def provenance(self) -> dict[str, Any]:
        return {
            "corpus": self.name,
            **{
                split: [{"file": Path(path).name, "sha256": checksum(path)} for path in paths]
                for split, paths in self._files.items()
                if paths and split != "test"
            },
            **{key: value for key, value in self._about.items() if value},
            **self._selection.identity(),
        }

    def identity(self) -> dict[str, Any]:
        """The files' bytes, whatever they are called."""
        hashes: dict[str, list[str]] = {split: [] for split in self._files}
        for split, paths in self._files.items():
            for path in paths:
                with open_bytes(path, unpacked=False) as stream:
                    hashes[split].append(hashlib.file_digest(stream, "sha256").hexdigest())  # type: ignore[arg-type]
        return {"text": hashes, **self._selection.identity()}

    def expected_pairs(self) -> int | None:
        """From the line ends in the first mebibyte of the file and the size of the whole."""
        path = Path(self._files["train"][0])
        with open_bytes(path, unpacked=False) as stream:
            start = stream.read(1 << 20)
        text = zlib.decompressobj(wbits=31).decompress(start) if path.suffix == ".gz" else start
        lines = round(text.count(b"\n") * path.stat().st_size / max(1, len(start)))
        return min(lines, self._selection.max_pairs or lines)


def _side_files(split: str, source: str | None, target: Paths) -> tuple[str, ...]:
    """The files of a split, source first; a .tsv stands alone. ConfigError where one is missing."""
    targets = [target] if target and isinstance(target, str) else list(target or ())
    if not source:
        if targets:
            raise ConfigError(f"data.{split}_tgt is given without data.{split}_src; give both")
        return ()
    is_table = Path(source).name.removesuffix(".gz").endswith(".tsv")
    if is_table and targets:
        raise ConfigError(f"data.{split}_src={source} holds both sides; leave data.{split}_tgt away")
    if not is_table and not targets:
        raise ConfigError(f"data.{split}_src={source} needs data.{split}_tgt=FILE (only a .tsv holds both sides)")
    return tuple(str(Path(path).expanduser()) for path in (source, *targets))


def _read(files: tuple[str, ...]) -> Iterator[Pair]:
    """One .tsv, two parallel files, or nothing."""
    if not files:
        return iter(())
    return read_tsv(*files) if len(files) == 1 else read_parallel(*files)
