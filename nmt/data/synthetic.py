"""Corpora that are made rather than read; copy and reverse, which require memory of positions and nothing else.

Their sentences are uniform random strings of symbols (a, b, ... z, aa, ab, ...), lengths uniform. The target is the
source, or the source backwards; the alignment is known by construction.
"""

from collections.abc import Iterator
from functools import cached_property
from random import Random
from string import ascii_lowercase
from typing import Any

from nmt.data.corpus import Corpus, Pair, TestSet
from nmt.errors import ConfigError


def symbol(index: int) -> str:
    """The word of a symbol: 0 -> a, 25 -> z, 26 -> aa, as the columns of a spreadsheet."""
    word = ""
    index += 1
    while index:
        index, letter = divmod(index - 1, 26)
        word = ascii_lowercase[letter] + word
    return word


class GeneratedCorpus(Corpus):
    """Pairs made by chance from a seed: same settings, same bytes."""

    def __init__(self, seed: int, train_pairs: int, valid_pairs: int, test_pairs: int) -> None:
        self.seed = seed
        self.sizes = {"train_pairs": train_pairs, "valid_pairs": valid_pairs, "test_pairs": test_pairs}

    def draw(self, rng: Random, taken: set[str]) -> Pair:
        """A training pair whose source is not taken."""
        raise NotImplementedError

    def draw_held_out(self, rng: Random, size: int, taken: set[str]) -> Iterator[Pair]:
        """Pairs of a validation or test set; their sources are added to `taken`."""
        raise NotImplementedError

    def train(self) -> Iterator[Pair]:
        """The training pairs, made as they are asked for."""
        taken = {pair.source for split in self._held_out for pair in split}
        rng = self._rng("train")
        return (self.draw(rng, taken) for _ in range(self.sizes["train_pairs"]))

    def valid(self) -> Iterator[Pair]:
        return iter(self._held_out[0])

    def test_sets(self) -> dict[str, TestSet]:
        """The one test set, with gold alignments."""
        pairs = self._held_out[1]
        return {"test": TestSet.of(pairs, [pair.alignment for pair in pairs])}

    def expected_pairs(self) -> int:
        return self.sizes["train_pairs"]

    def _rng(self, split: str) -> Random:
        """A stream for each split, so that their sizes do not disturb each other."""
        return Random(self.seed * 10 + {"train": 1, "valid": 2, "test": 3}[split])

    @cached_property
    def _held_out(self) -> tuple[list[Pair], list[Pair]]:
        """Validation and test."""
        taken: set[str] = set()
        test = list(self.draw_held_out(self._rng("test"), self.sizes["test_pairs"], taken))
        return list(self.draw_held_out(self._rng("valid"), self.sizes["valid_pairs"], taken)), test


class SyntheticCorpus(GeneratedCorpus):
    """Random strings of `symbols` symbols and their copy, or with `reverse` their mirror image.

    No sentence is twice in validation and test, nor any of these in training, but for lengths with so few possible
    sentences that training would be left with none: at these `shared_lengths` every split is drawn from all of them.
    """

    def __init__(
        self,
        reverse: bool = False,
        symbols: int = 26,
        min_length: int = 1,
        max_length: int = 20,
        train_pairs: int = 20_000,
        valid_pairs: int = 200,
        test_pairs: int = 1_000,
        seed: int = 1,
    ) -> None:
        super().__init__(seed, train_pairs, valid_pairs, test_pairs)
        if max_length < min_length:
            raise ConfigError(f"data.max_length={max_length} is below data.min_length={min_length}: raise it")
        self.name = "reverse" if reverse else "copy"
        self.source_language = self.target_language = "symbols"
        self.reverse, self.symbols = reverse, symbols
        self.min_length, self.max_length = min_length, max_length
        self._words = [symbol(i) for i in range(symbols)]
        held_out_per_length = (valid_pairs + test_pairs) / (max_length - min_length + 1)
        enough = 4 * held_out_per_length + 16  # the draws of one length scatter around their mean
        self.shared_lengths = [n for n in range(min_length, max_length + 1) if symbols ** min(n, 64) < enough]
        self._shared = frozenset(self.shared_lengths)

    def provenance(self) -> dict[str, Any]:
        """The settings, and the lengths at which test sentences may be in training."""
        return {
            "corpus": self.name,
            "origin": "made by nmt.data.synthetic",
            "symbols": self.symbols,
            "min_length": self.min_length,
            "max_length": self.max_length,
            **self.sizes,
            "seed": self.seed,
            "shared_lengths": self.shared_lengths,
        }

    def draw(self, rng: Random, taken: set[str]) -> Pair:
        """A sentence that is not taken, or of a shared length. Only `random()` is the same in every Python."""
        while True:
            length = self.min_length + int(rng.random() * (self.max_length - self.min_length + 1))
            words = [self._words[int(rng.random() * self.symbols)] for _ in range(length)]
            source = " ".join(words)
            if length in self._shared or source not in taken:
                break
        target = words[::-1] if self.reverse else words
        links = ((i, length - 1 - i if self.reverse else i) for i in range(length))
        return Pair(source, " ".join(target), tuple(links))

    def draw_held_out(self, rng: Random, size: int, taken: set[str]) -> Iterator[Pair]:
        for _ in range(size):
            pair = self.draw(rng, taken)
            taken.add(pair.source)
            yield pair
