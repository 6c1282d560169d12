"""Interface of all corpora: pairs of sentences by split, languages, provenance; and subsets of their pairs."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, compress, islice
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

Alignment = tuple[tuple[int, int], ...]


class Pair(NamedTuple):
    """A sentence and its translation; `alignment` links source word i to target word j, counted from 0."""

    source: str
    target: str
    alignment: Alignment = ()


@dataclass(frozen=True)
class TestSet:
    """Sentences to be translated, and one list of references for each reference translator."""

    __test__: ClassVar[bool] = False  # pytest: not a test class

    name: str
    sources: list[str]
    references: list[list[str]]
    alignments: list[Alignment] | None = None

    @classmethod
    def of(cls, pairs: Sequence[Pair], alignments: list[Alignment] | None = None) -> "TestSet":
        """The set "test" of pairs, with their targets as the one reference."""
        return cls("test", [pair.source for pair in pairs], [[pair.target for pair in pairs]], alignments)


class CorpusPart(NamedTuple):
    """A part of the training text by name, with its weight where several are mixed by weight."""

    name: str
    weight: float | None
    read: Callable[[], Iterator[Pair]]


class Corpus(Protocol):
    """Pairs are iterated, never held whole: a corpus may be larger than memory. The last three have defaults."""

    name: str
    source_language: str
    target_language: str

    def train(self) -> Iterator[Pair]:
        """The training pairs, the same ones in the same order at each call."""

    def valid(self) -> Iterator[Pair]:
        """The pairs for validation during training."""

    def test_sets(self) -> dict[str, TestSet]:
        """The held-out sets by name; 'test' is the default one. Empty where there is none."""

    def provenance(self) -> dict[str, Any]:
        """Facts about the text: settings or file names, sizes, checksums; no absolute path."""

    def identity(self) -> dict[str, Any]:
        """What decides the text: two corpora with equal identities give the same pairs. Fast."""
        return self.provenance()

    def parts(self) -> list[CorpusPart]:
        """What `train` is made of, in its order; one part unless several corpora are mixed."""
        return [CorpusPart(self.name, None, self.train)]

    def expected_pairs(self) -> int | None:
        """About how many training pairs there are, for a progress bar; None where only reading would tell."""
        return None


PairReader = Callable[[], Iterator[Pair]]


@dataclass(frozen=True)
class Subset:
    """Applied to the training pairs: first joined, then `max_pairs` of the examples kept.

    `join` = k makes one example of k consecutive pairs, for `join_share` of the examples; the others stay single
    sentences. A pair that is empty on both sides ends a document, and nothing is joined across it.
    """

    max_pairs: int | None = None
    subset: str = "first"  # or random
    join: int = 1
    join_share: float = 1.0
    seed: int = 1

    def apply(self, read: PairReader) -> Iterator[Pair]:
        """The chosen pairs in the corpus's order; `read` is called once, or twice for a random subset."""
        if self.max_pairs is None or self.subset == "first":
            return islice(self._joined(read()), self.max_pairs)
        count = sum(1 for _ in self._joined(read()))
        selected = np.zeros(count, dtype=bool)
        selected[np.random.default_rng(self.seed).permutation(count)[: self.max_pairs]] = True
        return compress(self._joined(read()), selected)

    def identity(self) -> dict[str, Any]:
        """The settings that decide the text; empty for a whole corpus, sentence by sentence."""
        return {} if self == Subset() else asdict(self)

    def _joined(self, pairs: Iterator[Pair]) -> Iterator[Pair]:
        return pairs if self.join == 1 or self.join_share == 0 else self._join(pairs)

    def _join(self, pairs: Iterator[Pair]) -> Iterator[Pair]:
        rng = np.random.default_rng(self.seed)
        buffer: list[Pair] = []
        length = 0  # of the example being made
        for pair in chain(pairs, [Pair("", "")]):
            length = length or (self.join if rng.random() < self.join_share else 1)
            ends_document = not pair.source.strip() and not pair.target.strip()
            if not ends_document:
                buffer.append(pair)
            if buffer and (ends_document or len(buffer) == length):
                yield Pair(" ".join(p.source for p in buffer), " ".join(p.target for p in buffer))
                buffer, length = [], 0
