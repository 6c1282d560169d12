"""Checks of hypotheses, references and sources: warnings about whatever makes their scores misleading."""

import html.entities
import re
from collections.abc import Iterable, Sequence
from itertools import chain

from nmt.data.text import words

_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});")
_UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_NO_SPACES = re.compile(f"[{_UNSPACED}]")
_ODD_SCRIPT = re.compile(f"[{_UNSPACED}\u0f00-\u0fff\u1100-\u11ff\uac00-\ud7af]")
_SCRIPT_OF = ((re.compile("[\u3040-\u30ff]"), "ja"), (re.compile("[\uac00-\ud7af]"), "ko"),
              (re.compile("[\u0e00-\u0e7f]"), "th"), (re.compile("[\u3400-\u9fff]"), "zh"))  # fmt: skip
TOKENIZED = 100  # lines ending in " ."; sacreBLEU's own threshold
MAX_LISTED = 10  # line numbers in one warning
MAX_READ = 2_000  # lines of a side that its script is seen from


def text_warnings(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], sources: Sequence[str] | None, tokenizer: str
) -> list[str]:
    """One line for each thing that makes a score say less than it seems to."""
    warnings = []
    for stream, lines in enumerate(references, start=1):
        if empty := _numbers(not line.strip() for line in lines):
            which = f" (reference file {stream})" if len(references) > 1 else ""
            warnings.append(
                f"{len(empty):,} of {len(lines):,} references{which} {'is' if len(empty) == 1 else 'are'} empty: "
                f"{_listed(empty)}; what was translated there counts as too long, as in sacreBLEU"
            )
    sources = sources or []
    if empty := _numbers(not words(line) for line in sources):
        warnings.append(
            f"{len(empty):,} of {len(sources):,} sources {'has' if len(empty) == 1 else 'have'} no words: "
            f"{_listed(empty)}; counted in the scores of the whole set, in no length bin"
        )
    if _mostly_in(_NO_SPACES, "".join(sources[:MAX_READ])):  # split at spaces, a sentence is a word or two
        warnings.append(
            "the sources are in a script without spaces, so bins by words mean little; go by the axis of pieces"
        )
    # 13a un-escapes entities, so that BLEU does not see the fault
    foreign = [
        [e for e in _ENTITY.findall(line) if _is_entity(e) and not any(e in reference for reference in others)]
        for line, *others in zip(hypotheses, *references, strict=True)
    ]
    if numbers := _numbers(map(bool, foreign)):
        some = " ".join(list(dict.fromkeys(chain(*foreign)))[:5])
        noun = "hypothesis holds" if len(numbers) == 1 else "hypotheses hold"
        warnings.append(
            f"{len(numbers):,} {noun} entities that the references do not ({some}): {_listed(numbers)}; "
            f"BLEU may not see them, readers will"
        )
    text = "".join(line for lines in references for line in lines[:MAX_READ])
    if tokenizer == "13a" and _mostly_in(_ODD_SCRIPT, text):
        odd = len(_ODD_SCRIPT.findall(text))
        language = next((code for pattern, code in _SCRIPT_OF if len(pattern.findall(text)) * 5 > odd), "")
        hint = f"target_language={language}" if language else "the target language (target_language=)"
        warnings.append(
            f"BLEU's tokenizer 13a does not fit this script: it finds words by spaces; give {hint}, "
            f"and believe chrF2 rather than this BLEU"
        )
    if (count := sum(line.endswith(" .") for line in hypotheses)) >= TOKENIZED:
        warnings.append(
            f"{count:,} hypotheses end in ' .', as tokenized text does; scores of tokenized text cannot be "
            f"compared with those of other systems: detokenize both sides first"
        )
    return warnings


def _mostly_in(script: re.Pattern[str], text: str) -> bool:
    return 2 * len(script.findall(text)) > sum(character.isalpha() for character in text) > 0


def _is_entity(text: str) -> bool:
    return text[1] == "#" or text[1:] in html.entities.html5


def _numbers(flags: Iterable[bool]) -> list[int]:
    """The lines, counted from 1, that are flagged."""
    return [number for number, flag in enumerate(flags, start=1) if flag]


def _listed(numbers: Sequence[int]) -> str:
    """ "line 2", "lines 2, 5", "lines 2, 5, … (40 in all)"."""
    shown = ", ".join(map(str, numbers[:MAX_LISTED]))
    more = f", … ({len(numbers):,} in all)" if len(numbers) > MAX_LISTED else ""
    return f"line{'s' * (len(numbers) != 1)} {shown}{more}"
