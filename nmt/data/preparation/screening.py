"""The first pass over a corpus: a verdict and a hash for every pair, kept in files."""

import hashlib
import time
from pathlib import Path
from typing import Any

import numpy as np

from nmt.data.preparation.chunks import Chunk, Chunks
from nmt.data.preparation.cleaning import Screen, Screened, Verdict, mark_duplicates
from nmt.data.preparation.journal import Journal
from nmt.data.preparation.workers import in_order
from nmt.errors import UserError
from nmt.progress import progress

SAVE_SECONDS = 1.0
EXAMPLES = 3
LONGEST_EXAMPLE = 200  # characters
LINE_SECONDS = 15.0

Examples = dict[str, list[dict[str, Any]]]


def screen(folder: Path, chunks: Chunks, work: Screen, expected: int | None, workers: int) -> Journal:
    """Goes on where it stopped. The journal that comes out holds `verdicts`, and in its state an account of them."""
    journal = Journal(folder, {"verdicts": np.uint8, "hashes": np.uint64}, note="screening.json")
    if not journal.state:
        journal.state = {"read": 0, "digest": "", "examples": {}, "held_out": {}, "done": False}
    state = journal.state
    if state["done"]:
        return journal
    saved = time.monotonic()
    with progress("reading and cleaning pairs", expected, line_every=LINE_SECONDS) as advance:
        advance(state["read"])
        results = in_order(work, chunks.after(state["read"]), lambda chunk: (chunk.sources, chunk.targets), workers)
        for chunk, screened in results:
            _take(journal, chunk, screened)
            advance(len(chunk))
            if time.monotonic() - saved > SAVE_SECONDS:
                journal.save()
                saved = time.monotonic()
    journal.save()
    if work.settings.duplicates and state["read"]:
        mark_duplicates(journal.array("verdicts", "r+"), journal.array("hashes"))
    state["done"] = True
    journal.save()
    journal.close()
    return journal


def _take(journal: Journal, chunk: Chunk, screened: Screened) -> None:
    state = journal.state
    journal.append(verdicts=screened.verdicts, hashes=screened.hashes)
    # a chain, since the state of a running hash cannot be saved
    state["digest"] = hashlib.sha256(bytes.fromhex(state["digest"]) + screened.digest).hexdigest()
    for name in screened.held_out.values():
        state["held_out"][name] = state["held_out"].get(name, 0) + 1
    keep_examples(state["examples"], chunk, screened.verdicts)
    state["read"] += len(chunk)


def keep_examples(examples: Examples, chunk: Chunk, verdicts: np.ndarray) -> None:
    """The first few pairs of each reason for leaving one out; their number counts from 1, as lines do."""
    for verdict in Verdict:
        known = examples.get(verdict.reason, [])
        if verdict is Verdict.KEPT or len(known) == EXAMPLES:
            continue
        places = np.flatnonzero(verdicts == verdict)[: EXAMPLES - len(known)].tolist()
        if places:
            examples[verdict.reason] = known + [example(chunk, place) for place in places]


def example(chunk: Chunk, place: int) -> dict[str, Any]:
    """A pair as the data card shows it."""
    return {
        "pair": chunk.first + place + 1,
        "source": _shortened(chunk.sources[place]),
        "target": _shortened(chunk.targets[place]),
    }


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_EXAMPLE else text[:LONGEST_EXAMPLE] + " ..."


def require_some_left(dropped: dict[str, int], read: int, max_pieces: int) -> None:
    """UserError, with the filter that took most and how to switch it off, where no pair is left to train on."""
    if sum(dropped.values()) < read:
        return
    if read == 0:
        raise UserError("the training text is empty: there is no pair in it")
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
