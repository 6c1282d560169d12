"""Everything between a corpus and a prepared folder; what is done is kept, so that a killed process resumes."""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from nmt.data import data_card
from nmt.data.cleaning import FilteredBlock, HeldOutIndex, PairFilter, Verdict, mark_duplicates
from nmt.data.corpus import Corpus, Pair, TestSet
from nmt.data.preparation.blocks import Block, CorpusBlocks, Stage
from nmt.data.preparation.encoding import (
    EXAMPLES,
    EncodedBlock,
    TokenizerPair,
    encode_block,
    id_type,
    learn_tokenizers,
    sample_pairs,
    vocabulary_coverage,
)
from nmt.data.test_sets import STORED_TEST_SETS
from nmt.data.tokenizer import SOURCE_MODEL, TARGET_MODEL, Tokenizer, load_tokenizers
from nmt.errors import UserError
from nmt.files import write_bytes, write_text
from nmt.progress import say
from nmt.training_settings import CleaningSettings, TokenizerSettings

CARD_JSON, CARD_PAGE, VALID = "card.json", "card.md", "valid.json"
SIDES = ("src", "tgt")
WORK = "work"  # what a complete folder does not need


@dataclass(frozen=True)
class CorpusBuilder:
    """Turns a corpus into a prepared folder, in two stages over its blocks: verdicts and hashes, then ids.

    Between them duplicates are found, for which 9 bytes a pair are held in memory, and the tokenizers learned.
    """

    corpus: Corpus
    valid: list[Pair]
    test_sets: Mapping[str, TestSet]  # like the validation text, kept with the ids, and out of training
    tokenizer: TokenizerSettings
    cleaning: CleaningSettings
    max_pieces: int  # on a side
    workers: int = 1  # processes

    def run(self, folder: Path, tokenizers: TokenizerPair | None) -> dict[str, Any]:
        """All of it; returns facts about the text. `tokenizers` are used instead of learning new ones."""
        parts = self.corpus.parts()
        blocks = CorpusBlocks(parts)
        held_out = HeldOutIndex.of(self.valid, self.test_sets, self.cleaning.one_side_words)
        languages = (self.corpus.source_language, self.corpus.target_language)
        pair_filter = PairFilter(self.cleaning, *languages, self.max_pieces, held_out)
        filtering = Stage(folder / WORK / "filtered", partial(_filter_block, pair_filter), FilteredBlock)
        filtering.run(blocks, "reading and cleaning pairs", self.corpus.expected_pairs(), self.workers)
        verdicts, held_out_counts, digest = _join_verdicts(filtering, self.cleaning.duplicates)
        require_pairs_left(np.bincount(verdicts, minlength=len(Verdict)).tolist(), self.max_pieces)

        source, target, comparison = self._tokenizers(folder, blocks, verdicts, tokenizers)
        encode = partial(encode_block, source, target, self.max_pieces)
        encoding = Stage(folder / WORK / "encoded", encode, EncodedBlock)
        with_verdicts = (
            block._replace(verdicts=verdicts[block.first : block.first + len(block.sources)]) for block in blocks
        )
        encoding.run(with_verdicts, "encoding pairs", len(verdicts), self.workers)
        counts, by_part, encoded = _write_ids(folder, encoding.results(), len(parts))
        require_pairs_left(counts, self.max_pieces)

        dropped = {verdict.reason: counts[verdict] for verdict in Verdict if verdict and counts[verdict]}
        facts = {
            "corpus": self.corpus.provenance(),
            "source_language": self.corpus.source_language,
            "target_language": self.corpus.target_language,
            "train_sha256": digest,
            "train": {
                "read": len(verdicts),
                "kept": counts[Verdict.KEPT],
                "dropped": dropped,
                "source_pieces": encoded["src"]["pieces"] + counts[Verdict.KEPT],
                "target_pieces": encoded["tgt"]["pieces"] + counts[Verdict.KEPT],
            },
            "valid": self._write_held_out(folder, encode),
            "source_vocab": source.vocab_size,
            "target_vocab": target.vocab_size,
            "ids": id_type(source, target),
        }
        card = data_card.make_data_card(facts, self.cleaning, held_out_counts, encoded, comparison)
        for line in data_card.losses(card):
            say(f"note: {line}")
        write_text(folder / CARD_JSON, json.dumps(card, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
        write_text(folder / CARD_PAGE, data_card.data_card_page(card))
        if any(part.weight is not None for part in parts):  # a part without a weight gets 1
            ends = np.cumsum([0, *by_part]).tolist()
            weights = (1.0 if part.weight is None else part.weight for part in parts)
            facts["parts"] = list(zip((part.name for part in parts), ends, ends[1:], weights, strict=False))
        return facts

    def _tokenizers(
        self, folder: Path, blocks: CorpusBlocks, verdicts: np.ndarray, tokenizers: TokenizerPair | None
    ) -> tuple[Tokenizer, Tokenizer, dict[str, Any]]:
        """Learned, given, or read at a resume; and how the held-out sets compare with the sample."""
        comparison_file = folder / WORK / "comparison.json"
        if comparison_file.exists():
            return *load_tokenizers(folder), json.loads(comparison_file.read_text(encoding="utf-8"))
        settings = self.tokenizer
        sample = sample_pairs(blocks, verdicts, settings.sample, settings.seed)
        if tokenizers is None:
            say(f"learning {settings.vocab_size:,} pieces from {len(sample[0]):,} pairs")
        source, target = tokenizers or learn_tokenizers(sample, settings)
        write_bytes(folder / SOURCE_MODEL, source.model)
        write_bytes(folder / TARGET_MODEL, target.model)
        coverage, warnings = vocabulary_coverage(sample, self.valid, self.test_sets)
        comparison = {"coverage": coverage, "warnings": warnings}
        write_text(comparison_file, json.dumps(comparison))
        return source, target, comparison

    def _write_held_out(self, folder: Path, encode: partial[EncodedBlock]) -> dict[str, Any]:
        """The validation and test text as it is, for a machine without the corpus; facts about the first."""
        write_text(folder / VALID, json.dumps([pair[:2] for pair in self.valid], ensure_ascii=False))
        tests = {name: asdict(test) for name, test in self.test_sets.items()}
        write_text(folder / STORED_TEST_SETS, json.dumps(tests, ensure_ascii=False))
        sources, targets = [pair.source for pair in self.valid], [pair.target for pair in self.valid]
        encoded = encode(Block(0, 0, 0, sources, targets, np.zeros(len(sources), dtype=np.uint8)))
        kept = encoded.counts[Verdict.KEPT]
        return {
            "read": len(self.valid),
            "kept": kept,
            "dropped": {v.reason: encoded.counts[v] for v in (Verdict.EMPTY, Verdict.PIECES)},
            "source_pieces": len(encoded.src_ids) + kept,
            "target_pieces": len(encoded.tgt_ids) + kept,
        }


def _filter_block(pair_filter: PairFilter, block: Block) -> FilteredBlock:
    return pair_filter(block.sources, block.targets)


def _join_verdicts(stage: Stage[FilteredBlock], drop_duplicates: bool) -> tuple[np.ndarray, dict[str, int], str]:
    """(n,) verdicts, pairs found in each held-out set, and a checksum of the whole text."""
    verdicts, hashes = [np.zeros(0, dtype=np.uint8)], [np.zeros(0, dtype=np.uint64)]
    held_out: Counter[str] = Counter()
    digest = ""
    for filtered in stage.results():
        verdicts.append(filtered.verdicts)
        hashes.append(filtered.hashes)
        held_out.update(filtered.held_out)
        digest = hashlib.sha256(bytes.fromhex(digest + filtered.digest)).hexdigest()
    joined, joined_hashes = np.concatenate(verdicts), np.concatenate(hashes)
    if drop_duplicates:
        hashes.clear()
        mark_duplicates(joined, joined_hashes)
    return joined, dict(held_out), digest


def _write_ids(folder: Path, blocks: Iterator[EncodedBlock], parts: int) -> tuple[list[int], list[int], dict[str, Any]]:
    """The flat files of all ids and offsets. Returns the pairs by verdict, those kept by part, and tallies."""
    counts, by_part, ends = np.zeros(len(Verdict), dtype=np.int64), [0] * parts, dict.fromkeys(SIDES, 0)
    tallied: dict[str, Any] = {"src": {}, "tgt": {}, "examples": {}}
    with ExitStack() as stack:
        names = [f"{side}.{array}" for side in SIDES for array in ("ids", "offsets")]
        files = {name: stack.enter_context((folder / name).open("wb")) for name in names}
        for side in SIDES:
            files[f"{side}.offsets"].write(np.zeros(1, dtype=np.int64).data)
        for block in blocks:
            sides = (
                ("src", block.src_ids, block.src_lengths, block.src),
                ("tgt", block.tgt_ids, block.tgt_lengths, block.tgt),
            )
            for side, ids, lengths, tally in sides:
                files[f"{side}.ids"].write(ids.data)
                files[f"{side}.offsets"].write((ends[side] + np.cumsum(lengths)).data)
                ends[side] += len(ids)
                tallied[side] = {key: np.add(tallied[side].get(key, 0), value).tolist() for key, value in tally.items()}
            counts += block.counts
            by_part[block.part] += block.counts[Verdict.KEPT]
            for reason, first in block.examples.items():
                tallied["examples"][reason] = (tallied["examples"].get(reason, []) + first)[:EXAMPLES]
        for file in files.values():
            file.flush()
            os.fsync(file.fileno())
    return counts.tolist(), by_part, tallied


def require_pairs_left(counts: Sequence[int], max_pieces: int) -> None:
    """UserError, with the filter that took most and how to switch it off, where no pair is left to train on."""
    if counts[Verdict.KEPT]:
        return
    read = sum(counts)
    if read == 0:
        raise UserError("the training text is empty: it has no pair")
    reasons = ", ".join(f"{counts[verdict]:,} {verdict.reason}" for verdict in Verdict if counts[verdict])
    hints = {
        Verdict.EMPTY: "is the right file on each side?",
        Verdict.HELD_OUT: "train on other text than you test on, or cleaning.decontaminate=false",
        Verdict.WORDS: "raise cleaning.max_words",
        Verdict.RATIO: "do the two sides belong together? cleaning.max_ratio=null keeps such pairs",
        Verdict.IDENTICAL: "is it the same file twice? cleaning.identical=false keeps such pairs",
        Verdict.SCRIPT: "are data.source and data.target the right way round? cleaning.script=false keeps them",
        Verdict.PIECES: f"raise batching.max_pieces ({max_pieces})",
    }
    most = max(hints, key=lambda verdict: counts[verdict])
    raise UserError(f"no training pair is left of {read:,} read ({reasons}); {hints[most]}")
