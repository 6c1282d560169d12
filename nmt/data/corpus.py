"""What every corpus gives: pairs of sentences by split, languages, and where they come from."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

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


class Source(NamedTuple):
    """A stretch of the training text with a name of its own, and its weight where several are mixed by weight."""

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
        """The pairs on which training is watched."""

    def test_sets(self) -> dict[str, TestSet]:
        """The held-out sets by name; 'test' is the default one. Empty where there is none."""

    def provenance(self) -> dict[str, Any]:
        """Facts for the record: settings or file names, sizes, checksums; no absolute path."""

    def identity(self) -> dict[str, Any]:
        """What decides the text: two corpora with the same one give the same pairs. Quick to ask for."""
        return self.provenance()

    def sources(self) -> list[Source]:
        """What `train` is made of, in its order; one source unless several corpora are mixed."""
        return [Source(self.name, None, self.train)]

    def expected_pairs(self) -> int | None:
        """About how many training pairs there are, for a progress bar; None where only reading would tell."""
        return None
