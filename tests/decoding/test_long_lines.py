"""Where long lines are split, and how their parts are joined."""

from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.decoding.long_lines import Hypothesis, join_parts, split_line


def words_fit(max_words: int):
    return lambda text: len(text.split()) <= max_words


@settings(deadline=None)
@given(st.text(max_size=200), st.integers(1, 7))
def test_nothing_is_lost_and_every_part_fits(text, max_length):
    parts = split_line(text, lambda part: len(part) <= max_length)
    assert "".join(parts) == text
    assert all(len(part) <= max_length for part in parts)


def test_a_text_that_fits_stays_whole():
    assert split_line("one. two. three.", words_fit(3)) == ["one. two. three."]


def test_sentences_are_kept_whole_where_they_fit():
    text = "The first one, it is short. Is the second? The third one ends here! The last."
    assert split_line(text, words_fit(6)) == [
        "The first one, it is short. ",
        "Is the second? ",
        "The third one ends here! ",
        "The last.",
    ]


def test_clauses_come_before_spaces_and_spaces_before_anywhere():
    assert split_line("one two three; four five", words_fit(3)) == ["one two three; ", "four five"]
    assert split_line("one two three four", words_fit(2)) == ["one two ", "three four"]
    assert split_line("abcdefgh", lambda part: len(part) <= 4) == ["abcd", "efgh"]


def test_scripts_without_spaces_are_cut_after_their_full_stops():
    assert split_line("老狗在睡。我们走吧。", lambda part: len(part) <= 5) == ["老狗在睡。", "我们走吧。"]


def test_combining_accents_and_joined_emoji_are_not_split():
    assert split_line("abe\u0301d", lambda part: len(part) <= 3) == ["ab", "e\u0301d"]
    family = "\U0001f468\u200d\U0001f469"
    assert split_line("abc" + family, lambda part: len(part) <= 3) == ["abc", family]


def hypothesis(text: str, score: float, capped: bool = False) -> Hypothesis:
    return Hypothesis(text, score, capped, 1)


def test_parts_are_joined_by_rank_and_a_short_list_repeats_its_last():
    parts = [[hypothesis("a", -1.0), hypothesis("b", -3.0)], [hypothesis("c", -2.0, capped=True)]]
    assert join_parts(parts, 5) == [Hypothesis("a c", -1.5, True, 2), Hypothesis("b c", -2.5, True, 2)]


def test_empty_parts_leave_no_double_spaces():
    assert join_parts([[hypothesis("a", 0)], [hypothesis("", 0)], [hypothesis("b", 0)]], 1)[0].text == "a b"
