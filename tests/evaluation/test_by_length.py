"""Source lengths, their bins, and scores in each bin."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU

from nmt.evaluation.by_length import BINS, Bin, deciles, source_length
from nmt.evaluation.evaluation_report import score_translations, text_report


def test_bins_cover_every_length_from_one_once() -> None:
    for length in range(1, 131):
        assert sum(length in where for where in BINS) == 1
    assert not any(0 in where for where in BINS)
    assert [where.low for where in BINS] == [1, 10, 20, 30, 40, 50, 60]


@pytest.mark.parametrize(("words", "low"), [(1, 1), (9, 1), (10, 10), (59, 50), (60, 60), (211, 60)])
def test_a_sentence_is_in_the_bin_of_its_source(words: int, low: int) -> None:
    rows = score_translations(["a b c d"], [["a b c d"]], ["w " * words]).by_length
    assert [row["low"] for row in rows if row["n"]] == [low]


def test_bleu_of_a_bin_is_sacrebleus_on_its_sentences() -> None:
    short = [("the old dog sleeps now", "the old dog sleeps here now", 7), ("we see a tree", "we see a big tree", 4)]
    long = [("he runs to the house again", "he walks to the house again", 13)]
    hypotheses, references, lengths = zip(*short, *long, strict=True)
    rows = score_translations(hypotheses, [references], ["w " * length for length in lengths]).by_length
    for row, part in ((rows[0], short), (rows[1], long)):
        expected = BLEU().corpus_score([h for h, _, _ in part], [[r for _, r, _ in part]])
        assert row["n"] == len(part)
        assert row["source_words"] == sum(length for _, _, length in part)
        assert (row["bleu"], row["brevity_penalty"]) == (expected.score, expected.bp)
        assert (row["length_ratio"], row["precisions"]) == (expected.ratio, expected.precisions)


def test_a_bin_that_holds_everything_scores_as_the_whole() -> None:
    lines = ["a b c d e", "f g h i j k", "l m n o p"]
    result = score_translations(lines, [["a b c d x", "f g h i j k", "l m y o p"]], ["one two"] * 3)
    bleu, row = result.metrics["bleu"], result.by_length[0]
    assert row["bleu"] == bleu["score"]
    assert row["interval"] == bleu["interval"]
    assert row["chrf"] == result.metrics["chrf"]["score"]


def test_identical_systems_have_identical_numbers() -> None:
    arguments = (["a b c d e", "f g h i"], [["a b c d f", "f g h i"]], ["x y", "z"])
    assert score_translations(*arguments) == score_translations(*arguments)


def test_a_source_without_words_is_in_no_bin_and_is_named() -> None:
    result = score_translations(["a b c d", "e"], [["a b c d", "e"]], ["one", " \t\u00a0"])
    assert sum(row["n"] for row in result.by_length) == 1
    assert any("1 of 2 sources has no words: line 2" in warning for warning in result.warnings)


def test_empty_bins_are_there_with_nothing_in_them() -> None:
    rows = score_translations(["a b c d"], [["a b c d"]], ["one"]).by_length
    assert len(rows) == 7
    assert all(row["n"] == 0 and row["bleu"] is None and row["interval"] is None for row in rows[1:])
    json.dumps(rows, allow_nan=False)


def test_a_bin_of_under_100_sentences_is_called_descriptive() -> None:
    rows = score_translations(["a b c d"] * 103, [["a b c d"] * 103], ["one"] * 100 + ["w " * 11] * 3).by_length
    assert rows[0]["note"] == ""
    assert "descriptive" in rows[1]["note"]


def test_the_table_has_a_line_for_each_bin_that_holds_sentences_and_columns_that_align() -> None:
    result = score_translations(["a b c d", "e f g h"], [["a b c d", "e f g x"]], ["one", "w " * 61])
    evaluation = {
        "system": "s", "run": "s", "updates": 7, "capped": 1, "search": None, "metrics": result.metrics,
        "by_length": result.by_length, "warnings": ["look here"],
        "test": {
            "name": "t", "sentences": 2, "source_language": "", "target_language": "de", "references_sha256": ["x"],
        },
    }  # fmt: skip
    lines = text_report(evaluation).split("\n")
    header = next(line for line in lines if "source words" in line)
    rows = lines[lines.index(header) + 1 :][:2]
    assert [row.split()[0] for row in rows] == ["1–9", "60+"]
    end = header.index("BLEU") + len("BLEU")
    assert [row[:end].split()[-1] for row in rows] == ["100.00", "59.46"]
    assert any("warning: look here" in line for line in lines)


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
