"""Which pairs of a corpus are read: the first or a random subset, and consecutive sentences joined into one."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

import numpy as np

from nmt.data.corpus import Pair
from nmt.errors import ConfigError, require_whole

Read = Callable[[], Iterator[Pair]]


@dataclass(frozen=True)
class Selection:
    """Applied to the training pairs: first joined, then `max_pairs` of the examples taken.

    `join` = k makes one example of k consecutive pairs, for `join_share` of the examples; the others stay single
    sentences. A pair that is empty on both sides ends a document, and nothing is joined across it.
    """

    max_pairs: int | None = None
    subset: str = "first"  # or random
    join: int = 1
    join_share: float = 1.0
    seed: int = 1

    def __post_init__(self) -> None:
        if self.max_pairs is not None:
            require_whole("data.max_pairs", self.max_pairs)
        require_whole("data.join", self.join)
        if self.subset not in ("first", "random"):
            raise ConfigError(f"data.subset={self.subset}: write first or random")
        if not 0 <= self.join_share <= 1:
            raise ConfigError(f"data.join_share={self.join_share}: it is a share, from 0 to 1")

    def of(self, read: Read) -> Iterator[Pair]:
        """The chosen pairs in the corpus's order; `read` is called once, or twice for a random subset."""
        if self.max_pairs is None:
            return self._joined(read())
        if self.subset == "first":
            return islice(self._joined(read()), self.max_pairs)
        return self._random(read, self.max_pairs)

    def identity(self) -> dict[str, Any]:
        """What of it decides the text; empty for a whole corpus, sentence by sentence."""
        return {} if self == Selection() else asdict(self)

    def _random(self, read: Read, size: int) -> Iterator[Pair]:
        count = sum(1 for _ in self._joined(read()))
        chosen = np.zeros(count, dtype=bool)
        chosen[np.random.default_rng(self.seed).permutation(count)[:size]] = True
        for pair, taken in zip(self._joined(read()), chosen, strict=True):
            if taken:
                yield pair

    def _joined(self, pairs: Iterator[Pair]) -> Iterator[Pair]:
        if self.join == 1 or self.join_share == 0:
            return pairs
        return self._join(pairs)

    def _join(self, pairs: Iterator[Pair]) -> Iterator[Pair]:
        rng = np.random.default_rng(self.seed)
        waiting: list[Pair] = []
        wanted = self._next_length(rng)
        for pair in pairs:
            ends_document = not pair.source.strip() and not pair.target.strip()
            if not ends_document:
                waiting.append(pair)
            if waiting and (ends_document or len(waiting) == wanted):
                yield Pair(" ".join(p.source for p in waiting), " ".join(p.target for p in waiting))
                waiting, wanted = [], self._next_length(rng)
        if waiting:
            yield Pair(" ".join(p.source for p in waiting), " ".join(p.target for p in waiting))

    def _next_length(self, rng: np.random.Generator) -> int:
        return self.join if rng.random() < self.join_share else 1
