"""Everything between a corpus and a prepared folder, each stage resumable."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nmt.data import data_card
from nmt.data.cleaning import HeldOutIndex, PairFilter, Verdict
from nmt.data.corpus import Corpus, Pair, TestSet
from nmt.data.preparation.encoding import (
    PairEncoder,
    TokenizerPair,
    encode_corpus,
    learn_tokenizers,
    sample_pairs,
    vocabulary_coverage,
)
from nmt.data.preparation.filtering import CorpusChunks, filter_corpus, require_pairs_left
from nmt.data.test_sets import STORED_TEST_SETS
from nmt.data.tokenizer import SOURCE_MODEL, TARGET_MODEL, load_tokenizers
from nmt.files import write_text, write_whole
from nmt.progress import say
from nmt.training_settings import CleaningSettings, TokenizerSettings

CARD_JSON, CARD_PAGE, VALID = "card.json", "card.md", "valid.json"
COMPARISON = "comparison.json"
WORK_FILES = ("verdicts", "hashes", "screening.json", "encoding.json", COMPARISON)  # not needed in a complete folder


@dataclass(frozen=True)
class PreparationSettings:
    """How text becomes ids. `max_pieces` bounds a side; `workers` processes do it."""

    tokenizer: TokenizerSettings
    cleaning: CleaningSettings
    max_pieces: int
    workers: int = 1


@dataclass(frozen=True)
class CorpusBuilder:
    """Turns a corpus into a prepared folder, stage by stage; each stage resumes where it stopped."""

    corpus: Corpus
    settings: PreparationSettings
    valid: list[Pair]
    test_sets: Mapping[str, TestSet]  # like the validation text, kept with the ids, and out of training

    def run(self, folder: Path, tokenizers: TokenizerPair | None) -> dict[str, Any]:
        """All stages; returns facts about the text. `tokenizers` are used instead of learning new ones."""
        folder.mkdir(parents=True, exist_ok=True)
        parts = self.corpus.parts()
        chunks = CorpusChunks(parts)
        cleaning = self.settings.cleaning
        held_out = HeldOutIndex.of(self.valid, self.test_sets, cleaning.one_side_words)
        languages = (self.corpus.source_language, self.corpus.target_language)
        pair_filter = PairFilter(cleaning, *languages, self.settings.max_pieces, held_out)
        filtered = filter_corpus(folder, chunks, pair_filter, self.corpus.expected_pairs(), self.settings.workers)
        verdicts = filtered.array("verdicts")
        dropped = _counts(verdicts)
        require_pairs_left(dropped, len(verdicts), self.settings.max_pieces)
        tokenizers, comparison = self._tokenizers(folder, chunks, verdicts, tokenizers)
        encode = PairEncoder(*tokenizers, self.settings.max_pieces)
        encoding = encode_corpus(folder, chunks, verdicts, encode, len(parts), self.settings.workers)
        for reason, count in encoding.state["late"].items():
            dropped[reason] += count
        require_pairs_left(dropped, len(verdicts), self.settings.max_pieces)
        held_out_facts = self._write_held_out(folder, encode)
        facts = self._facts(dropped, filtered.state, encoding.state, tokenizers, held_out_facts)
        content = data_card.make_data_card(facts, cleaning.model_dump(), filtered.state, encoding.state, comparison)
        for line in data_card.losses(content):
            say(f"note: {line}")
        write_text(folder / CARD_JSON, json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
        write_text(folder / CARD_PAGE, data_card.data_card_page(content))
        if any(part.weight is not None for part in parts):  # a part without a weight gets 1
            ends = np.cumsum([0, *encoding.state["by_part"]]).tolist()
            weights = (1.0 if part.weight is None else part.weight for part in parts)
            facts["parts"] = list(zip((part.name for part in parts), ends, ends[1:], weights, strict=False))
        return facts

    def _tokenizers(
        self, folder: Path, chunks: CorpusChunks, verdicts: np.ndarray, tokenizers: TokenizerPair | None
    ) -> tuple[TokenizerPair, dict[str, Any]]:
        """Learned, given, or read at a resume; and how the held-out sets compare with the sample."""
        comparison_file = folder / COMPARISON
        if comparison_file.exists():
            return load_tokenizers(folder), json.loads(comparison_file.read_text(encoding="utf-8"))
        settings = self.settings.tokenizer
        sides = sample_pairs(chunks, verdicts, settings.sample, settings.seed)
        if tokenizers is None:
            say(f"learning {settings.vocab_size:,} pieces from {len(sides[0]):,} pairs")
        learned = tokenizers or learn_tokenizers(sides, settings)
        for name, tokenizer in zip((SOURCE_MODEL, TARGET_MODEL), learned, strict=True):
            model = tokenizer.model
            write_whole(folder / name, lambda to, model=model: to.write_bytes(model))  # type: ignore[misc]
        coverage, warnings = vocabulary_coverage(sides, self.valid, self.test_sets)
        comparison = {"coverage": coverage, "warnings": warnings}
        write_text(comparison_file, json.dumps(comparison))
        return learned, comparison

    def _write_held_out(self, folder: Path, encode: PairEncoder) -> dict[str, Any]:
        """Validation text as ids too, and the test sets as they are, for a machine without the corpus."""
        write_text(folder / VALID, json.dumps([pair[:2] for pair in self.valid], ensure_ascii=False))
        tests = {name: asdict(test) for name, test in self.test_sets.items()}
        write_text(folder / STORED_TEST_SETS, json.dumps(tests, ensure_ascii=False))
        encoded = encode([pair.source for pair in self.valid], [pair.target for pair in self.valid])
        late = np.bincount(encoded.verdicts, minlength=len(Verdict))
        return {
            "read": len(self.valid),
            "kept": int(late[Verdict.KEPT]),
            "dropped": {v.reason: int(late[v]) for v in (Verdict.EMPTY, Verdict.PIECES)},
            "source_pieces": len(encoded.src.ids) + int(late[Verdict.KEPT]),
            "target_pieces": len(encoded.tgt.ids) + int(late[Verdict.KEPT]),
        }

    def _facts(
        self,
        dropped: dict[str, int],
        filtered: Mapping[str, Any],
        encoded: Mapping[str, Any],
        tokenizers: TokenizerPair,
        valid: dict[str, Any],
    ) -> dict[str, Any]:
        kept = sum(encoded["by_part"])
        return {
            "corpus": self.corpus.provenance(),
            "source_language": self.corpus.source_language,
            "target_language": self.corpus.target_language,
            "train_sha256": filtered["digest"],
            "train": {
                "read": filtered["read"],
                "kept": kept,
                "dropped": {reason: count for reason, count in dropped.items() if count},
                "source_pieces": encoded["src"]["pieces"] + kept,
                "target_pieces": encoded["tgt"]["pieces"] + kept,
            },
            "valid": valid,
            "source_vocab": tokenizers[0].vocab_size,
            "target_vocab": tokenizers[1].vocab_size,
            "ids": encoded["ids"],
        }


def _counts(verdicts: np.ndarray) -> dict[str, int]:
    counts = np.bincount(verdicts, minlength=len(Verdict))
    return {verdict.reason: int(counts[verdict]) for verdict in Verdict if verdict is not Verdict.KEPT}
