"""The axis of the study."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from nmt.evaluation.lengths import BINS, Bin, deciles, source_length


def test_punctuation_counts_as_sacrebleu_cuts_it() -> None:
    assert source_length('The old dog sleeps, he said: "no".') == 12
    assert source_length("the  old\tdog\u00a0sleeps") == 4


def test_what_holds_no_word_has_no_length() -> None:
    assert [source_length(line) for line in ("", " \t", "\u00a0")] == [0, 0, 0]


def test_labels_name_both_ends() -> None:
    assert [where.label for where in BINS][:2] == ["1–9", "10–19"]
    assert (BINS[-1].label, Bin(7, 8).label) == ("60+", "7")


@given(st.lists(st.integers(0, 70), max_size=300))
def test_deciles_hold_each_sentence_once_and_follow_each_other(lengths: list[int]) -> None:
    bins = deciles(lengths)
    assert len(bins) <= 10
    for length in lengths:
        assert sum(length in where for where in bins) == (length > 0)
    assert all(left.high == right.low for left, right in pairwise(bins))
    assert all(any(length in where for length in lengths) for where in bins)


def test_deciles_of_many_lengths_are_of_equal_size() -> None:
    bins = deciles(list(range(1, 1001)))
    assert [where.high - where.low for where in bins if where.high] == [100] * 10
