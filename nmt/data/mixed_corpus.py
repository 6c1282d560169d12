"""Several corpora trained on together: one after the other, or by weight."""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from nmt.data.corpus import Corpus, CorpusPart, Pair, TestSet
from nmt.data.hub import HubCorpus
from nmt.data.text import TextCorpus
from nmt.errors import ConfigError


class MixedCorpus(Corpus):
    """`parts` by name: corpora, or the settings of data=text or data=hub (which have a `path`).

    Without `weights` every pair of every part is used once an epoch. With them, {"news": 3, "web": 1}, an epoch has as
    many pairs as before, three quarters of them from news: repeated where the part is too small for its share, and
    another random choice in each epoch where it is too large. Validation and test sets are those of `held_out`, or of
    the first part that has any.
    """

    def __init__(
        self,
        parts: Mapping[str, Corpus | Mapping[str, Any]] | None,
        weights: Mapping[str, float] | None = None,
        held_out: str | None = None,
        source: str | None = None,
        target: str | None = None,
        name: str = "mix",
    ) -> None:
        if not parts:
            raise ConfigError(
                "data=mix needs parts, such as +data.parts.news.train_src=a.en +data.parts.news.train_tgt=a.fr"
            )
        self.name = name
        self.source_language, self.target_language = source or "", target or ""
        self._parts = {key: self._corpus(key, part) for key, part in parts.items()}
        self._weights = dict(weights or {})
        self._held_out = held_out
        for key in (*self._weights, *([held_out] if held_out else [])):
            if key not in self._parts:
                raise ConfigError(f"data.weights or data.held_out names {key}; the parts are {', '.join(self._parts)}")
        self._held_out_parts = [self._parts[held_out]] if held_out else list(self._parts.values())

    def train(self) -> Iterator[Pair]:
        return chain.from_iterable(part.train() for part in self._parts.values())

    def valid(self) -> Iterator[Pair]:
        return next((iter(pairs) for part in self._held_out_parts if (pairs := list(part.valid()))), iter(()))

    def test_sets(self) -> dict[str, TestSet]:
        return next((sets for part in self._held_out_parts if (sets := part.test_sets())), {})

    def parts(self) -> list[CorpusPart]:
        weights = {key: self._weights.get(key, 1.0) if self._weights else None for key in self._parts}
        return [CorpusPart(key, weights[key], part.train) for key, part in self._parts.items()]

    def provenance(self) -> dict[str, Any]:
        parts = {key: part.provenance() for key, part in self._parts.items()}
        return {"corpus": self.name, "parts": parts, "weights": self._weights or None}

    def identity(self) -> dict[str, Any]:
        parts = {key: part.identity() for key, part in self._parts.items()}
        return {"mix": parts, "weights": self._weights or None, "held_out": self._held_out}

    def expected_pairs(self) -> int | None:
        counts = [count for part in self._parts.values() if (count := part.expected_pairs()) is not None]
        return sum(counts) if len(counts) == len(self._parts) else None

    def _corpus(self, key: str, part: Corpus | Mapping[str, Any]) -> Corpus:
        if not isinstance(part, Mapping):
            return part
        settings = {"source": self.source_language or None, "target": self.target_language or None, **part}
        return HubCorpus(**settings) if "path" in part else TextCorpus(**{"name": key, **settings})
