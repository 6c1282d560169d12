"""What is measured, and how. All translations are invented."""

import json

import numpy as np
import pytest
from sacrebleu.metrics import BLEU

from nmt.data.corpus import Pair, TestSet
from nmt.errors import ConfigError
from nmt.evaluation.by_length import source_length
from nmt.study.extra_rows import equal_time, other_searches
from nmt.study.figures import length_chart, write_chart
from nmt.study.hypothesis_tests import WHOLE_SET
from nmt.study.length_views import MaxLength, TrainingLengths, length_views
from nmt.study.report import build_report, remarks
from nmt.study.results import Result, System, group_by_system
from nmt.study.tables import SIGNIFICANCE, grids
from tests.study.fakes import (
    BINS,
    FAULTS,
    RECORD,
    choices,
    invented_test,
    known,
    report_of,
    systems_in,
    translations,
)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return report_of(systems_in(tmp_path_factory.mktemp("runs"), seeds=2))


def test_bins_are_by_the_source_and_the_same_for_every_system(report):
    words = report.views[0]
    assert [where.n for where in words.bins] == list(BINS.values())
    assert [where.source_tokens for where in words.bins] == [length * n for length, n in BINS.items()]


def test_bleu_of_a_bin_is_sacrebleus_corpus_bleu_mean_over_seeds(report):
    row = report.views[0].scores["rnn"][2]
    inside = [at for at, source in enumerate(invented_test().sources) if source_length(source) == 23]
    references = [[invented_test().references[0][at] for at in inside]]
    seeds = [BLEU().corpus_score([translations("rnn", seed)[at] for at in inside], references) for seed in (1, 2)]
    assert row.seeds == [score.score for score in seeds]
    assert row.bleu == np.mean(row.seeds)
    assert row.brevity_penalty == np.mean([score.bp for score in seeds])
    assert row.interval[0] < row.bleu < row.interval[1]


def test_the_headline_is_the_difference_of_differences(report):
    found = {one.system: one for one in report.headlines}
    assert set(found) == set(FAULTS) - {"rnn"}
    one = found["bahdanau"]
    assert one.estimate == pytest.approx(one.gap_long - one.gap_short)
    assert (one.n_short, one.n_long) == (250, 148)
    assert len(one.seeds) == 2
    assert one.interval[0] > 0
    assert "the gap grows with length" in one.sentence


def test_a_tested_bin_has_both_tests_and_holms_correction(report):
    tests = [test for test in report.significance.tests if test.b == "bahdanau"]
    assert [test.bin for test in tests] == [WHOLE_SET, "1–9", "10–19", "20–29", "30–39", "40–49", "50–59", "60+"]
    for test in tests[1:6]:
        for way in ("bootstrap", "randomisation"):
            assert getattr(test, f"p_{way}") <= getattr(test, f"holm_{way}") <= 1
    assert [test.holm_bootstrap for test in tests[6:]] == [None, None]  # 40 and 7 sentences: no claim


def test_a_small_test_set_is_tested_but_carries_no_star(tmp_path):
    test = TestSet("test", ["a good day for all"] * 99, [["ein guter Tag für alle"] * 99])
    lines = {"a": ["ein guter Tag für alle"] * 99, "b": [f"ein {'gut' * n} Tag für alle" for n in range(99)]}
    systems = [System(label, (Result(label, label, tmp_path, texts),)) for label, texts in lines.items()]
    (whole, *_) = build_report(systems, [], known()._replace(test=test), choices(), RECORD).significance.tests
    assert (whole.bin, whole.significant, whole.holm_bootstrap) == (WHOLE_SET, False, None)
    assert whole.p_randomisation < 0.05


def test_identical_outputs_are_never_different(tmp_path):
    (system,) = systems_in(tmp_path, ("rnn",))
    report = report_of([system, System("copy", system.results)], pairs="all")
    for test in report.significance.tests:
        assert (test.difference, test.identical, test.significant) == (0.0, True, False)
        assert test.p_bootstrap == test.p_randomisation == 1.0


