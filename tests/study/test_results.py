"""Translations read back and grouped. All of them are invented."""

import gzip
import json

import pytest

from nmt.errors import UserError
from nmt.study.results import group_by_system, read_metrics, read_result, text_names
from tests.study.fakes import evaluation, invented_test, systems_in, translations, write_run


def test_training_facts_come_from_the_run_directory(tmp_path):
    training = read_result(write_run(tmp_path), invented_test()).training
    assert (training.updates, training.target_pieces, training.seconds) == (1500, 1_200_000, 150.0)


def test_totals_that_a_status_lacks_are_unknown(tmp_path):
    run = write_run(tmp_path)
    (run / "status.json").write_text(json.dumps({"updates": 1700, "target_pieces": 13, "cpu_seconds": 7.5}))
    assert read_result(run, invented_test()).training[:4] == (1700, 13, None, 7.5)


def test_half_a_line_at_the_end_of_the_metrics_is_passed_over(tmp_path):
    run = write_run(tmp_path)
    with (run / "metrics.jsonl").open("a") as metrics:
        metrics.write('{"update": 1550, "target_')
    assert [line["update"] for line in read_metrics(run)] == [250, 500, 750, 1000, 1250, 1500, 1500]


def test_translations_kept_compressed_are_read_too(tmp_path):
    run = write_run(tmp_path)
    plain = run / "evaluation" / "test.hyp.txt"
    plain.with_name("test.hyp.txt.gz").write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    assert read_result(run, invented_test()).hypotheses == translations("rnn")


def test_an_evaluation_without_its_run_is_read_too(tmp_path):
    run = write_run(tmp_path)
    (run / "config.yaml").unlink()
    result = read_result(run / "evaluation" / "test.json", invented_test())
    assert (result.run_dir, result.updates) == (None, 1500)


def test_a_run_without_evaluation_is_answered_with_the_command_that_makes_one(tmp_path):
    with pytest.raises(UserError, match=r"no evaluation.*nmt\.evaluate checkpoint="):
        read_result(tmp_path, invented_test())


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"by_length": []}', json.dumps({**evaluation(), "seed": 1})])
def test_a_file_that_is_no_evaluation_or_has_lost_its_translations_is_named(tmp_path, text):
    file = tmp_path / "odd.json"
    file.write_text(text)
    with pytest.raises(UserError, match=r"odd\.json"):
        read_result(file, invented_test())


def test_changed_translations_are_not_those_of_the_evaluation(tmp_path):
    run = write_run(tmp_path)
    (run / "evaluation" / "test.hyp.txt").write_text("something else\n" * len(invented_test().sources))
    with pytest.raises(UserError, match=r"translations beside it"):
        read_result(run, invented_test())


def test_text_of_any_program_is_a_system_of_its_own(tmp_path):
    file = tmp_path / "other.hyp.gz"
    file.write_bytes(gzip.compress("".join(f"{line}\n" for line in translations("luong")).encode()))
    result = read_result(file, invented_test(), "other")
    assert (result.system, result.hypotheses) == ("other", translations("luong"))


def test_a_text_that_is_a_line_short_is_refused_with_both_counts(tmp_path):
    file = tmp_path / "short.hyp"
    file.write_text("".join(f"{line}\n" for line in translations("luong")[:-1]))
    with pytest.raises(UserError, match=r"short\.hyp has 612 lines, the sources of test has 613 lines"):
        read_result(file, invented_test())


def test_text_files_are_called_by_their_stems(tmp_path):
    def named(*names):
        return list(text_names([tmp_path / name for name in names]).values())

    assert named("news.hyp.A-1.en.gz", "news.hyp.B.en.gz") == ["news.hyp.A-1", "news.hyp.B"]
    assert named("A.hyp", "B.hyp") == ["A", "B"]
    assert named("a.x.en", "a.y.fr") == ["a.x", "a.y"]
    assert named("same", "same.2") == ["same", "same.2"]
    assert named("one.hyp.en") == ["one.hyp"]
    assert named("a/out.txt", "b/out.txt") == ["out", "out"]  # told apart by their folders
    assert named("out.txt", "out.txt.gz") == ["out.txt", "out.txt.gz"]


def test_seeds_of_one_experiment_are_one_system(tmp_path):
    systems = systems_in(tmp_path, ("rnn", "luong"), seeds=3)
    assert [(system.label, len(system.results)) for system in systems] == [("rnn", 3), ("luong", 3)]


def test_two_runs_of_one_experiment_are_told_apart_by_their_place(tmp_path):
    runs = [write_run(tmp_path / place, "rnn") for place in ("small", "large")]
    results = [read_result(run, invented_test()) for run in runs]
    assert [system.label for system in group_by_system(results)] == ["small/rnn", "large/rnn"]


@pytest.mark.parametrize("part", [{"source_sha256": "ff" * 32}, {"references_sha256": ["ff" * 32]}])
def test_an_evaluation_of_another_text_is_refused(tmp_path, part):
    with pytest.raises(UserError, match=r"different test sets.*b/rnn"):
        read_result(write_run(tmp_path / "b", **part), invented_test())


def test_equal_text_under_another_name_is_accepted(tmp_path):
    assert read_result(write_run(tmp_path / "b", data="other"), invented_test())


def test_a_name_that_would_act_on_a_terminal_is_shown_and_does_nothing(tmp_path):
    file = tmp_path / "t.txt"
    file.write_text("".join(f"{line}\n" for line in translations("luong")))
    (system,) = group_by_system([read_result(file, invented_test(), "a\x1b[31m\nb\u202e")])
    assert system.label == "a\ufffd[31m\ufffdb\ufffd"
