"""From a corpus to ids: SentencePiece trained or taken from the run, both splits encoded, facts for the record."""

import hashlib
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt.data.corpus import Corpus, Pair
from nmt.data.encoded import EncodedPairs, encode_pairs
from nmt.data.tokenizer import Tokenizer, TokenizerSettings, train_tokenizer
from nmt.errors import UserError

SOURCE_MODEL, TARGET_MODEL = "source.model", "target.model"


@dataclass(frozen=True)
class Prepared:
    """What a training reads."""

    source: Tokenizer
    target: Tokenizer
    train: EncodedPairs
    valid: EncodedPairs
    valid_pairs: list[Pair]
    facts: dict[str, Any]


def load_tokenizers(run_dir: Path) -> tuple[Tokenizer, Tokenizer]:
    """The run's own pieces."""
    source = Tokenizer.from_file(run_dir / SOURCE_MODEL, normalises=True)
    return source, Tokenizer.from_file(run_dir / TARGET_MODEL, normalises=False)


def prepare(
    corpus: Corpus, settings: TokenizerSettings, max_pieces: int, tokenizers: tuple[Tokenizer, Tokenizer] | None
) -> Prepared:
    """Read, learn pieces (unless `tokenizers` are given) and encode. UserError where nothing is left to train on."""
    valid_pairs = list(corpus.valid())
    digest = hashlib.sha256()
    source, target = tokenizers or _train_tokenizers(corpus, settings)
    train = encode_pairs(_hashed(corpus.train(), digest), source, target, max_pieces)
    if len(train) == 0:
        raise UserError(f"no training pair is left of {train.read} read ({_drops(train)}); raise batching.max_pieces?")
    valid = encode_pairs(valid_pairs, source, target, max_pieces)
    facts = {
        "corpus": corpus.provenance(),
        "source_language": corpus.source_language,
        "target_language": corpus.target_language,
        "train_sha256": digest.hexdigest(),
        "train": _counts(train),
        "valid": _counts(valid),
        "source_vocab": source.vocab_size,
        "target_vocab": target.vocab_size,
    }
    return Prepared(source, target, train, valid, valid_pairs, facts)


def identity(facts: dict[str, Any]) -> str:
    """A checksum of what was read for training and of the pieces' numbers; the same data give the same one."""
    kept = {key: facts[key] for key in ("train_sha256", "source_vocab", "target_vocab")}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()


def _train_tokenizers(corpus: Corpus, settings: TokenizerSettings) -> tuple[Tokenizer, Tokenizer]:
    sample = sample_pairs(corpus.train(), settings.sample, settings.seed)
    sources, targets = [pair.source for pair in sample], [pair.target for pair in sample]
    if settings.joint:
        joint = train_tokenizer(sources + targets, settings, normalises=False)
        return Tokenizer(joint.model, normalises=True), joint
    return train_tokenizer(sources, settings, normalises=True), train_tokenizer(targets, settings, normalises=False)


def sample_pairs(pairs: Iterator[Pair], size: int, seed: int) -> list[Pair]:
    """A uniform sample of different pairs in one pass (reservoir sampling); all of them where there are fewer."""
    rng = random.Random(seed)
    seen: set[int] = set()
    kept: list[Pair] = []
    for pair in pairs:
        key = hash((pair.source, pair.target))
        if key in seen:
            continue
        seen.add(key)
        if len(kept) < size:
            kept.append(pair)
        elif (place := rng.randrange(len(seen))) < size:
            kept[place] = pair
    return kept


def _hashed(pairs: Iterator[Pair], digest: Any) -> Iterator[Pair]:
    for pair in pairs:
        digest.update(f"{pair.source}\t{pair.target}\n".encode())
        yield pair


def _counts(pairs: EncodedPairs) -> dict[str, Any]:
    return {
        "read": pairs.read,
        "kept": len(pairs),
        "dropped": pairs.dropped,
        "source_pieces": int(pairs.src.lengths.sum()) + len(pairs),
        "target_pieces": int(pairs.tgt.lengths.sum()) + len(pairs),
    }


def _drops(pairs: EncodedPairs) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in pairs.dropped.items()) or "the files are empty"
