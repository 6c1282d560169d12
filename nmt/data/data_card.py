"""The data card: what was read, what was left out and why, and what the rest is like. JSON and Markdown."""

from collections.abc import Iterator, Mapping
from typing import Any

from nmt.data.cleaning import SPACELESS
from nmt.data.preparation.encoding import LENGTH_BIN
from nmt.files import visible

LARGE_LOSS = 0.1  # of the pairs: what a filter may leave out without a word
TOKENISED_SHARE = 0.5  # a corpus is called tokenised where more than this share of its lines looks so


Facts = Mapping[str, Any]


def make_data_card(facts: Facts, cleaning: Facts, filtered: Facts, encoded: Facts, comparison: Facts) -> dict[str, Any]:
    """Plain JSON values, from the counts and examples of all stages of a preparation."""
    train = facts["train"]
    examples = {**filtered["examples"], **encoded["examples"]}
    sides = {name: _side(encoded[key], train["kept"]) for name, key in (("source", "src"), ("target", "tgt"))}
    return {
        "corpus": facts["corpus"],
        "languages": [facts["source_language"], facts["target_language"]],
        "read": train["read"],
        "kept": train["kept"],
        "dropped": {
            reason: {"pairs": count, "examples": examples.get(reason, [])} for reason, count in train["dropped"].items()
        },
        "in_held_out_sets": filtered["held_out"],
        "cleaning": dict(cleaning),
        "sides": sides,
        "rewritten_targets": encoded["rewritten"],
        "vocabulary": {"source": facts["source_vocab"], "target": facts["target_vocab"]},
        "coverage": comparison["coverage"],
        "valid": facts["valid"],
        "train_sha256": facts["train_sha256"],
        "warnings": [*comparison["warnings"], *_warnings(train["kept"], filtered["held_out"], sides)],
    }


def _side(tally: Mapping[str, Any], pairs: int) -> dict[str, Any]:
    words, pieces = tally["words"], tally["pieces"]
    histogram = tally["histogram"]
    last = max((i for i, count in enumerate(histogram) if count), default=0)
    return {
        "words": words,
        "pieces": pieces,
        "words_per_line": round(words / pairs, 2),
        "pieces_per_word": round(pieces / words, 3) if words else None,
        "byte_fallback_rate": round(tally["byte_pieces"] / pieces, 6),
        "unknown_rate": round(tally["unknown"] / pieces, 6),
        "histogram": {_bin(i, i == len(histogram) - 1): count for i, count in enumerate(histogram[: last + 1])},
        "lines_rewritten": tally["rewritten"],
        "lines_that_look_tokenised": tally["tokenised"],
        "lines_with_control_characters": tally["control"],
    }


def _bin(number: int, is_open: bool) -> str:
    return f"{LENGTH_BIN * number}+" if is_open else f"{LENGTH_BIN * number}-{LENGTH_BIN * number + LENGTH_BIN - 1}"


def _warnings(kept: int, held_out: Mapping[str, int], sides: Mapping[str, Facts]) -> Iterator[str]:
    for name, count in held_out.items():
        yield f"{count:,} training pairs are also in {name} (on one side or both) and were left out"
    for side, content in sides.items():
        if content["lines_that_look_tokenised"] > TOKENISED_SHARE * kept:
            yield (
                f"the {side} side looks tokenised (escapes such as &apos; or @-@, or punctuation standing apart, in "
                f"{content['lines_that_look_tokenised']:,} of {kept:,} lines): translations will look so too, and BLEU "
                f"is not comparable; give the raw text"
            )
        if content["lines_with_control_characters"]:
            yield (
                f"{content['lines_with_control_characters']:,} {side} lines hold control characters or line separators "
                f"other than the newline; they stay inside their lines, and come out as spaces"
            )
    if count := sides["target"]["lines_rewritten"]:
        yield (
            f"{count:,} of {kept:,} target lines do not come back from their pieces as they were written "
            f"(doubled or outer spaces, control characters): see rewritten_targets"
        )


