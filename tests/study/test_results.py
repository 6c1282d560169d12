"""Evaluations read back and grouped. All numbers are invented."""

import json

import pytest

from nmt.errors import UserError
from nmt.study.results import group, read_result, refuse_different_tests
from tests.study.fakes import evaluation, write_run


def test_a_bin_is_called_by_the_whole_words_it_holds(tmp_path):
    result = read_result(write_run(tmp_path))
    assert [row.label for row in result.bins] == ["1–9", "10–19", "20–29", "30–39", "40–49", "50–59", "60+"]


def test_training_facts_come_from_the_run_directory(tmp_path):
    training = read_result(write_run(tmp_path)).training
    assert (training.updates, training.target_pieces, training.seconds) == (1500, 1_200_003, 121.7)


def test_a_status_file_goes_before_the_metrics(tmp_path):
    run = write_run(tmp_path)
    (run / "status.json").write_text(json.dumps({"updates": 1700, "target_pieces": 13, "cpu_seconds": 7.5}))
    assert read_result(run).training[:4] == (1700, 13, None, 7.5)


def test_half_a_line_at_the_end_of_the_metrics_is_passed_over(tmp_path):
    run = write_run(tmp_path)
    with (run / "metrics.jsonl").open("a") as metrics:
        metrics.write('{"update": 1550, "target_')
    assert read_result(run).updates == 1500


def test_an_evaluation_without_its_run_is_read_too(tmp_path):
    file = tmp_path / "elsewhere.json"
    file.write_text(json.dumps(evaluation()))
    result = read_result(file)
    assert (result.run_dir, result.updates) == (None, 1450)


def test_a_run_without_evaluation_is_answered_with_the_command_that_makes_one(tmp_path):
    with pytest.raises(UserError, match=r"no evaluation.*nmt\.evaluate checkpoint="):
        read_result(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"by_length": []}', json.dumps(evaluation()).replace("88.0", "NaN")])
def test_a_file_that_is_no_evaluation_is_named(tmp_path, text):
    file = tmp_path / "odd.json"
    file.write_text(text)
    with pytest.raises(UserError, match=r"odd\.json"):
        read_result(file)


def test_seeds_of_one_experiment_are_one_system(tmp_path):
    runs = [write_run(tmp_path, system, seed) for system in ("rnn", "luong") for seed in (1, 2, 3)]
    systems = group([read_result(run) for run in runs])
    assert [(system.label, len(system.results)) for system in systems] == [("rnn", 3), ("luong", 3)]


def test_two_runs_of_one_experiment_are_told_apart_by_their_place(tmp_path):
    runs = [write_run(tmp_path / place, "rnn") for place in ("small", "large")]
    assert [system.label for system in group([read_result(run) for run in runs])] == ["small/rnn", "large/rnn"]


def test_the_interval_over_seeds_holds_each_seeds_own(tmp_path):
    results = [read_result(write_run(tmp_path, "rnn", seed)) for seed in (1, 2)]
    results[0].evaluation["by_length"][0] |= {"bleu": 80.0, "interval": [79.0, 81.0]}
    results[1].evaluation["by_length"][0] |= {"bleu": 84.0, "interval": [83.0, 85.0]}
    first = group(results)[0].bins[0]
    assert (first.bleu, first.interval) == (82.0, (79.0, 85.0))


@pytest.mark.parametrize("part", [{"source_sha256": "ff" * 32}, {"references_sha256": ["ff" * 32]}])
def test_different_test_sets_are_refused_with_both_named(tmp_path, part):
    results = [read_result(write_run(tmp_path / "a")), read_result(write_run(tmp_path / "b", **part))]
    with pytest.raises(UserError, match=r"different test sets.*a/rnn.*b/rnn"):
        refuse_different_tests(results)


def test_equal_test_sets_of_other_names_are_accepted(tmp_path):
    results = [read_result(write_run(tmp_path / "a")), read_result(write_run(tmp_path / "b", name="other"))]
    refuse_different_tests(results)