def test_systems_that_agree_in_one_bin_only_do_not_differ_there(tmp_path):
    rnn, luong = systems_in(tmp_path, ("rnn", "luong"))
    lengths = [source_length(source) for source in invented_test().sources]
    both = zip(lengths, rnn.results[0].hypotheses, luong.results[0].hypotheses, strict=True)
    mixed = Result("mixed", "mixed", tmp_path, [a if length == 23 else b for length, a, b in both])
    tests = report_of([rnn, System("mixed", (mixed,))]).significance.tests
    same = [test for test in tests if test.identical]
    assert [test.bin for test in same] == ["20–29"]
    assert same[0].holm_bootstrap == same[0].holm_randomisation == 1.0


@pytest.mark.slow
def test_all_pairs_are_corrected_together(tmp_path):
    systems = systems_in(tmp_path)
    every, against = (report_of(systems, pairs=pairs).significance.tests for pairs in ("all", "baseline"))
    assert len(every) == 2 * len(against)

    def adjusted(tests):
        return next(t.holm_randomisation for t in tests if (t.a, t.b, t.bin) == ("rnn", "luong", "1–9"))

    assert adjusted(every) >= adjusted(against)


@pytest.mark.slow
def test_among_many_pairs_a_large_difference_still_has_its_star(tmp_path):
    """Of 1,000 resamples the smallest p is 1 in 1,001: 66 of those would not be small."""
    reference = "the old dog sees a small house near that wood"
    lines = {f"s{n:02}": ([reference] * (200 - 10 * n) + [reference[: 20 + n]] * 10 * n) for n in range(12)}
    systems = [text_system(tmp_path, label, texts) for label, texts in lines.items()]
    test = TestSet("test", [reference] * 200, [[reference] * 200])
    found = build_report(systems, [], known()._replace(test=test), choices(pairs="all", trials=99), RECORD).significance
    whole = [test for test in found.tests if test.bin == WHOLE_SET]
    assert len(whole) == 66
    assert all(test.significant for test in whole if test.difference < -20)
    assert (found.resamples, found.trials) == (2640, 2640)


def test_capped_outputs_are_counted_over_all_seeds(tmp_path):
    report = report_of(systems_in(tmp_path, ("rnn",), seeds=2))
    assert report.systems[0].capped == 6
    assert "(capped) in all seeds: rnn 6." in "\n".join(remarks(report, [], []))


def test_seeds_stand_in_their_order(tmp_path):
    results = systems_in(tmp_path, ("rnn",), seeds=3)[0].results
    (system,) = group_by_system([results[2], results[0], results[1]])
    assert [result.seed for result in system.results] == [1, 2, 3]


def test_of_several_references_each_system_has_the_nearest_in_length(tmp_path):
    short, long = "one two three four", "one two three four five six seven eight nine ten"
    test = TestSet("test", [short] * 9, [[short] * 9, [long] * 9])
    systems = [text_system(tmp_path, label, [line] * 9) for label, line in (("a", short), ("b", long))]
    report = build_report(systems, [], known()._replace(test=test), choices(), RECORD)
    tables = {grid.title: grid for grid in grids(report)}
    tokens = [tables[f"{label} by source words"].rows[0][3] for label in "ab"]
    assert tokens == ["36", "90"]


def test_sentences_of_two_words_are_no_certainty(tmp_path):
    """BLEU is not defined where no line has four words: shown as such, without interval or star."""
    test = TestSet("test", ["good day"] * 100, [["guten Tag"] * 100])
    systems = [
        System(label, (Result(label, label, tmp_path, [text] * 100),))
        for label, text in (("a", "guten Tag"), ("b", "schlechten Tag, sehr schlechten Tag"))
    ]
    report = build_report(systems, [], known()._replace(test=test), choices(), RECORD)
    row = report.views[0].scores["a"][0]
    assert (row.bleu, row.interval, row.chrf) == (None, None, 100.0)
    assert "no 4-gram" in row.note
    for test in report.significance.tests:
        assert (test.difference, test.interval, test.significant) == (None, None, False)
        assert (test.p_bootstrap, test.p_randomisation, test.holm_bootstrap) == (None, None, None)