def losses(card: Mapping[str, Any]) -> Iterator[str]:
    """What is said on the terminal: filters that leave out much of the text, or mean little for its languages."""
    for reason, content in card["dropped"].items():
        if content["pairs"] > LARGE_LOSS * card["read"]:
            pairs = (f"{visible(pair['source'][:60])} / {visible(pair['target'][:60])}" for pair in content["examples"])
            share = f"{content['pairs']:,} of {card['read']:,} pairs ({content['pairs'] / card['read']:.0%})"
            yield f"{share} are left out: {reason}; for example {'; '.join(pairs)}"
    without_spaces = sorted(SPACELESS & set(card["languages"]))
    if card["cleaning"]["max_words"] is not None and without_spaces:
        yield (
            f"cleaning.max_words={card['cleaning']['max_words']} counts words between spaces, and "
            f"{' and '.join(without_spaces)} has none: a sentence is one word; batching.max_pieces bounds its length"
        )


def data_card_page(card: Mapping[str, Any]) -> str:
    """The same for a reader."""
    return "\n".join(_page_lines(card)) + "\n"


def _page_lines(card: Mapping[str, Any]) -> Iterator[str]:
    languages = " -> ".join(language for language in card["languages"] if language)
    yield f"# Data card: {card['corpus']['corpus']}" + (f" ({languages})" if languages else "")
    yield ""
    for key in ("licence", "url", "revision"):
        if card["corpus"].get(key):
            yield f"{key}: {card['corpus'][key]}  "
    yield f"{card['read']:,} pairs read, {card['kept']:,} kept ({100 * card['kept'] / card['read']:.2f}%)."
    if card["warnings"]:
        yield from ("", "**Worth knowing**", "", *(f"- {warning}" for warning in card["warnings"]))
    if card["dropped"]:
        yield from ("", "| left out | pairs | for example |", "|---|---:|---|")
    for reason, content in card["dropped"].items():
        examples = (f"{ex['pair']}: {_cell(ex['source'])} / {_cell(ex['target'])}" for ex in content["examples"])
        yield f"| {reason} | {content['pairs']:,} | {'; '.join(examples)} |"
    source, target = card["sides"]["source"], card["sides"]["target"]
    yield from ("", "| | source | target |", "|---|---:|---:|")
    yield f"| vocabulary | {card['vocabulary']['source']:,} | {card['vocabulary']['target']:,} |"
    for label, key, form in _ROWS:
        values = (form.format(side[key]) if side[key] is not None else "" for side in (source, target))
        yield f"| {label} | {' | '.join(values)} |"
    yield from ("", "| words in a line | source | target |", "|---|---:|---:|")
    histograms = [source["histogram"], target["histogram"]]
    for name in max(histograms, key=len):
        yield f"| {name} | {histograms[0].get(name, 0):,} | {histograms[1].get(name, 0):,} |"
    if card["coverage"]:
        shares = ", ".join(f"{name} {100 * share:.1f}%" for name, share in card["coverage"].items())
        yield ""
        yield f"Running words of the held-out sets that occur in a sample of the training text: {shares}"
    yield ""
    yield f"SHA-256 of the training text, in chunks: `{card['train_sha256']}`"


_ROWS = (
    ("words", "words", "{:,}"), ("pieces", "pieces", "{:,}"), ("words a line", "words_per_line", "{:.1f}"),
    ("pieces a word", "pieces_per_word", "{:.2f}"), ("spelled in bytes", "byte_fallback_rate", "{:.4%}"),
    ("unknown", "unknown_rate", "{:.4%}"), ("lines rewritten", "lines_rewritten", "{:,}"),
    ("lines that look tokenised", "lines_that_look_tokenised", "{:,}"),
)  # fmt: skip


def _cell(text: str) -> str:
    printable = "".join(character if character.isprintable() else " " for character in text[:60])
    return printable.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;") + (" ..." if len(text) > 60 else "")
