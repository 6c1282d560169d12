"""What is said about texts before their scores are believed."""

import pytest

from nmt.data.text import require_equal_counts
from nmt.errors import UserError
from nmt.evaluation.evaluation_report import score_translations
from nmt.evaluation.text_checks import text_warnings


def test_different_counts_are_refused_with_every_name_and_count() -> None:
    with pytest.raises(UserError, match=r"h has 2 lines, r has 1 line;"):
        require_equal_counts({"h": 2, "r": 1})


def test_nothing_to_score_is_refused() -> None:
    with pytest.raises(UserError, match="no line"):
        score_translations([], [[]])


@pytest.mark.parametrize("shape", [(2, 1, 2), (1, 2, 1), (2, 2, 1)])
def test_scoring_never_cuts_the_longer_side(shape: tuple[int, int, int]) -> None:
    hypotheses, references, sources = (["a b c d"] * count for count in shape)
    with pytest.raises(UserError, match="counts differ"):
        score_translations(hypotheses, [references], sources)


def test_entities_that_references_lack_are_counted() -> None:
    hypotheses = ["he said &quot;yes of course&quot; today", "salt &amp; pepper on the table"]
    references = ['he said "yes of course" today', "salt & pepper on the table"]
    (warning,) = text_warnings(hypotheses, [references], None, "13a")
    assert "2 hypotheses hold entities" in warning
    assert "lines 1, 2" in warning


def test_entities_of_the_references_and_plain_ampersands_are_no_fault() -> None:
    lines = ["an &eacute; in HTML", "AT&T; and R&D", "&#233;"]
    assert text_warnings(lines, [lines], None, "13a") == []
    assert text_warnings(["AT&T; R&D &"], [["x"]], None, "13a") == []


def test_many_line_numbers_are_cut_short() -> None:
    (warning,) = text_warnings(["a"] * 41, [[""] * 41], None, "13a")
    assert "(41 in all)" in warning
    assert "11" not in warning


def test_an_empty_line_in_one_of_two_reference_files_names_the_file() -> None:
    (warning,) = text_warnings(["a"], [["a"], [""]], None, "13a")
    assert "reference file 2" in warning


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("先生は毎朝庭を歩く。", "ja"),
        ("我们今天去公园散步。", "zh"),
        ("우리는 공원에 간다", "ko"),
        ("เราไปเดินเล่น", "th"),
    ],
)
def test_a_script_that_13a_cannot_cut_is_named(line: str, hint: str) -> None:
    (warning,) = text_warnings([line], [[line]], None, "13a")
    assert f"target_language={hint}" in warning


def test_greek_and_a_single_foreign_word_raise_no_alarm() -> None:
    lines = ["ο σκύλος κοιμάται", "the word 公园 means park"]
    assert text_warnings(lines, [lines], None, "13a") == []


def test_tokenized_hypotheses_are_pointed_out() -> None:
    lines = ["he comes ."] * 100
    assert any("tokenized" in warning for warning in text_warnings(lines, [lines], None, "13a"))
    assert text_warnings(lines[1:], [lines[1:]], None, "13a") == []


@pytest.mark.parametrize(
    ("source", "warned"),
    [
        ("昨天下午我们在河边看见一只老狗。", True),
        ("เมื่อวานเราเห็นหมาแก่ริมแม่น้ำ", True),
        ("어제 우리는 늙은 개를 보았다.", False),
        ("we saw 日本 there", False),
    ],
)
def test_sources_without_spaces_have_no_words_to_count(source: str, warned: bool) -> None:
    said = [text for text in text_warnings(["a b c d"], [["a b c d"]], [source], "13a") if "without spaces" in text]
    assert bool(said) == warned