def test_a_single_sentence_has_a_score_and_no_interval(tmp_path):
    line = "one two three four five"
    report = report_of_texts(tmp_path, [line], {"a": [line], "b": ["one two three four"]})
    assert [report.views[0].scores[label][0].interval for label in "ab"] == [None, None]
    tests = report.significance.tests
    assert [(test.difference < 0, test.interval) for test in tests] == [(True, None)] * 2


def test_a_score_of_0_says_why_and_has_no_certain_interval(tmp_path):
    line = "one two three four five"
    report = report_of_texts(tmp_path, [line] * 3, {"a": [line] * 3, "wrong": ["x y z u v"] * 3, "silent": [""] * 3})
    rows = {system.system: system for system in report.systems}
    assert [(rows[label].bleu, rows[label].interval) for label in ("wrong", "silent")] == [(0.0, None)] * 2
    notes = "\n".join(grids(report)[0].notes)
    assert "wrong: BLEU is 0 because no word of the hypotheses is in the references." in notes
    assert "silent: BLEU is 0 because no hypothesis has four words" in notes


def test_sources_without_words_leave_no_table_of_bins_and_a_figure(tmp_path):
    texts = TrainingLengths([3, 4], [5, 6], None, 100)
    test = TestSet("test", [""] * 2, [["one two three four"] * 2])
    systems = [text_system(tmp_path, label, ["one two three four"] * 2) for label in "ab"]
    report = build_report(systems, [], known()._replace(test=test, training=texts), choices(), RECORD)
    assert [grid.title for grid in grids(report)] == ["Systems", SIGNIFICANCE]
    write_chart(length_chart(report, report.views[0]), tmp_path / "figure")


@pytest.mark.parametrize(
    ("labels", "pairs", "said"),
    [
        (("rnn", "luong"), "baseline", "over the 5 bins of 100 sentences or more; the whole test set is one test"),
        (("rnn", "luong", "bahdanau"), "baseline", "more of each pair; the whole test set over its 2 pairs"),
        (("rnn", "luong", "bahdanau"), "all", "more of all 3 pairs; the whole test set over its 3 pairs"),
    ],
)
def test_what_holm_corrects_together_is_said(tmp_path, labels, pairs, said):
    assert said in report_of(systems_in(tmp_path, labels), pairs=pairs).significance.holm


def test_without_a_bin_of_a_hundred_none_is_said_to_be_corrected(tmp_path):
    line = "one two three four five"
    report = report_of_texts(tmp_path, [line] * 3, {"a": [line] * 3, "b": ["x y z u v"] * 3})
    assert report.significance.holm.endswith("no bin has 100 sentences, so no bin is starred")


def text_system(path, label, lines):
    return System(label, (Result(label, label, path, lines),))


def report_of_texts(path, references, texts):
    """What other programs made of sources that are the references."""
    systems = [text_system(path, label, lines) for label, lines in texts.items()]
    test = TestSet("test", references, [references])
    return build_report(systems, [], known()._replace(test=test), choices(), RECORD)


def test_an_unknown_baseline_is_named(tmp_path):
    with pytest.raises(ConfigError, match="baseline=x is none of the systems: rnn"):
        build_report(systems_in(tmp_path, ("rnn",)), [], known(), choices(baseline="x"), RECORD)


def test_deciles_and_pieces_are_views_of_the_same_sentences():
    sources = [f"w{' w' * n}" for n in range(30)]
    views = length_views([*sources, " "], [2 * n for n in range(31)])
    assert [view.name for view in views] == ["words", "deciles", "pieces"]
    assert sum(len(inside) for inside in views[0].members) == 30
    assert [len(inside) for inside in views[1].members] == [3] * 10


