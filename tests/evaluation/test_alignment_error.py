"""Links as text and their error, on examples small enough to count by hand."""

import json
from collections.abc import Callable
from dataclasses import asdict

import pytest

from nmt.data.grammar import GrammarCorpus
from nmt.errors import UserError
from nmt.evaluation.alignment_error import (
    AlignmentBin,
    GoldAlignment,
    alignment_entry,
    all_sure,
    diagonal,
    mean_entry,
    pharaoh_line,
    read_alignments,
    read_entry,
    score_alignments,
)

# the dog sleeps / le chien dort; yes / (nothing); a cat / un chat
SOURCES, TARGETS = [3, 1, 2], [3, 0, 2]
GOLD = "1-1 2-2 3-3\n\n1-1 2-2\n"
MADE = "0-0 1-1 2-2\n\n0-0 1-1\n"


@pytest.fixture
def read(tmp_path) -> Callable[..., list[GoldAlignment]]:
    def reading(text: str, base: int, **settings: bool) -> list[GoldAlignment]:
        (tmp_path / "links").write_text(text)
        return read_alignments(str(tmp_path / "links"), SOURCES, TARGETS, base, **settings)

    return reading


def test_the_error_of_a_worked_example():
    """Four links, of them two sure and one possible; three sure ones are expected."""
    made = [{(0, 0), (1, 1), (2, 3), (3, 2)}]
    gold = [GoldAlignment(frozenset({(0, 0), (1, 1), (4, 4)}), frozenset({(0, 0), (1, 1), (4, 4), (2, 3), (5, 5)}))]
    aer, precision, recall = score_alignments(made, gold)
    assert aer == pytest.approx(1 - (2 + 3) / (4 + 3))
    assert precision == pytest.approx(3 / 4)
    assert recall == pytest.approx(2 / 3)


def test_links_are_counted_over_all_sentences_together_and_not_averaged():
    made = [{(0, 0)}, {(0, 0), (1, 1), (2, 2)}]
    gold = [all_sure([(0, 1)]), all_sure([(0, 0), (1, 1), (2, 2)])]
    assert score_alignments(made, gold) == (pytest.approx(1 - 6 / 8), pytest.approx(3 / 4), pytest.approx(3 / 4))


def test_nothing_is_divided_by_nothing():
    empty = [all_sure([])] * 3
    assert score_alignments([()] * 3, empty) == (None, None, None)
    assert score_alignments([], []) == (None, None, None)
    assert score_alignments([()], [all_sure([(0, 0)])]) == (1.0, None, 0.0)
    assert score_alignments([{(0, 0)}], [all_sure([])]) == (1.0, 0.0, None)


def test_perfect_links_have_no_error_on_the_grammar_corpus():
    test = GrammarCorpus(train_pairs=1, valid_pairs=1, test_pairs=20).test_sets()["test"]
    assert test.alignments is not None
    assert score_alignments(test.alignments, [all_sure(links) for links in test.alignments]) == (0.0, 1.0, 1.0)


def test_gold_of_either_base_fits_links_counted_from_0(read):
    made = [gold.sure for gold in read(MADE, base=0)]
    assert score_alignments(made, read(GOLD, base=1)).aer == 0.0


@pytest.mark.parametrize(
    ("text", "base", "message"),
    [
        (GOLD, 0, "line 1: link 3-3 leaves the sentence: counted from 0, its 3 words end at 2"),
        (MADE, 1, "line 1: link 0-0 leaves"),
        ("9-1\n\n\n", 1, "line 1: link 9-1 leaves"),
        ("1-9\n\n\n", 1, "line 1: link 1-9 leaves"),
        ("1-1\n\n0-1\n", 1, "line 3: link 0-1 leaves"),
        ("0-0 3-3\n\n\n", 0, "line 1: link 3-3 leaves"),
        ("\n0-0\n\n", 0, "line 2: link 0-0 leaves"),
        ("1-1\n\n1:2\n", 1, "line 3: 1:2 is no link"),
        ("1-1\n\n-1-2\n", 1, "line 3: -1-2 is no link"),
        ("1-1\n\n", 1, "links has 2 lines"),
    ],
)
def test_gold_that_cannot_be_that_of_these_sentences_is_refused_by_its_line(read, text, base, message):
    with pytest.raises(UserError, match=message):
        read(text, base)


def test_base_0_is_doubted_where_nothing_is_0(read, capsys):
    read("1-1\n\n1-1\n", base=0)
    assert "alignment.base=1" in capsys.readouterr().err


def test_possible_links_are_written_in_two_ways_and_sure_ones_are_possible(read):
    first = read("1-1 2p3 3?2 2p3\n\n\n", base=1)[0]
    assert first == GoldAlignment(frozenset({(0, 0)}), frozenset({(0, 0), (1, 2), (2, 1)}))


def test_a_file_of_the_other_direction_is_turned_and_checked_so(tmp_path):
    (tmp_path / "links").write_text("0-1 2p0\n")
    [gold] = read_alignments(str(tmp_path / "links"), [2], [3], base=0, reverse=True)
    assert gold == GoldAlignment(frozenset({(1, 0)}), frozenset({(1, 0), (0, 2)}))
    with pytest.raises(UserError, match="link 2-0 leaves"):
        read_alignments(str(tmp_path / "links"), [2], [3], base=0)


def test_pharaoh_lines_are_in_order_and_hold_each_link_once():
    assert pharaoh_line([(2, 0), (0, 1), (10, 2), (0, 1)]) == "0-1 2-0 10-2"
    assert pharaoh_line([]) == ""


def test_bins_are_of_source_lengths_and_sentences_without_words_are_in_none():
    gold = [all_sure([(0, 0)]), all_sure([(0, 0)]), all_sure([])]
    entry = alignment_entry(("rnn", "", 0, True), "gold", [{(0, 0)}, {(1, 0)}, ()], gold, [9, 10, 0])
    first, second, *others = entry.by_length
    assert first == AlignmentBin("1–9", 1, 0.0, 1.0, 1.0)
    assert (second.n, second.aer) == (1, 1.0)
    assert {(row.n, row.aer) for row in others} == {(0, None)}


def test_the_diagonal_links_each_target_word_to_the_same_place_of_its_source():
    assert diagonal(3, 3) == [(0, 0), (1, 1), (2, 2)]
    assert diagonal(4, 2) == [(1, 0), (3, 1)]
    assert diagonal(1, 3) == [(0, 0), (0, 1), (0, 2)]
    assert diagonal(0, 2) == diagonal(2, 0) == []


def test_an_entry_comes_back_from_json_and_seeds_are_averaged():
    first = alignment_entry(("rnn", "", 0, True), "gold", [{(0, 0)}], [all_sure([(0, 0)])], [9])
    second = alignment_entry(("rnn", "", 0, True), "gold", [{(1, 0)}], [all_sure([(0, 0)])], [9])
    assert read_entry(json.loads(json.dumps(asdict(first)))) == first
    mean = mean_entry("luong", [first, second])
    assert (mean.system, mean.aer, mean.seeds, mean.by_length[0].aer) == ("luong", 0.5, [0.0, 1.0], 0.5)
