"""A seeded sample of the training pairs: what pieces are learned from, and what held-out text is compared with."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from nmt.data.corpus import Pair, TestSet
from nmt.data.preparation.chunks import Chunks
from nmt.data.preparation.cleaning import Verdict
from nmt.data.text import words
from nmt.data.tokenizer import Tokenizer, TokenizerSettings, train_tokenizer

Sides = tuple[list[str], list[str]]


def sample(chunks: Chunks, verdicts: np.ndarray, size: int, seed: int) -> Sides:
    """Sources and targets of `size` kept pairs, or of all where there are fewer, in the corpus's order."""
    places = np.flatnonzero(verdicts == Verdict.KEPT)
    if len(places) > size:
        places = np.sort(np.random.default_rng(seed).choice(places, size, replace=False))
    sources: list[str] = []
    targets: list[str] = []
    for chunk in chunks:
        first, end = np.searchsorted(places, (chunk.first, chunk.first + len(chunk)))
        inside = (places[first:end] - chunk.first).tolist()
        sources += [chunk.sources[i] for i in inside]
        targets += [chunk.targets[i] for i in inside]
    return sources, targets


def learn_pieces(sides: Sides, settings: TokenizerSettings) -> tuple[Tokenizer, Tokenizer]:
    """One vocabulary a side, or a joint one. The target's normalises nothing (see data/tokenizer.py)."""
    sources, targets = sides
    if settings.joint:
        joint = train_tokenizer(sources + targets, settings, normalises=False)
        return Tokenizer(joint.model, normalises=True), joint
    return train_tokenizer(sources, settings, normalises=True), train_tokenizer(targets, settings, normalises=False)


def compare_held_out(
    sides: Sides, valid: Sequence[Pair], tests: Mapping[str, TestSet]
) -> tuple[dict[str, float], list[str]]:
    """How much of each held-out set's running words the sample knows, and warnings where its sides look swapped."""
    known = [_vocabulary(side) for side in sides]
    held_out = {"valid": ([pair.source for pair in valid], [pair.target for pair in valid])}
    held_out |= {name: (test.sources, test.references[0]) for name, test in tests.items() if test.references}
    coverage: dict[str, float] = {}
    warnings: list[str] = []
    for name, texts in held_out.items():
        straight = [_share(side, vocabulary) for side, vocabulary in zip(texts, known, strict=True)]
        crossed = [_share(side, vocabulary) for side, vocabulary in zip(texts, reversed(known), strict=True)]
        if not any(straight + crossed):
            continue
        coverage |= {f"{name} source": round(straight[0], 4), f"{name} target": round(straight[1], 4)}
        if sum(crossed) > sum(straight):
            warnings.append(
                f"the sides of {name} look swapped: its source has {100 * crossed[0]:.0f}% of its words in common with "
                f"the target side of the training text, {100 * straight[0]:.0f}% with the source side"
            )
    return coverage, warnings


def _vocabulary(texts: Iterable[str]) -> set[str]:
    return {word for text in texts for word in words(text.casefold())}


def _share(texts: Sequence[str], vocabulary: set[str]) -> float:
    running = [word for text in texts for word in words(text.casefold())]
    return sum(word in vocabulary for word in running) / len(running) if running else 0.0
