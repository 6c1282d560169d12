"""What a preparation reports on the terminal: filters that leave out much of a corpus, or suit its languages badly."""

from pathlib import Path
from typing import Any

import pytest

from nmt.data.data_card import losses
from tests.conftest import RunProgram
from tests.small_text import files


def card(pairs: int, max_words: int | None = None, languages: tuple[str, str] = ("en", "zh")) -> dict[str, Any]:
    examples = [{"pair": n, "source": f"line {n}\x1b[2J", "target": "ligne " + "x" * 99} for n in (3, 8, 9)]
    return {
        "languages": list(languages),
        "read": 1000,
        "dropped": {"unequal lengths": {"pairs": pairs, "examples": examples}, "empty": {"pairs": 1, "examples": []}},
        "cleaning": {"max_words": max_words},
    }


def test_a_filter_that_leaves_out_over_a_tenth_is_said_with_its_reason_and_examples() -> None:
    (line,) = losses(card(101))
    assert line.startswith("101 of 1,000 pairs (10%) are left out: unequal lengths; for example line 3")
    assert line.count(" / ligne ") == 3
    assert "\x1b" not in line
    assert len(line) < 500
    assert not list(losses(card(100)))


@pytest.mark.parametrize(("languages", "names"), [(("en", "zh"), "zh"), (("ja", "th"), "ja and th")])
def test_a_limit_in_words_is_remarked_on_where_a_language_has_no_spaces(languages: tuple[str, str], names: str) -> None:
    (line,) = losses(card(0, 50, languages))
    assert line.startswith(f"cleaning.max_words=50 counts words between spaces, and {names} has none")
    assert not list(losses(card(0, 50, ("en", "fr"))))
    assert not list(losses(card(0, None, languages)))


def test_it_reaches_the_terminal(text: Path, run_program: RunProgram) -> None:
    for name in ("b.en", "b.fr"):
        lines = (text / name).read_text(encoding="utf-8").split("\n")
        lines[:80] = ["the same on both sides"] * 80
        (text / name).write_text("\n".join(lines), encoding="utf-8")
    done = run_program("prepare", *files(), "tokenizer.vocab_size=310")
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stderr.split("\n") if line.startswith("note: ")]
    assert "80 of 400 pairs (20%) are left out: identical sides; for example the same on both sides / the same" in line
