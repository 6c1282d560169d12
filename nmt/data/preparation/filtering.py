"""The first pass over a corpus, in chunks: a verdict and a hash for every pair, kept in files."""

import hashlib
import time
from collections.abc import Callable, Iterator
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nmt.data.cleaning import FilteredChunk, PairFilter, Verdict, mark_duplicates
from nmt.data.corpus import CorpusPart
from nmt.data.preparation.resumable_arrays import ResumableArrays
from nmt.data.preparation.worker_pool import map_in_order
from nmt.errors import UserError
from nmt.progress import progress

CHUNK_SIZE = 10_000  # pairs; chunks end where a part does
SAVE_SECONDS = 1.0
PROGRESS_SECONDS = 15.0
EXAMPLES = 3  # of each reason, in the data card
LONGEST_EXAMPLE = 200  # characters
MAX_PAIRS_IN_MEMORY = 100_000  # pairs: a corpus of no more is read (or generated) only once

Examples = dict[str, list[dict[str, Any]]]


class Chunk(NamedTuple):
    """Consecutive pairs; `first` counts all pairs read from 0, `part` the parts of the corpus."""

    first: int
    part: int
    sources: list[str]
    targets: list[str]

    def __len__(self) -> int:  # type: ignore[override]
        return len(self.sources)


class CorpusChunks:
    """Chunks of the training text; iterable any number of times."""

    def __init__(self, parts: list[CorpusPart]) -> None:
        self._parts = parts
        self._cache: list[Chunk] | None = None

    def __iter__(self) -> Iterator[Chunk]:
        return iter(self._cache) if self._cache is not None else self._read()

    def after(self, pairs: int) -> Iterator[Chunk]:
        """The chunks that follow the first `pairs` pairs, which make whole chunks."""
        for chunk in self:
            if chunk.first >= pairs:
                yield chunk

    def _read(self) -> Iterator[Chunk]:
        cache: list[Chunk] | None = []
        count = 0
        for number, part in enumerate(self._parts):
            pairs = part.read()
            while block := list(islice(pairs, CHUNK_SIZE)):
                chunk = Chunk(count, number, [pair.source for pair in block], [pair.target for pair in block])
                count += len(block)
                if cache is not None:
                    cache.append(chunk)
                if count > MAX_PAIRS_IN_MEMORY:
                    cache = None
                yield chunk
        self._cache = cache


def filter_corpus(
    folder: Path, chunks: CorpusChunks, pair_filter: PairFilter, expected: int | None, workers: int
) -> ResumableArrays:
    """Resumes where it stopped. The result holds `verdicts`, and statistics of them in its state."""
    arrays = ResumableArrays(folder, {"verdicts": np.uint8, "hashes": np.uint64}, state_file="screening.json")
    if not arrays.state:
        arrays.state = {"read": 0, "digest": "", "examples": {}, "held_out": {}, "done": False}
    state = arrays.state
    if state["done"]:
        return arrays
    sides = attrgetter("sources", "targets")
    run_pass(arrays, chunks, pair_filter, sides, _record, "reading and cleaning pairs", expected, workers)
    if pair_filter.settings.duplicates and state["read"]:
        mark_duplicates(arrays.array("verdicts", "r+"), arrays.array("hashes"))
    state["done"] = True
    arrays.save()
    arrays.close()
    return arrays


def run_pass(
    arrays: ResumableArrays,
    chunks: CorpusChunks,
    work: Callable[[list[str], list[str]], Any],
    sides: Callable[[Chunk], tuple[list[str], list[str]]],
    record: Callable[[ResumableArrays, Chunk, Any], None],
    description: str,
    total: int | None,
    workers: int,
) -> None:
    """`work` on the `sides` of each chunk that is not yet in the arrays, saved about every second."""
    saved, read = time.monotonic(), arrays.state["read"]
    with progress(description, total, line_every=PROGRESS_SECONDS) as advance:
        advance(read)
        for chunk, result in map_in_order(work, chunks.after(read), sides, workers):
            record(arrays, chunk, result)
            advance(len(chunk))
            if time.monotonic() - saved > SAVE_SECONDS:
                arrays.save()
                saved = time.monotonic()
    arrays.save()


def _record(arrays: ResumableArrays, chunk: Chunk, filtered: FilteredChunk) -> None:
    state = arrays.state
    arrays.append(verdicts=filtered.verdicts, hashes=filtered.hashes)
    # a chain, since the state of a running hash cannot be saved
    state["digest"] = hashlib.sha256(bytes.fromhex(state["digest"]) + filtered.digest).hexdigest()
    for name in filtered.held_out.values():
        state["held_out"][name] = state["held_out"].get(name, 0) + 1
    collect_examples(state["examples"], chunk, filtered.verdicts)
    state["read"] += len(chunk)


def collect_examples(examples: Examples, chunk: Chunk, verdicts: np.ndarray) -> None:
    """The first few pairs of each reason for leaving one out; their number counts from 1, as lines do."""
    for verdict in Verdict:
        collected = examples.get(verdict.reason, [])
        if verdict is Verdict.KEPT or len(collected) == EXAMPLES:
            continue
        indices = np.flatnonzero(verdicts == verdict)[: EXAMPLES - len(collected)].tolist()
        if indices:
            examples[verdict.reason] = collected + [shortened_example(chunk, index) for index in indices]


def shortened_example(chunk: Chunk, index: int) -> dict[str, Any]:
    """A pair as the data card shows it."""
    sides = {"source": chunk.sources[index], "target": chunk.targets[index]}
    shortened = {
        side: text if len(text) <= LONGEST_EXAMPLE else f"{text[:LONGEST_EXAMPLE]} ..." for side, text in sides.items()
    }
    return {"pair": chunk.first + index + 1, **shortened}


def require_pairs_left(dropped: dict[str, int], read: int, max_pieces: int) -> None:
    """UserError, with the filter that took most and how to switch it off, where no pair is left to train on."""
    if sum(dropped.values()) < read:
        return
    if read == 0:
        raise UserError("the training text is empty: it has no pair")
    counts = ", ".join(f"{count:,} {reason}" for reason, count in dropped.items() if count)
    most = max(dropped, key=lambda reason: dropped[reason])
    hints = {
        Verdict.EMPTY.reason: "is the right file on each side?",
        Verdict.HELD_OUT.reason: "train on other text than you test on, or cleaning.decontaminate=false",
        Verdict.WORDS.reason: "raise cleaning.max_words",
        Verdict.RATIO.reason: "do the two sides belong together? cleaning.max_ratio=null keeps such pairs",
        Verdict.IDENTICAL.reason: "is it the same file twice? cleaning.identical=false keeps such pairs",
        Verdict.SCRIPT.reason: "are data.source and data.target the right way round? cleaning.script=false keeps them",
        Verdict.PIECES.reason: f"raise batching.max_pieces ({max_pieces})",
    }
    raise UserError(f"no training pair is left of {read:,} read ({counts}); {hints[most]}")
