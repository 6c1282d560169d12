"""Checks of hypotheses, references and sources: warnings about whatever makes their scores misleading."""

import html.entities
import re
from collections.abc import Iterator, Sequence

from nmt.data.text import words

_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});")
_UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_NO_SPACES = re.compile(f"[{_UNSPACED}]")
_ODD_SCRIPT = re.compile(f"[{_UNSPACED}\u0f00-\u0fff\u1100-\u11ff\uac00-\ud7af]")
_SCRIPT_OF = ((re.compile("[\u3040-\u30ff]"), "ja"), (re.compile("[\uac00-\ud7af]"), "ko"),
              (re.compile("[\u0e00-\u0e7f]"), "th"), (re.compile("[\u3400-\u9fff]"), "zh"))  # fmt: skip
TOKENIZED = 100  # lines ending in " ."; sacreBLEU's own threshold
MAX_LISTED = 10  # line numbers in one warning


def text_warnings(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    sources: Sequence[str] | None,
    tokenizer: str,
) -> list[str]:
    """One line for each thing that makes a score say less than it seems to."""
    return [
        *_empty_references(references),
        *_wordless_sources(sources),
        *_unspaced_sources(sources),
        *_entities(hypotheses, references),
        *_script(references, tokenizer),
        *_tokenized(hypotheses),
    ]


def _empty_references(references: Sequence[Sequence[str]]) -> Iterator[str]:
    for stream, lines in enumerate(references, start=1):
        empty = [number for number, line in enumerate(lines, start=1) if not line.strip()]
        if empty:
            which = f" (reference file {stream})" if len(references) > 1 else ""
            verb = "is" if len(empty) == 1 else "are"
            yield (
                f"{len(empty):,} of {len(lines):,} references{which} {verb} empty: {_lines(empty)}; "
                f"what was translated there counts as too long, as in sacreBLEU"
            )


def _wordless_sources(sources: Sequence[str] | None) -> Iterator[str]:
    empty = [number for number, line in enumerate(sources or [], start=1) if not words(line)]
    if empty:
        verb = "has" if len(empty) == 1 else "have"
        yield (
            f"{len(empty):,} of {len(sources or []):,} sources {verb} no words: {_lines(empty)}; "
            f"counted in the scores of the whole set, in no length bin"
        )


def _unspaced_sources(sources: Sequence[str] | None) -> Iterator[str]:
    """Chinese, Japanese, Thai and the like: split at spaces, a sentence is a word or two."""
    text = "".join((sources or [])[:2000])
    if 2 * len(_NO_SPACES.findall(text)) > sum(character.isalpha() for character in text) > 0:
        yield "the sources are in a script without spaces, so bins by words mean little; go by the axis of pieces"


def _entities(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Iterator[str]:
    """Entities that no reference of the line has; 13a un-escapes them, so BLEU does not see the fault."""
    entities: dict[str, None] = {}
    numbers = []
    for number, (hypothesis, *others) in enumerate(zip(hypotheses, *references, strict=True), start=1):
        alien = [e for e in _html_entities(hypothesis) if not any(e in reference for reference in others)]
        if alien:
            numbers.append(number)
            entities.update(dict.fromkeys(alien))
    if numbers:
        verb = "holds" if len(numbers) == 1 else "hold"
        some = " ".join(list(entities)[:5])
        noun = "hypothesis" if len(numbers) == 1 else "hypotheses"
        yield (
            f"{len(numbers):,} {noun} {verb} entities that the references do not ({some}): {_lines(numbers)}; "
            f"BLEU may not see them, readers will"
        )


def _html_entities(line: str) -> list[str]:
    if "&" not in line:
        return []
    return [e for e in _ENTITY.findall(line) if e[1] == "#" or e[1:] in html.entities.html5]


def _script(references: Sequence[Sequence[str]], tokenizer: str) -> Iterator[str]:
    """Chinese, Japanese, Korean, Thai and the like, with a tokenizer that splits at spaces."""
    if tokenizer != "13a":
        return
    text = "".join(line for lines in references for line in lines[:2000])
    letters = sum(character.isalpha() for character in text)
    odd = len(_ODD_SCRIPT.findall(text))
    if odd * 2 > letters:
        language = next((code for pattern, code in _SCRIPT_OF if len(pattern.findall(text)) * 5 > odd), "")
        hint = f"target_language={language}" if language else "the target language (target_language=)"
        yield (
            f"BLEU's tokenizer 13a does not fit this script: it finds words by spaces; give {hint}, "
            f"and believe chrF2 rather than this BLEU"
        )


def _tokenized(hypotheses: Sequence[str]) -> Iterator[str]:
    count = sum(line.endswith(" .") for line in hypotheses)
    if count >= TOKENIZED:
        yield (
            f"{count:,} hypotheses end in ' .', as tokenized text does; scores of tokenized text cannot be "
            f"compared with those of other systems: detokenize both sides first"
        )


def _lines(numbers: Sequence[int]) -> str:
    """ "line 2", "lines 2, 5", "lines 2, 5, … (40 in all)"."""
    shown = ", ".join(str(number) for number in numbers[:MAX_LISTED])
    more = f", … ({len(numbers):,} in all)" if len(numbers) > MAX_LISTED else ""
    return f"line{'s' * (len(numbers) != 1)} {shown}{more}"
