"""The second pass over a corpus: tokenizers learned from a sample of the kept pairs, then all pairs as ids in files."""

import re
import time
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
    PROGRESS_SECONDS,
    SAVE_SECONDS,
    Chunk,
    CorpusChunks,
    collect_examples,
    shortened_example,
)
from nmt.data.preparation.resumable_arrays import ResumableArrays
from nmt.data.preparation.worker_pool import map_in_order
from nmt.data.text import words
from nmt.data.tokenizer import FIRST_BYTE, UNK, Tokenizer, train_tokenizer
from nmt.progress import progress
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


class EncodedChunk(NamedTuple):
    """The ids of the kept pairs of one chunk, concatenated."""

    verdicts: np.ndarray  # (n,) uint8: KEPT, EMPTY or PIECES
    src_ids: np.ndarray
    src_lengths: np.ndarray
    tgt_ids: np.ndarray
    tgt_lengths: np.ndarray
    src_tally: Tally
    tgt_tally: Tally
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
        src, tgt = [src[i] for i in kept], [tgt[i] for i in kept]
        kept_sources, kept_targets = [sources[i] for i in kept], [targets[i] for i in kept]
        decoded = self.target.decode_batch(tgt)
        rewritten = [i for i, text, again in zip(kept, kept_targets, decoded, strict=True) if text != again]
        src_ids, src_lengths = _flat(src)
        tgt_ids, tgt_lengths = _flat(tgt)
        src_tally = _tally(kept_sources, src_ids)
        src_tally["rewritten"] = sum(sources[i] != cleaned[i] for i in kept)
        tgt_tally = _tally(kept_targets, tgt_ids)
        tgt_tally["rewritten"] = len(rewritten)
        return EncodedChunk(verdicts, src_ids, src_lengths, tgt_ids, tgt_lengths, src_tally, tgt_tally, rewritten)

    def _verdict(self, *lengths: int) -> Verdict:
        if min(lengths) == 0:
            return Verdict.EMPTY
        return Verdict.PIECES if max(lengths) > self.max_pieces else Verdict.KEPT


def encode_corpus(
    folder: Path, chunks: CorpusChunks, verdicts: np.ndarray, encode: PairEncoder, parts: int, workers: int
) -> ResumableArrays:
    """Resumes where it stopped. The result holds ids and offsets of both sides, and statistics in its state."""
    ids = "uint16" if max(encode.source.vocab_size, encode.target.vocab_size) <= 2**16 else "int32"
    types = {"src.ids": ids, "src.offsets": "int64", "tgt.ids": ids, "tgt.offsets": "int64"}
    arrays = ResumableArrays(folder, types, state_file="encoding.json")
    if not arrays.state:
        arrays.append(**{"src.offsets": np.zeros(1), "tgt.offsets": np.zeros(1)})
        arrays.state = {
            "read": 0, "late": {}, "by_part": [0] * parts, "src": {}, "tgt": {}, "ends": [0, 0], "ids": ids,
            "examples": {}, "rewritten": [],
        }  # fmt: skip

    def kept_pairs(chunk: Chunk) -> tuple[list[str], list[str]]:
        indices = np.flatnonzero(verdicts[chunk.first : chunk.first + len(chunk)] == Verdict.KEPT).tolist()
        return [chunk.sources[i] for i in indices], [chunk.targets[i] for i in indices]

    saved = time.monotonic()
    with progress("encoding pairs", len(verdicts), line_every=PROGRESS_SECONDS) as advance:
        advance(arrays.state["read"])
        rest = chunks.after(arrays.state["read"])
        for chunk, encoded in map_in_order(encode, rest, kept_pairs, workers):
            _append_ids(arrays, chunk, verdicts[chunk.first : chunk.first + len(chunk)], encoded)
            advance(len(chunk))
            if time.monotonic() - saved > SAVE_SECONDS:
                arrays.save()
                saved = time.monotonic()
    arrays.save()
    arrays.close()
    return arrays


def _append_ids(arrays: ResumableArrays, chunk: Chunk, verdicts: np.ndarray, encoded: EncodedChunk) -> None:
    """The ids of a chunk to the files, its statistics to the state."""
    state = arrays.state
    offsets = []
    for i, lengths in enumerate((encoded.src_lengths, encoded.tgt_lengths)):
        offsets.append(state["ends"][i] + np.cumsum(lengths))
        state["ends"][i] += int(lengths.sum())
    arrays.append(
        **{
            "src.ids": encoded.src_ids, "src.offsets": offsets[0],
            "tgt.ids": encoded.tgt_ids, "tgt.offsets": offsets[1],
        }
    )  # fmt: skip
    kept_indices = np.flatnonzero(verdicts == Verdict.KEPT)
    final = verdicts.copy()
    final[kept_indices] = encoded.verdicts
    collect_examples(state["examples"], chunk, final)
    for index in encoded.rewritten[: EXAMPLES - len(state["rewritten"])]:
        state["rewritten"].append(shortened_example(chunk, int(kept_indices[index])))
    for verdict, count in zip(*np.unique(encoded.verdicts[encoded.verdicts > 0], return_counts=True), strict=True):
        state["late"][str(verdict)] = state["late"].get(str(verdict), 0) + int(count)
    state["src"] = add_tallies(state["src"], encoded.src_tally)
    state["tgt"] = add_tallies(state["tgt"], encoded.tgt_tally)
    state["by_part"][chunk.part] += len(encoded.src_lengths)
    state["read"] += len(chunk)


def add_tallies(total: Tally, part: Tally) -> Tally:
    """Counts added key by key."""
    if not total:
        return dict(part)
    return {
        key: [a + b for a, b in zip(value, part[key], strict=True)] if isinstance(value, list) else value + part[key]
        for key, value in total.items()
    }


def _flat(sequences: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    lengths = np.fromiter(map(len, sequences), dtype=np.int64, count=len(sequences))
    ids = np.fromiter(chain.from_iterable(sequences), dtype=np.int32, count=int(lengths.sum()))
    return ids, lengths


def _tally(texts: Sequence[str], ids: np.ndarray) -> Tally:
    lengths = np.fromiter((len(words(text)) for text in texts), dtype=np.int64, count=len(texts))
    return {
        "words": int(lengths.sum()),
        "pieces": len(ids),
        "byte_pieces": int(((ids >= FIRST_BYTE) & (ids < FIRST_BYTE + 256)).sum()),
        "unknown": int((ids == UNK).sum()),
        "histogram": np.bincount(np.minimum(lengths // LENGTH_BIN, LENGTH_BINS - 1), minlength=LENGTH_BINS).tolist(),
        "tokenised": sum(map(looks_tokenised, texts)),
        "control": sum(1 for text in texts if not text.isprintable() and _CONTROL.search(text)),
    }
