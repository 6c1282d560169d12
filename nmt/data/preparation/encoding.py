"""The second stage: pieces learned from a sample of the kept pairs, and a block of pairs as ids."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, TypedDict

import numpy as np

from nmt.data.cleaning import Verdict, looks_tokenised
from nmt.data.corpus import Pair, TestSet
from nmt.data.preparation.blocks import Block
from nmt.data.text import words
from nmt.data.tokenizer import FIRST_BYTE, UNK, Tokenizer, train_tokenizer
from nmt.training_settings import TokenizerSettings

LENGTH_BIN = 10  # words in a bin of the length histogram
LENGTH_BINS = 21  # the last one is open
EXAMPLES = 3  # of each reason, in the data card
LONGEST_EXAMPLE = 200  # characters
REWRITTEN = "rewritten"  # kept, though the target decodes to another text
_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")

Tally = dict[str, Any]  # counts and lists of counts
TokenizerPair = tuple[Tokenizer, Tokenizer]
ParallelText = tuple[list[str], list[str]]


def sample_pairs(blocks: Iterable[Block], verdicts: np.ndarray, size: int, seed: int) -> ParallelText:
    """Sources and targets of `size` kept pairs, or of all where there are fewer, in the corpus's order."""
    indices = np.flatnonzero(verdicts == Verdict.KEPT)
    if len(indices) > size:
        indices = np.sort(np.random.default_rng(seed).choice(indices, size, replace=False))
    sources: list[str] = []
    targets: list[str] = []
    for block in blocks:
        first, end = np.searchsorted(indices, (block.first, block.first + len(block.sources)))
        inside = (indices[first:end] - block.first).tolist()
        sources += [block.sources[i] for i in inside]
        targets += [block.targets[i] for i in inside]
    return sources, targets


def learn_tokenizers(sides: ParallelText, settings: TokenizerSettings) -> TokenizerPair:
    """One vocabulary a side, or a joint one. The target's normalises nothing (see data/tokenizer.py)."""
    sources, targets = sides
    if settings.joint:
        joint = train_tokenizer(sources + targets, settings, normalises=False)
        return Tokenizer(joint.model, normalises=True), joint
    return train_tokenizer(sources, settings, normalises=True), train_tokenizer(targets, settings, normalises=False)


def vocabulary_coverage(
    sample: ParallelText, valid: Sequence[Pair], tests: Mapping[str, TestSet]
) -> tuple[dict[str, float], list[str]]:
    """How much of each held-out set's running words the sample knows, and warnings where its sides look swapped."""
    vocabularies = [{word for text in side for word in words(text.casefold())} for side in sample]
    held_out = {"valid": ([pair.source for pair in valid], [pair.target for pair in valid])}
    held_out |= {name: (test.sources, test.references[0]) for name, test in tests.items() if test.references}
    coverage: dict[str, float] = {}
    warnings: list[str] = []
    for name, texts in held_out.items():
        running = [[word for text in side for word in words(text.casefold())] for side in texts]
        straight, crossed = (
            [
                sum(word in known for word in side) / max(1, len(side))
                for side, known in zip(running, order, strict=True)
            ]
            for order in (vocabularies, vocabularies[::-1])
        )
        if not any(straight + crossed):
            continue
        coverage |= {f"{name} source": round(straight[0], 4), f"{name} target": round(straight[1], 4)}
        if sum(crossed) > sum(straight):
            warnings.append(
                f"the sides of {name} look swapped: its source has {100 * crossed[0]:.0f}% of its words in common with "
                f"the target side of the training text, {100 * straight[0]:.0f}% with the source side"
            )
    return coverage, warnings


class ExamplePair(TypedDict):
    """A pair as the data card shows it."""

    pair: int  # counted from 1, as lines are
    source: str
    target: str


