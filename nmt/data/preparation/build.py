"""Everything between a corpus and a prepared folder, each stage resumable."""

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nmt.data.corpus import Corpus, Pair, TestSet
from nmt.data.preparation import card
from nmt.data.preparation.chunks import Chunk, Chunks
from nmt.data.preparation.cleaning import CleaningSettings, Screen, Verdict
from nmt.data.preparation.encoding import Encode, Encoded, add
from nmt.data.preparation.heldout import HeldOut
from nmt.data.preparation.journal import Journal
from nmt.data.preparation.pieces import compare_held_out, learn_pieces, sample
from nmt.data.preparation.screening import (
    EXAMPLES,
    LINE_SECONDS,
    SAVE_SECONDS,
    example,
    keep_examples,
    require_some_left,
    screen,
)
from nmt.data.preparation.workers import in_order
from nmt.data.tokenizer import SOURCE_MODEL, TARGET_MODEL, Tokenizer, TokenizerSettings, load_tokenizers
from nmt.files import write_text, write_whole
from nmt.progress import progress, say

CARD_JSON, CARD_PAGE, VALID, TESTS = "card.json", "card.md", "valid.json", "tests.json"
COMPARISON = "comparison.json"
WORK_FILES = ("verdicts", "hashes", "screening.json", "encoding.json", COMPARISON)  # of no use when all is done
Pieces = tuple[Tokenizer, Tokenizer]


@dataclass(frozen=True)
class Preparation:
    """How text becomes ids. `max_pieces` bounds a side; `workers` processes do it."""

    tokenizer: TokenizerSettings
    cleaning: CleaningSettings
    max_pieces: int
    workers: int = 1


