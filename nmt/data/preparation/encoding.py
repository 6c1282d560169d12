"""The second pass over a corpus: tokenizers learned from a sample of the kept pairs, then all pairs as ids in files."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nmt.data.cleaning import Verdict, looks_tokenised
from nmt.data.corpus import Pair, TestSet
from nmt.data.preparation.filtering import (
    EXAMPLES,
    Chunk,
    CorpusChunks,
    collect_examples,
    run_pass,
    shortened_example,
)
from nmt.data.preparation.resumable_arrays import ResumableArrays
from nmt.data.text import words
from nmt.data.tokenizer import FIRST_BYTE, UNK, Tokenizer, train_tokenizer
from nmt.training_settings import TokenizerSettings

LENGTH_BIN = 10  # words in a bin of the length histogram
LENGTH_BINS = 21  # the last one is open
_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")

Tally = dict[str, Any]  # counts and lists of counts
TokenizerPair = tuple[Tokenizer, Tokenizer]
ParallelText = tuple[list[str], list[str]]


def sample_pairs(chunks: CorpusChunks, verdicts: np.ndarray, size: int, seed: int) -> ParallelText:
    """Sources and targets of `size` kept pairs, or of all where there are fewer, in the corpus's order."""
    indices = np.flatnonzero(verdicts == Verdict.KEPT)
    if len(indices) > size:
        indices = np.sort(np.random.default_rng(seed).choice(indices, size, replace=False))
    sources: list[str] = []
    targets: list[str] = []
    for chunk in chunks:
        first, end = np.searchsorted(indices, (chunk.first, chunk.first + len(chunk)))
        inside = (indices[first:end] - chunk.first).tolist()
        sources += [chunk.sources[i] for i in inside]
        targets += [chunk.targets[i] for i in inside]
    return sources, targets


def learn_tokenizers(sides: ParallelText, settings: TokenizerSettings) -> TokenizerPair:
    """One vocabulary a side, or a joint one. The target's normalises nothing (see data/tokenizer.py)."""
    sources, targets = sides
    if settings.joint:
        joint = train_tokenizer(sources + targets, settings, normalises=False)
        return Tokenizer(joint.model, normalises=True), joint
    return train_tokenizer(sources, settings, normalises=True), train_tokenizer(targets, settings, normalises=False)


def vocabulary_coverage(
    sides: ParallelText, valid: Sequence[Pair], tests: Mapping[str, TestSet]
) -> tuple[dict[str, float], list[str]]:
    """How much of each held-out set's running words the sample knows, and warnings where its sides look swapped."""
    vocabularies = [_vocabulary(side) for side in sides]
    held_out = {"valid": ([pair.source for pair in valid], [pair.target for pair in valid])}
    held_out |= {name: (test.sources, test.references[0]) for name, test in tests.items() if test.references}
    coverage: dict[str, float] = {}
    warnings: list[str] = []
    for name, texts in held_out.items():
        straight = [_share(side, vocabulary) for side, vocabulary in zip(texts, vocabularies, strict=True)]
        crossed = [_share(side, vocabulary) for side, vocabulary in zip(texts, reversed(vocabularies), strict=True)]
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


class EncodedSide(NamedTuple):
    """The ids of one side of the kept pairs of a chunk, concatenated."""

    ids: np.ndarray
    lengths: np.ndarray
    tally: Tally


class EncodedChunk(NamedTuple):
    """The ids of the kept pairs of one chunk."""

    verdicts: np.ndarray  # (n,) uint8: KEPT, EMPTY or PIECES
    src: EncodedSide
    tgt: EncodedSide
    rewritten: list[int]  # indices of targets that decode to another text


@dataclass(frozen=True)
class PairEncoder:
    """Runs in any process. Pairs with an empty side or more than `max_pieces` pieces (EOS not counted) are left out."""

    source: Tokenizer
    target: Tokenizer
    max_pieces: int

    def __call__(self, sources: Sequence[str], targets: Sequence[str]) -> EncodedChunk:
        cleaned = self.source.cleaned(sources)
        src, tgt = self.source.encode_cleaned(cleaned), self.target.encode_batch(targets)
        verdicts = np.array([self._verdict(len(s), len(t)) for s, t in zip(src, tgt, strict=True)], dtype=np.uint8)
        kept = np.flatnonzero(verdicts == Verdict.KEPT).tolist()
        decoded = self.target.decode_batch([tgt[i] for i in kept])
        rewritten = [i for i, text in zip(kept, decoded, strict=True) if text != targets[i]]
        changed = sum(sources[i] != cleaned[i] for i in kept)
        sides = (_encoded_side(sources, src, kept, changed), _encoded_side(targets, tgt, kept, len(rewritten)))
        return EncodedChunk(verdicts, *sides, rewritten)

    def _verdict(self, *lengths: int) -> Verdict:
        if min(lengths) == 0:
            return Verdict.EMPTY
        return Verdict.PIECES if max(lengths) > self.max_pieces else Verdict.KEPT


