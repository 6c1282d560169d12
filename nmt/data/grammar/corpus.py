"""The embedded corpus as training, validation and test pairs."""

from collections.abc import Iterator
from random import Random
from typing import Any

from nmt.data.corpus import Corpus, Pair, TestSet
from nmt.data.grammar.sentences import sentence
from nmt.data.grammar.tokens import to_pair
from nmt.errors import ConfigError

# (words at least, words at most, share): half of the training sentences have under 10 words, so that alignments are
# learned early, and a tail goes to 70.
TRAINING_LENGTHS = (
    (3, 9, 0.50),
    (10, 19, 0.20),
    (20, 29, 0.12),
    (30, 39, 0.08),
    (40, 49, 0.05),
    (50, 59, 0.03),
    (60, 70, 0.02),
)
# In each 100 test sentences: how many of each length. 15 or more to 50 words (bins are held exactly), then 10.
TEST_BINS = ((3, 9, 16), (10, 19, 16), (20, 29, 16), (30, 39, 16), (40, 49, 16), (50, 59, 10), (60, 72, 10))

_STREAMS = {"train": 1, "valid": 2, "test": 3}  # one source of chance each, so that sizes do not disturb each other


class GrammarCorpus(Corpus):
    """English-German sentence pairs with their gold alignment, made by the grammar; same seed, same bytes.

    No source sentence is in two splits, and none is twice in the test or validation set. Lengths are in English words
    as `str.split` counts them: training as TRAINING_LENGTHS, validation and test in even bins (TEST_BINS).
    Errors: ConfigError if a size is below 1.
    """

    name = "grammar"
    source_language = "en"
    target_language = "de"

    def __init__(
        self, seed: int = 1, train_pairs: int = 24_000, valid_pairs: int = 500, test_pairs: int = 2_200
    ) -> None:
        sizes = {"train_pairs": train_pairs, "valid_pairs": valid_pairs, "test_pairs": test_pairs}
        for key, size in sizes.items():
            if size < 1:
                raise ConfigError(f"data.{key}={size}: a split needs at least 1 pair")
        self.seed = seed
        self.train_pairs = train_pairs
        self.valid_pairs = valid_pairs
        self.test_pairs = test_pairs
        self._held_out: tuple[list[Pair], list[Pair]] | None = None

    def train(self) -> Iterator[Pair]:
        """The training pairs, made as they are asked for."""
        valid, test = self._valid_and_test()
        held_out = {pair.source for pair in valid} | {pair.source for pair in test}
        rng = self._rng("train")
        made = 0
        while made < self.train_pairs:
            pair = to_pair(sentence(rng, _training_length(rng)))
            if pair.source not in held_out:
                made += 1
                yield pair

    def valid(self) -> Iterator[Pair]:
        """The pairs on which training is watched."""
        yield from self._valid_and_test()[0]

    def test_sets(self) -> dict[str, TestSet]:
        """The one test set, with gold alignments."""
        pairs = self._valid_and_test()[1]
        sources = [pair.source for pair in pairs]
        references = [[pair.target for pair in pairs]]
        return {"test": TestSet("test", sources, references, [pair.alignment for pair in pairs])}

    def expected_pairs(self) -> int:
        return self.train_pairs

    def provenance(self) -> dict[str, Any]:
        """The settings; they are all that the corpus is made from."""
        return {
            "corpus": "grammar",
            "origin": "made by nmt.data.grammar",
            "languages": ["en", "de"],
            "seed": self.seed,
            "train_pairs": self.train_pairs,
            "valid_pairs": self.valid_pairs,
            "test_pairs": self.test_pairs,
        }

    def _rng(self, split: str) -> Random:
        return Random(self.seed * 10 + _STREAMS[split])

    def _valid_and_test(self) -> tuple[list[Pair], list[Pair]]:
        if self._held_out is None:
            seen: set[str] = set()
            test = _even(self._rng("test"), self.test_pairs, seen)
            valid = _even(self._rng("valid"), self.valid_pairs, seen)
            self._held_out = (valid, test)
        return self._held_out


def _training_length(rng: Random) -> int:
    r = rng.random()
    shortest, longest = TRAINING_LENGTHS[-1][:2]
    for low, high, share in TRAINING_LENGTHS:
        if r < share:
            shortest, longest = low, high
            break
        r -= share
    return shortest + int(rng.random() * (longest - shortest + 1))


def _even(rng: Random, pairs: int, seen: set[str]) -> list[Pair]:
    """Pairs whose lengths fill TEST_BINS evenly, none of them in `seen`, in an order mixed by length."""
    schedule: list[tuple[int, int]] = []
    rest = [0] * len(TEST_BINS)
    total = sum(share for _, _, share in TEST_BINS)
    while len(schedule) < pairs:  # at each place the bin that is furthest behind its share
        for b, (_, _, share) in enumerate(TEST_BINS):
            rest[b] += share
        b = rest.index(max(rest))
        rest[b] -= total
        schedule.append(TEST_BINS[b][:2])
    made: list[Pair] = []
    for shortest, longest in schedule:
        while True:
            pair = to_pair(sentence(rng, shortest + int(rng.random() * (longest - shortest + 1))))
            length = len(pair.source.split())
            if shortest <= length <= longest + (longest > 60) * 3 and pair.source not in seen:
                break
        seen.add(pair.source)
        made.append(pair)
    return made