@dataclass(frozen=True)
class Build:
    """One corpus on its way into a folder."""

    corpus: Corpus
    settings: Preparation
    valid: list[Pair]
    test_sets: Mapping[str, TestSet]  # like the validation text, kept with the ids, and out of training

    def run(self, folder: Path, given: Pieces | None) -> dict[str, Any]:
        """All stages; returns the facts of the record. `given` pieces are used instead of new ones."""
        folder.mkdir(parents=True, exist_ok=True)
        sources = self.corpus.sources()
        chunks = Chunks(sources)
        cleaning = self.settings.cleaning
        held_out = HeldOut.of(self.valid, self.test_sets, cleaning.one_side_words)
        languages = (self.corpus.source_language, self.corpus.target_language)
        work = Screen(cleaning, *languages, self.settings.max_pieces, held_out)
        screened = screen(folder, chunks, work, self.corpus.expected_pairs(), self.settings.workers)
        verdicts = screened.array("verdicts")
        dropped = _counts(verdicts)
        require_some_left(dropped, len(verdicts), self.settings.max_pieces)
        pieces, comparison = self._pieces(folder, chunks, verdicts, given)
        encoding = self._encode(folder, chunks, verdicts, pieces, len(sources))
        for verdict, count in encoding.state["late"].items():
            dropped[Verdict(int(verdict)).reason] += count
        require_some_left(dropped, len(verdicts), self.settings.max_pieces)
        facts = self._facts(dropped, screened.state, encoding.state, pieces, self._write_held_out(folder, pieces))
        account = card.Account(facts, asdict(cleaning), screened.state, encoding.state, comparison)
        content = card.make(account)
        write_text(folder / CARD_JSON, json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
        write_text(folder / CARD_PAGE, card.page(content))
        weights = [source.weight for source in sources]
        if any(weight is not None for weight in weights):
            facts["parts"] = _parts([source.name for source in sources], weights, encoding.state["by_part"])
        return facts

    def _pieces(
        self, folder: Path, chunks: Chunks, verdicts: np.ndarray, given: Pieces | None
    ) -> tuple[Pieces, dict[str, Any]]:
        """Learned, given, or, at a resume, found; and how the held-out sets compare with the sample."""
        note = folder / COMPARISON
        if note.exists():
            return load_tokenizers(folder), json.loads(note.read_text(encoding="utf-8"))
        settings = self.settings.tokenizer
        sides = sample(chunks, verdicts, settings.sample, settings.seed)
        if given is None:
            say(f"learning {settings.vocab_size:,} pieces from {len(sides[0]):,} pairs")
        pieces = given or learn_pieces(sides, settings)
        for name, tokenizer in zip((SOURCE_MODEL, TARGET_MODEL), pieces, strict=True):
            model = tokenizer.model
            write_whole(folder / name, lambda to, model=model: to.write_bytes(model))  # type: ignore[misc]
        coverage, warnings = compare_held_out(sides, self.valid, self.test_sets)
        comparison = {"coverage": coverage, "warnings": warnings}
        write_text(note, json.dumps(comparison))
        return pieces, comparison

    def _encode(self, folder: Path, chunks: Chunks, verdicts: np.ndarray, pieces: Pieces, parts: int) -> Journal:
        ids = "uint16" if max(tokenizer.vocab_size for tokenizer in pieces) <= 2**16 else "int32"
        arrays = {"src.ids": ids, "src.offsets": "int64", "tgt.ids": ids, "tgt.offsets": "int64"}
        journal = Journal(folder, arrays, note="encoding.json")
        if not journal.state:
            journal.append(**{"src.offsets": np.zeros(1), "tgt.offsets": np.zeros(1)})
            journal.state = {
                "read": 0, "late": {}, "by_part": [0] * parts, "src": {}, "tgt": {}, "ends": [0, 0], "ids": ids,
                "examples": {}, "rewritten": [],
            }  # fmt: skip
        work = Encode(*pieces, self.settings.max_pieces)

        def kept(chunk: Chunk) -> tuple[list[str], list[str]]:
            places = np.flatnonzero(verdicts[chunk.first : chunk.first + len(chunk)] == Verdict.KEPT).tolist()
            return [chunk.sources[i] for i in places], [chunk.targets[i] for i in places]

        saved = time.monotonic()
        with progress("encoding pairs", len(verdicts), line_every=LINE_SECONDS) as advance:
            advance(journal.state["read"])
            rest = chunks.after(journal.state["read"])
            for chunk, encoded in in_order(work, rest, kept, self.settings.workers):
                _take(journal, chunk, verdicts[chunk.first : chunk.first + len(chunk)], encoded)
                advance(len(chunk))
                if time.monotonic() - saved > SAVE_SECONDS:
                    journal.save()
                    saved = time.monotonic()
        journal.save()
        journal.close()
        return journal

    def _write_held_out(self, folder: Path, pieces: Pieces) -> dict[str, Any]:
        """Validation text as ids too, and the test sets as they are, for a machine without the corpus."""
        write_text(folder / VALID, json.dumps([pair[:2] for pair in self.valid], ensure_ascii=False))
        tests = {name: asdict(test) for name, test in self.test_sets.items()}
        write_text(folder / TESTS, json.dumps(tests, ensure_ascii=False))
        work = Encode(*pieces, self.settings.max_pieces)
        encoded = work([pair.source for pair in self.valid], [pair.target for pair in self.valid])
        late = np.bincount(encoded.verdicts, minlength=len(Verdict))
        return {
            "read": len(self.valid),
            "kept": int(late[Verdict.KEPT]),
            "dropped": {v.reason: int(late[v]) for v in (Verdict.EMPTY, Verdict.PIECES)},
            "source_pieces": len(encoded.src_ids) + int(late[Verdict.KEPT]),
            "target_pieces": len(encoded.tgt_ids) + int(late[Verdict.KEPT]),
        }

    def _facts(
        self,
        dropped: dict[str, int],
        screened: Mapping[str, Any],
        encoded: Mapping[str, Any],
        pieces: Pieces,
        valid: dict[str, Any],
    ) -> dict[str, Any]:
        kept = sum(encoded["by_part"])
        return {
            "corpus": self.corpus.provenance(),
            "source_language": self.corpus.source_language,
            "target_language": self.corpus.target_language,
            "train_sha256": screened["digest"],
            "train": {
                "read": screened["read"],
                "kept": kept,
                "dropped": {reason: count for reason, count in dropped.items() if count},
                "source_pieces": encoded["src"]["pieces"] + kept,
                "target_pieces": encoded["tgt"]["pieces"] + kept,
            },
            "valid": valid,
            "source_vocab": pieces[0].vocab_size,
            "target_vocab": pieces[1].vocab_size,
            "ids": encoded["ids"],
        }


def _counts(verdicts: np.ndarray) -> dict[str, int]:
    counts = np.bincount(verdicts, minlength=len(Verdict))
    return {verdict.reason: int(counts[verdict]) for verdict in Verdict if verdict is not Verdict.KEPT}


def _take(journal: Journal, chunk: Chunk, verdicts: np.ndarray, encoded: Encoded) -> None:
    """One chunk's ids to the files, and its account to the state."""
    state = journal.state
    offsets = []
    for i, lengths in enumerate((encoded.src_lengths, encoded.tgt_lengths)):
        offsets.append(state["ends"][i] + np.cumsum(lengths))
        state["ends"][i] += int(lengths.sum())
    journal.append(
        **{
            "src.ids": encoded.src_ids, "src.offsets": offsets[0],
            "tgt.ids": encoded.tgt_ids, "tgt.offsets": offsets[1],
        }
    )  # fmt: skip
    places = np.flatnonzero(verdicts == Verdict.KEPT)
    final = verdicts.copy()
    final[places] = encoded.verdicts
    keep_examples(state["examples"], chunk, final)
    for place in encoded.rewritten[: EXAMPLES - len(state["rewritten"])]:
        state["rewritten"].append(example(chunk, int(places[place])))
    for verdict, count in zip(*np.unique(encoded.verdicts[encoded.verdicts > 0], return_counts=True), strict=True):
        state["late"][str(verdict)] = state["late"].get(str(verdict), 0) + int(count)
    state["src"], state["tgt"] = add(state["src"], encoded.src_tally), add(state["tgt"], encoded.tgt_tally)
    state["by_part"][chunk.part] += len(encoded.src_lengths)
    state["read"] += len(chunk)


def _parts(names: list[str], weights: list[float | None], counts: list[int]) -> list[tuple[str, int, int, float]]:
    """(name, first, end, weight) of each source among the kept pairs; a source without a weight gets 1."""
    ends = np.cumsum([0, *counts]).tolist()
    return [
        (name, ends[i], ends[i + 1], 1.0 if weight is None else weight)
        for i, (name, weight) in enumerate(zip(names, weights, strict=True))
    ]