class EncodedBlock(NamedTuple):
    """The ids of the kept pairs of a block, concatenated on each side, and what the data card counts of them."""

    src_ids: np.ndarray
    src_lengths: np.ndarray
    tgt_ids: np.ndarray
    tgt_lengths: np.ndarray
    part: int
    counts: list[int]  # pairs by verdict; now some are EMPTY or PIECES that the filters kept
    src: Tally
    tgt: Tally
    examples: dict[str, list[ExamplePair]]  # the first pairs by reason for leaving one out, and of REWRITTEN ones


def encode_block(source: Tokenizer, target: Tokenizer, max_pieces: int, block: Block) -> EncodedBlock:
    """Pairs with an empty side or more than `max_pieces` pieces (EOS not counted) are left out."""
    kept = np.flatnonzero(block.verdicts == Verdict.KEPT)
    sources, targets = ([texts[i] for i in kept.tolist()] for texts in (block.sources, block.targets))
    cleaned = source.cleaned(sources)
    src, tgt = source.encode_cleaned(cleaned), target.encode_batch(targets)
    lengths = np.array([[len(ids) for ids in side] for side in (src, tgt)], dtype=np.int64).reshape(2, len(kept))
    verdicts = block.verdicts.copy()
    verdicts[kept[lengths.max(axis=0) > max_pieces]] = Verdict.PIECES
    verdicts[kept[lengths.min(axis=0) == 0]] = Verdict.EMPTY
    final = np.flatnonzero(verdicts[kept] == Verdict.KEPT).tolist()  # in what was encoded
    decoded = target.decode_batch([tgt[i] for i in final])
    rewritten = [i for i, text in zip(final, decoded, strict=True) if text != targets[i]]
    changed = sum(sources[i] != cleaned[i] for i in final)
    kind = id_type(source, target)
    src_ids, tgt_ids = (
        np.fromiter(chain.from_iterable(side[i] for i in final), dtype=kind, count=int(sizes[final].sum()))
        for side, sizes in zip((src, tgt), lengths, strict=True)
    )
    examples = {verdict.reason: np.flatnonzero(verdicts == verdict) for verdict in Verdict if verdict != Verdict.KEPT}
    examples[REWRITTEN] = kept[rewritten]
    return EncodedBlock(
        src_ids, lengths[0, final], tgt_ids, lengths[1, final],
        block.part,
        np.bincount(verdicts, minlength=len(Verdict)).tolist(),
        _tally([sources[i] for i in final], src_ids, changed),
        _tally([targets[i] for i in final], tgt_ids, len(rewritten)),
        {reason: [_shortened(block, i) for i in found[:EXAMPLES].tolist()] for reason, found in examples.items()},
    )  # fmt: skip


def id_type(source: Tokenizer, target: Tokenizer) -> str:
    """The smallest type that holds both vocabularies' ids."""
    return "uint16" if max(source.vocab_size, target.vocab_size) <= 2**16 else "int32"


def _tally(lines: list[str], ids: np.ndarray, rewritten: int) -> Tally:
    counts = np.fromiter((len(words(line)) for line in lines), dtype=np.int64, count=len(lines))
    return {
        "words": int(counts.sum()),
        "pieces": len(ids),
        "byte_pieces": int(((ids >= FIRST_BYTE) & (ids < FIRST_BYTE + 256)).sum()),
        "unknown": int((ids == UNK).sum()),
        "histogram": np.bincount(np.minimum(counts // LENGTH_BIN, LENGTH_BINS - 1), minlength=LENGTH_BINS).tolist(),
        "tokenised": sum(map(looks_tokenised, lines)),
        "control": sum(1 for line in lines if not line.isprintable() and _CONTROL.search(line)),
        "rewritten": rewritten,
    }


def _shortened(block: Block, index: int) -> ExamplePair:
    source, target = (
        text if len(text) <= LONGEST_EXAMPLE else f"{text[:LONGEST_EXAMPLE]} ..."
        for text in (block.sources[index], block.targets[index])
    )
    return ExamplePair(pair=block.first + index + 1, source=source, target=target)