def test_training_lengths_are_shares_and_end_at_a_line():
    words, _, pieces = length_views(["a", "b " * 15, "c " * 25], [1, 20, 30])
    text = TrainingLengths([3, 5, 12, 40], [4, 5, 15, 90], None, 100)
    assert text.shares(words) == [0.5, 0.25, 0.0]
    assert text.max_length_mark("words") == MaxLength(40, "longest in training: 40")
    # 50 words between spaces may be more tokens
    limited = TrainingLengths([3, 56], [4, 60], 50, 100).max_length_mark("deciles")
    assert limited == MaxLength(56, "longest in training: 56 (max_words=50)")
    assert TrainingLengths([3], [95], None, 100).max_length_mark("pieces").at == 100
    assert text.shares(pieces) == [0.5, 0.0, 0.0]


def test_training_text_that_was_left_out_as_too_long_is_not_counted():
    from nmt.study.length_views import training_lengths

    class Letters:
        def encode_batch(self, texts):
            return [list(text.replace(" ", "")) for text in texts]

    pairs = [Pair("a b", "c"), Pair("a b c", "d"), Pair("long", "e"), Pair("", "f")]
    found = training_lengths(pairs, Letters(), Letters(), max_words=2, max_pieces=3)
    assert (found.words, found.pieces) == ([2], [2])


def test_equal_time_takes_the_latest_weights_that_are_not_dearer(tmp_path):
    systems = systems_in(tmp_path, ("rnn", "bahdanau", "luong"))
    for name, updates in (("bahdanau", (500, 750, 1000)), ("luong", (1250,))):
        (tmp_path / name / "kept").mkdir()
        for update in updates:
            (tmp_path / name / "kept" / f"update-{update:07}.safetensors").touch()
    rows, lacking = equal_time(systems)
    assert [(row.system, row.checkpoint.stem) for row in rows] == [
        ("bahdanau at rnn's CPU time (2:00)", "update-0000750")
    ]
    assert (rows[0].training.updates, rows[0].training.cpu_seconds) == (750, 120.0)
    assert "luong" in lacking[0]


def test_a_run_kept_without_weights_keeps_its_row_of_equal_time_while_that_is_no_dearer(tmp_path):
    systems = systems_in(tmp_path, ("rnn", "bahdanau", "luong"))
    for name, updates in (("bahdanau", 750), ("luong", 1250)):
        file = tmp_path / name / "evaluation" / "equal-time" / "test.json"
        file.parent.mkdir()
        file.write_text(json.dumps({"updates": updates}))
    rows, lacking = equal_time(systems)
    assert [(row.training.updates, row.folder.name) for row in rows] == [(750, "equal-time")]
    assert "luong" in lacking[0]
    assert "bahdanau" not in lacking[0]
    assert "learning rate was still to fall" in lacking[1]


def test_time_is_not_compared_across_precisions(tmp_path):
    systems = systems_in(tmp_path, ("rnn", "bahdanau"))
    systems[0].results[0].training.settings["precision"] = "bf16"
    systems[1].results[0].training.settings["precision"] = "fp32"
    assert equal_time(systems) == ([], ["No row of equal time for bahdanau: trained in another precision."])


def test_what_costs_no_more_as_a_whole_lacks_no_row_of_equal_time(tmp_path):
    rnn = systems_in(tmp_path, ("rnn",))[0]
    assert equal_time([rnn, System("copy", rnn.results)]) == ([], [])


def test_each_search_is_a_row_of_each_run(tmp_path):
    rows = other_searches(systems_in(tmp_path, ("rnn",), seeds=2), ["beam=1", "beam=10 length_penalty=0"])
    assert [row.system for row in rows] == ["rnn, beam=1"] * 2 + ["rnn, beam=10 length_penalty=0"] * 2
    assert rows[2].settings == ("beam=10", "length_penalty=0")
    assert len({row.folder for row in rows}) == 4


def test_variants_are_scored_but_neither_tested_nor_drawn(tmp_path):
    rnn, luong = systems_in(tmp_path, ("rnn", "luong"))
    report = report_of([rnn], variants=[System("rnn, beam=1", luong.results)])
    assert report.significance is None
    assert list(report.views[0].scores) == ["rnn"]
    assert list(report.views[0].variants) == ["rnn, beam=1"]
    assert [one.system for one in report.variants] == ["rnn, beam=1"]
