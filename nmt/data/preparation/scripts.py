"""Which letters a language is written in."""

import re

SPACELESS = frozenset({"zh", "ja", "th", "lo", "km", "my", "bo"})  # words are not divided by spaces

_LATIN = (
    "af az bs ca cs cy da de en eo es et eu fi fo fr fy ga gd gl hr ht hu id is it jv la lb lt lv mg mi ms mt nl nn no "
    "oc pl pt rm ro sk sl so sq sv sw tl tr uz vi xh yo zu"
).split()
_RANGES = {
    **dict.fromkeys(_LATIN, "A-Za-zªº\u00c0-\u024f\u1e00-\u1eff"),
    **dict.fromkeys(("ru", "uk", "be", "bg", "mk", "kk", "ky", "mn", "tg", "tt"), "\u0400-\u052f"),
    **dict.fromkeys(
        ("ar", "fa", "ur", "ps", "ug"), "\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufefc"
    ),
    **dict.fromkeys(("hi", "mr", "ne", "sa"), "\u0900-\u097f"),
    **dict.fromkeys(("he", "yi"), "\u0590-\u05ff\ufb1d-\ufb4f"),
    "el": "\u0370-\u03ff\u1f00-\u1fff",
    "hy": "\u0530-\u058f",
    "ka": "\u10a0-\u10ff",
    "am": "\u1200-\u139f",
    "bn": "\u0980-\u09ff",
    "pa": "\u0a00-\u0a7f",
    "gu": "\u0a80-\u0aff",
    "ta": "\u0b80-\u0bff",
    "te": "\u0c00-\u0c7f",
    "kn": "\u0c80-\u0cff",
    "ml": "\u0d00-\u0d7f",
    "si": "\u0d80-\u0dff",
    "th": "\u0e00-\u0e7f",
    "lo": "\u0e80-\u0eff",
    "my": "\u1000-\u109f",
    "km": "\u1780-\u17ff",
    "ko": "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af\u4e00-\u9fff",
    "zh": "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff",
    "ja": "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uff66-\uff9f",
}
_INSIDE = {language: re.compile(f"[{letters}]") for language, letters in _RANGES.items()}
_OUTSIDE = {language: re.compile(rf"[^\W\d_{letters}]") for language, letters in _RANGES.items()}
_LATIN_LANGUAGES = frozenset(_LATIN)


def in_other_script(text: str, language: str) -> bool:
    """True where most letters are not of the language's script; False for a language that is not known here."""
    if language not in _RANGES:
        return False
    if language in _LATIN_LANGUAGES and _is_latin_1(text):  # nearly every line: spares the count
        return False
    outside = len(_OUTSIDE[language].findall(text))
    return outside > 0 and outside > len(_INSIDE[language].findall(text))


def _is_latin_1(text: str) -> bool:
    try:
        text.encode("latin-1")
    except UnicodeEncodeError:
        return False
    return True