def _encoded_side(
    texts: Sequence[str], sequences: Sequence[Sequence[int]], kept: Sequence[int], rewritten: int
) -> EncodedSide:
    lengths = np.fromiter((len(sequences[i]) for i in kept), dtype=np.int64, count=len(kept))
    ids = np.fromiter(chain.from_iterable(sequences[i] for i in kept), dtype=np.int32, count=int(lengths.sum()))
    lines = [texts[i] for i in kept]
    counts = np.fromiter((len(words(line)) for line in lines), dtype=np.int64, count=len(lines))
    tally = {
        "words": int(counts.sum()),
        "pieces": len(ids),
        "byte_pieces": int(((ids >= FIRST_BYTE) & (ids < FIRST_BYTE + 256)).sum()),
        "unknown": int((ids == UNK).sum()),
        "histogram": np.bincount(np.minimum(counts // LENGTH_BIN, LENGTH_BINS - 1), minlength=LENGTH_BINS).tolist(),
        "tokenised": sum(map(looks_tokenised, lines)),
        "control": sum(1 for line in lines if not line.isprintable() and _CONTROL.search(line)),
        "rewritten": rewritten,
    }
    return EncodedSide(ids, lengths, tally)


def encode_corpus(
    folder: Path, chunks: CorpusChunks, verdicts: np.ndarray, encode: PairEncoder, parts: int, workers: int
) -> ResumableArrays:
    """Resumes where it stopped. The result holds ids and offsets of both sides, and statistics in its state."""
    ids = "uint16" if max(encode.source.vocab_size, encode.target.vocab_size) <= 2**16 else "int32"
    types = {"src.ids": ids, "src.offsets": "int64", "tgt.ids": ids, "tgt.offsets": "int64"}
    arrays = ResumableArrays(folder, types, state_file="encoding.json")
    if not arrays.state:
        arrays.append(**{"src.offsets": np.zeros(1), "tgt.offsets": np.zeros(1)})
        late = {Verdict.EMPTY.reason: 0, Verdict.PIECES.reason: 0}
        arrays.state = {
            "read": 0, "late": late, "by_part": [0] * parts, "src": {}, "tgt": {}, "ends": [0, 0], "ids": ids,
            "examples": {}, "rewritten": [],
        }  # fmt: skip

    def verdicts_of(chunk: Chunk) -> np.ndarray:
        return verdicts[chunk.first : chunk.first + len(chunk)]

    def kept_pairs(chunk: Chunk) -> tuple[list[str], list[str]]:
        indices = np.flatnonzero(verdicts_of(chunk) == Verdict.KEPT).tolist()
        return [chunk.sources[i] for i in indices], [chunk.targets[i] for i in indices]

    def record(arrays: ResumableArrays, chunk: Chunk, encoded: EncodedChunk) -> None:
        _record(arrays, chunk, verdicts_of(chunk), encoded)

    run_pass(arrays, chunks, encode, kept_pairs, record, "encoding pairs", len(verdicts), workers)
    arrays.close()
    return arrays


def _record(arrays: ResumableArrays, chunk: Chunk, verdicts: np.ndarray, encoded: EncodedChunk) -> None:
    """The ids of a chunk to the files, its statistics to the state."""
    state = arrays.state
    for i, (name, side) in enumerate((("src", encoded.src), ("tgt", encoded.tgt))):
        arrays.append(**{f"{name}.ids": side.ids, f"{name}.offsets": state["ends"][i] + np.cumsum(side.lengths)})
        state["ends"][i] += len(side.ids)
        state[name] = add_tallies(state[name], side.tally)
    kept = np.flatnonzero(verdicts == Verdict.KEPT)
    final = verdicts.copy()
    final[kept] = encoded.verdicts
    collect_examples(state["examples"], chunk, final)
    for index in encoded.rewritten[: EXAMPLES - len(state["rewritten"])]:
        state["rewritten"].append(shortened_example(chunk, int(kept[index])))
    for verdict in (Verdict.EMPTY, Verdict.PIECES):
        state["late"][verdict.reason] += int((encoded.verdicts == verdict).sum())
    state["by_part"][chunk.part] += len(encoded.src.lengths)
    state["read"] += len(chunk)


def add_tallies(total: Tally, part: Tally) -> Tally:
    """Counts added key by key."""
    added = {key: np.add(total[key], part[key]).tolist() for key in total}
    return added or part
