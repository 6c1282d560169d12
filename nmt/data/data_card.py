"""The data card: what was read, what was left out and why, and what the rest is like. JSON and Markdown."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nmt.data.cleaning import SPACELESS
from nmt.data.preparation.encoding import LENGTH_BIN, REWRITTEN
from nmt.files import visible
from nmt.training_settings import CleaningSettings

LARGE_LOSS = 0.1  # of the pairs: what a filter may leave out without a word
TOKENISED_SHARE = 0.5  # a corpus is called tokenised where more than this share of its lines looks so
SHOWN = 60  # characters of an example, on the page and on the terminal

Facts = Mapping[str, Any]


def make_data_card(
    facts: Facts, cleaning: CleaningSettings, held_out: Mapping[str, int], encoded: Facts, comparison: Facts
) -> dict[str, Any]:
    """Plain JSON values, from the counts and examples of all stages of a preparation."""
    train = facts["train"]
    sides = {name: _side(encoded[key], train["kept"]) for name, key in (("source", "src"), ("target", "tgt"))}
    return {
        "corpus": facts["corpus"],
        "languages": [facts["source_language"], facts["target_language"]],
        "read": train["read"],
        "kept": train["kept"],
        "dropped": {
            reason: {"pairs": count, "examples": encoded["examples"][reason]}
            for reason, count in train["dropped"].items()
        },
        "in_held_out_sets": held_out,
        "cleaning": cleaning.model_dump(),
        "sides": sides,
        "rewritten_targets": encoded["examples"][REWRITTEN],
        "vocabulary": {"source": facts["source_vocab"], "target": facts["target_vocab"]},
        "coverage": comparison["coverage"],
        "valid": facts["valid"],
        "train_sha256": facts["train_sha256"],
        "warnings": [*comparison["warnings"], *_warnings(train["kept"], held_out, sides)],
    }


def _side(tally: Facts, pairs: int) -> dict[str, Any]:
    words, pieces, histogram = tally["words"], tally["pieces"], tally["histogram"]
    bins = [f"{low}-{low + LENGTH_BIN - 1}" for low in range(0, LENGTH_BIN * (len(histogram) - 1), LENGTH_BIN)]
    bins.append(f"{LENGTH_BIN * len(bins)}+")
    last = max((i for i, count in enumerate(histogram) if count), default=0)
    return {
        "words": words,
        "pieces": pieces,
        "words_per_line": round(words / pairs, 2),
        "pieces_per_word": round(pieces / words, 3) if words else None,
        "byte_fallback_rate": round(tally["byte_pieces"] / pieces, 6),
        "unknown_rate": round(tally["unknown"] / pieces, 6),
        "histogram": dict(zip(bins[: last + 1], histogram, strict=False)),
        "lines_rewritten": tally["rewritten"],
        "lines_that_look_tokenised": tally["tokenised"],
        "lines_with_control_characters": tally["control"],
    }


def _warnings(kept: int, held_out: Mapping[str, int], sides: Mapping[str, Facts]) -> Iterator[str]:
    for name, count in held_out.items():
        yield f"{count:,} training pairs are also in {name} (on one side or both) and were left out"
    for side, content in sides.items():
        if (count := content["lines_that_look_tokenised"]) > TOKENISED_SHARE * kept:
            yield (
                f"the {side} side looks tokenised (escapes such as &apos; or @-@, or punctuation standing apart, in "
                f"{count:,} of {kept:,} lines): translations will look so too, and BLEU is not comparable; "
                f"give the raw text"
            )
        if count := content["lines_with_control_characters"]:
            yield (
                f"{count:,} {side} lines hold control characters or line separators other than the newline; "
                f"they stay inside their lines, and come out as spaces"
            )
    if count := sides["target"]["lines_rewritten"]:
        yield (
            f"{count:,} of {kept:,} target lines do not come back from their pieces as they were written "
            f"(doubled or outer spaces, control characters): see rewritten_targets"
        )


def losses(card: Facts) -> Iterator[str]:
    """What is said on the terminal: filters that leave out much of the text, or mean little for its languages."""
    for reason, content in card["dropped"].items():
        if content["pairs"] > LARGE_LOSS * card["read"]:
            pairs = (
                f"{visible(pair['source'][:SHOWN])} / {visible(pair['target'][:SHOWN])}" for pair in content["examples"]
            )
            share = f"{content['pairs']:,} of {card['read']:,} pairs ({content['pairs'] / card['read']:.0%})"
            yield f"{share} are left out: {reason}; for example {'; '.join(pairs)}"
    without_spaces = sorted(SPACELESS & set(card["languages"]))
    if card["cleaning"]["max_words"] is not None and without_spaces:
        yield (
            f"cleaning.max_words={card['cleaning']['max_words']} counts words between spaces, and "
            f"{' and '.join(without_spaces)} has none: a sentence is one word; batching.max_pieces bounds its length"
        )


def data_card_page(card: Facts) -> str:
    """The same for a reader, by the template beside this file."""
    from jinja2 import Environment, FileSystemLoader

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    environment.filters["cell"] = _cell
    return environment.get_template("data_card.md.j2").render(card)


def _cell(text: str) -> str:
    printable = "".join(character if character.isprintable() else " " for character in text[:SHOWN])
    shortened = " ..." if len(text) > SHOWN else ""
    return printable.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;") + shortened
