"""Each filter takes what it names and nothing else, and the held-out sets are recognised however they are written."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.data.cleaning import (
    HeldOutIndex,
    PairFilter,
    Verdict,
    ascii_key,
    exact_key,
    in_other_script,
    looks_tokenised,
    mark_duplicates,
)
from nmt.data.corpus import Pair, TestSet
from nmt.errors import ConfigError
from nmt.training_settings import CleaningSettings

VALID = [Pair("Where is the red bicycle?", "Où est le vélo rouge ?"), Pair("Thank you.", "Merci.")]
TESTS = {
    "news": TestSet("news", ["Nobody saw them leave"], [["Personne ne les a vus partir"], ["Nul ne les vit partir"]])
}


def verdicts(pairs: list[tuple[str, str]], settings: CleaningSettings | None = None, **languages: str) -> list[Verdict]:
    held_out = HeldOutIndex.of(VALID, TESTS, one_side_words=4)
    names = {"source_language": "en", "target_language": "fr"} | languages
    pair_filter = PairFilter(settings or CleaningSettings.defaults(), **names, max_pieces=200, held_out=held_out)
    filtered = pair_filter([pair[0] for pair in pairs], [pair[1] for pair in pairs])
    return [Verdict(value) for value in filtered.verdicts]


def test_an_ordinary_pair_is_kept() -> None:
    assert verdicts([("the dog sleeps", "le chien dort"), ("yes", "oui"), ("3 + 4 = 7", "3 + 4 = 7 !")]) == [0, 0, 0]


@pytest.mark.parametrize("empty", ["", " ", "\t", "\u00a0", "\u3000"])
def test_a_side_without_words_is_empty(empty: str) -> None:
    assert verdicts([(empty, "le chien"), ("the dog", empty)]) == [Verdict.EMPTY, Verdict.EMPTY]


@pytest.mark.parametrize(
    ("pair", "setting", "verdict"),
    [
        (("a b c d", "a b"), {"max_words": 3}, Verdict.WORDS),
        (("a b", "a b c d"), {"max_words": 3}, Verdict.WORDS),
        (("one", "un deux trois quatre cinq six sept"), {"max_ratio": 3.0}, Verdict.RATIO),
        (("Adam Ost ", "Adam Ost"), {"identical": True}, Verdict.IDENTICAL),
        (("where is it", "где это находится"), {"script": True}, Verdict.SCRIPT),
        (("猫在这里睡觉", "le chat dort ici"), {"script": True}, Verdict.SCRIPT),
    ],
)
def test_each_filter_takes_its_kind_and_can_be_switched_off(
    pair: tuple[str, str], setting: dict[str, object], verdict: Verdict
) -> None:
    nothing = {"max_words": None, "max_ratio": None, "identical": False, "script": False}
    assert verdicts([pair], CleaningSettings.defaults(**(nothing | setting))) == [verdict]  # type: ignore[arg-type]
    assert verdicts([pair], CleaningSettings.defaults(**nothing)) == [Verdict.KEPT]  # type: ignore[arg-type]


def test_at_the_bound_a_pair_is_kept() -> None:
    assert verdicts([("a b c", "d e f")], CleaningSettings.defaults(max_words=3)) == [Verdict.KEPT]
    assert verdicts([("one", "un deux trois quatre cinq six")], CleaningSettings.defaults(max_ratio=3.0)) == [
        Verdict.KEPT
    ]


def test_a_text_that_cannot_fit_is_left_out_before_it_is_encoded() -> None:
    assert verdicts([("a" * 10_000_000, "b")]) == [Verdict.PIECES]


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("where is  the RED bicycle", "autre chose"),
        ("something else", "Où est le vélo\u00a0rouge?"),
        ("«Where is the red bicycle»", "Ou\u0300 est le ve\u0301lo rouge !"),
        ("thank you", "MERCI"),
        ("Nobody saw them leave.", "x"),
        ("x", "nul ne les vit partir..."),
    ],
)
def test_a_held_out_pair_is_found_in_other_spelling_and_on_one_side(source: str, target: str) -> None:
    assert verdicts([(source, target)]) == [Verdict.HELD_OUT]
    assert verdicts([(source, target)], CleaningSettings.defaults(decontaminate=False, max_ratio=None)) == [
        Verdict.KEPT
    ]


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("Thank you.", "Je vous remercie."),  # a short sentence on one side only
        ("Where is the red bicycle now?", "Où est le vélo rouge à présent ?"),
        ("Où est le vélo rouge ?", "Where is the red bicycle?"),  # the other way round: other sides
        ("!!!", "???"),
    ],
)
def test_what_is_not_in_a_held_out_set_stays(source: str, target: str) -> None:
    assert verdicts([(source, target)]) == [Verdict.KEPT]


@given(st.text(max_size=40), st.text(max_size=40))
def test_the_ascii_key_never_hides_an_equal_key(left: str, right: str) -> None:
    if exact_key(left) == exact_key(right):
        assert ascii_key(left) == ascii_key(right)


@given(st.text(max_size=30))
def test_case_and_spacing_do_not_change_the_key(text: str) -> None:
    assert exact_key("  ".join(text.split())) == exact_key(text.replace(" ", ""))


@pytest.mark.parametrize("language", ["en", "fr", "de", "ru", "el", "zh", "ja", "ko", "ar", "hi", "th", "he"])
def test_a_language_is_in_its_own_script_and_in_no_other(language: str) -> None:
    words = {
        "en": "the dog", "fr": "œuvre où", "de": "Straße für", "ru": "собака", "el": "σκύλος", "zh": "狗在睡觉",
        "ja": "犬が寝る", "ko": "개가 잔다", "ar": "الكلب", "hi": "कुत्ता", "th": "สุนัข", "he": "כלב",
    }  # fmt: skip
    assert not in_other_script(words[language], language)
    assert not in_other_script("12:30 (+49)", language)
    other = "ru" if language not in ("ru",) else "en"
    assert in_other_script(words[other], language)
    assert not in_other_script(words[other], "xx")


def test_all_but_the_first_of_equal_pairs_are_duplicates_and_a_second_look_changes_nothing() -> None:
    rng = np.random.default_rng(5)
    hashes = rng.integers(0, 2**64, 701, dtype=np.uint64)[rng.integers(0, 701, 5003)]
    found = rng.choice([Verdict.KEPT, Verdict.EMPTY], size=5003).astype(np.uint8)
    expected, seen = found.copy(), set()
    for i, value in enumerate(hashes.tolist()):
        if found[i] == Verdict.KEPT:
            expected[i] = Verdict.DUPLICATE if value in seen else Verdict.KEPT
            seen.add(value)
    for _ in range(2):
        mark_duplicates(found, hashes)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("text", ["it &apos;s late", "well @-@ known", "he came , saw , and left .", "wait ."])
def test_moses_escapes_and_punctuation_apart_look_tokenised(text: str) -> None:
    assert looks_tokenised(text)


@pytest.mark.parametrize(
    "text", ["it's late", "A&P Inc.", "a@b.org", "Où est-il ?", "Attends ! Qui : moi ?", "3.5, maybe."]
)
def test_raw_text_does_not_look_tokenised(text: str) -> None:
    assert not looks_tokenised(text)


@pytest.mark.parametrize("wrong", [{"max_words": 0}, {"max_ratio": 0.5}, {"one_side_words": 0}])
def test_a_filter_that_cannot_work_is_refused_by_its_key(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=f"^{next(iter(wrong))}="):
        CleaningSettings.defaults(**wrong)  # type: ignore[arg-type]
