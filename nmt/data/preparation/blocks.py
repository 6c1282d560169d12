"""The corpus in blocks of pairs, and stages that work on them: a block is done when the file of its result is there."""

import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from nmt.data.corpus import CorpusPart
from nmt.data.preparation.worker_pool import map_in_order
from nmt.progress import progress

BLOCK_SIZE = 10_000  # pairs; blocks end where a part does
MAX_PAIRS_IN_MEMORY = 100_000  # a corpus of no more is read (or generated) only once
PROGRESS_SECONDS = 15.0

Result = TypeVar("Result", bound=NamedTuple)


class Block(NamedTuple):
    """Consecutive pairs; `first` counts all pairs read from 0, `part` the parts of the corpus."""

    number: int
    first: int
    part: int
    sources: list[str]
    targets: list[str]
    verdicts: np.ndarray = np.zeros(0, dtype=np.uint8)  # (n,) from the second stage on


class CorpusBlocks:
    """The blocks of the training text; iterable any number of times."""

    def __init__(self, parts: list[CorpusPart]) -> None:
        self._parts = parts
        self._cache: list[Block] | None = None

    def __iter__(self) -> Iterator[Block]:
        return iter(self._cache) if self._cache is not None else self._read()

    def _read(self) -> Iterator[Block]:
        cache: list[Block] = []
        number = first = 0
        for part_number, part in enumerate(self._parts):
            pairs = part.read()
            while rows := list(islice(pairs, BLOCK_SIZE)):
                block = Block(number, first, part_number, [row.source for row in rows], [row.target for row in rows])
                number, first = number + 1, first + len(rows)
                if first <= MAX_PAIRS_IN_MEMORY:
                    cache.append(block)
                else:
                    cache.clear()
                yield block
        if cache:
            self._cache = cache


@dataclass(frozen=True)
class Stage(Generic[Result]):
    """`work(block)` for every block, by several processes. Each writes its results, one file a block, into `folder`.

    A result is a NamedTuple of arrays and JSON values. Killed at any moment, the stage resumes with the blocks that
    have no file. The files double what a preparation takes on the disk until it ends.
    """

    folder: Path
    work: Callable[[Block], Result]
    kind: Callable[..., Result]

    def run(self, blocks: Iterable[Block], description: str, total: int | None, workers: int) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        with progress(description, total, line_every=PROGRESS_SECONDS) as advance:

            def missing() -> Iterator[Block]:
                for block in blocks:
                    if self._file(block.number).exists():
                        advance(len(block.sources))
                    else:
                        yield block

            for pairs in map_in_order(self, missing(), workers):
                advance(pairs)

    def __call__(self, block: Block) -> int:
        """In any process: the number of pairs, once their result is on the disk."""
        fields = self.work(block)._asdict()
        arrays = {name: value for name, value in fields.items() if isinstance(value, np.ndarray)}
        facts = json.dumps({name: value for name, value in fields.items() if name not in arrays})
        file = self._file(block.number)
        temporary = file.with_name(f"{file.name}.{os.getpid()}.tmp")
        with temporary.open("wb") as stream:
            np.savez(stream, facts=np.array(facts), **arrays)  # type: ignore[arg-type]
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, file)
        return len(block.sources)

    def results(self) -> Iterator[Result]:
        """In the order of the blocks."""
        for file in sorted(self.folder.glob("*.npz")):
            with np.load(file) as stored:
                arrays = {name: stored[name] for name in stored.files if name != "facts"}
                yield self.kind(**arrays, **json.loads(str(stored["facts"])))

    def _file(self, number: int) -> Path:
        return self.folder / f"{number:08}.npz"
