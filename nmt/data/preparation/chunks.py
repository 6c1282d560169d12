"""A corpus's training pairs in numbered chunks, as often as asked for."""

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from nmt.data.corpus import Source

SIZE = 10_000  # pairs; chunks end where a part does
KEPT_IN_MEMORY = 100_000  # pairs: a corpus of no more is read (or made by its grammar) only once


class Chunk(NamedTuple):
    """Consecutive pairs; `first` counts all pairs read from 0, `part` the corpora."""

    first: int
    part: int
    sources: list[str]
    targets: list[str]

    def __len__(self) -> int:  # type: ignore[override]
        return len(self.sources)


class Chunks:
    """Iterable again and again over the same text."""

    def __init__(self, sources: list[Source]) -> None:
        self._sources = sources
        self._memory: list[Chunk] | None = None

    def __iter__(self) -> Iterator[Chunk]:
        return iter(self._memory) if self._memory is not None else self._read()

    def after(self, pairs: int) -> Iterator[Chunk]:
        """The chunks that follow the first `pairs` pairs, which make whole chunks."""
        for chunk in self:
            if chunk.first >= pairs:
                yield chunk

    def _read(self) -> Iterator[Chunk]:
        kept: list[Chunk] | None = []
        count = 0
        for number, source in enumerate(self._sources):
            pairs = source.read()
            while block := list(islice(pairs, SIZE)):
                chunk = Chunk(count, number, [pair.source for pair in block], [pair.target for pair in block])
                count += len(block)
                if kept is not None:
                    kept.append(chunk)
                if count > KEPT_IN_MEMORY:
                    kept = None
                yield chunk
        self._memory = kept
