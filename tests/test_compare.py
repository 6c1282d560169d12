"""python -m nmt.compare: on runs with invented numbers (fast), and from nothing to the table (slow)."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from typing import Any

import pytest
import torch
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
from safetensors.torch import save_file

from nmt.cli import Composed
from nmt.compare import compare, only_comparison_in
from nmt.data.test_sets import EvaluationSet
from nmt.errors import ConfigError
from nmt.experiments import ChildOverrides, evaluation_settings, is_evaluated, split_arguments
from nmt.files import file_sha256
from nmt.schema import check, conf_dir
from nmt.settings import CompareConfig
from tests.study.fakes import FAULTS, invented_test, translations, write_files, write_run

EXPERIMENTS = ("rnn", "bahdanau", "luong", "transformer")


def composed_comparison(overrides: list[str]) -> Composed:
    values: Any = OmegaConf.to_container(compose("compare", overrides), resolve=True)
    return Composed(check(CompareConfig, values), values, choices={}, swept=())


def test_settings_without_a_prefix_go_to_training_as_they_are():
    typed = [
        "data=text",
        "data.train_src=a b.en",
        "size=d192",
        "+x.y=1",
        "~tracker",
        "study.seeds=[1,2]",
        "study.jobs=3",
    ]
    mine, handed = split_arguments(typed)
    assert mine == ["study.seeds=[1,2]", "study.jobs=3"]
    assert handed == ChildOverrides(("data=text", "data.train_src=a b.en", "size=d192", "+x.y=1", "~tracker"))


@pytest.mark.parametrize(
    "key",
    ["beam=1", "search=greedy", "test.name=mine", "test.src=a b.en", "alignment.shift=1", "max_src_pieces=9", "x=1"],
)
def test_settings_of_the_evaluation_go_there_without_the_prefix(key):
    mine, handed = split_arguments([f"evaluate.{key}"])
    assert (mine, handed.train, handed.evaluate) == ([], (), (key,))


def test_parts_of_its_own_settings_stay():
    typed = ["study.report.text=none", "study.headline.long=[30,null]", "study.bootstrap.trials=99", "study.pairs=all"]
    assert split_arguments(typed) == (typed, ChildOverrides())


@pytest.mark.parametrize("typed", ["evaluate.test=wmt14/full", "data_dir=d", "trust=mine"])
def test_what_training_and_evaluation_both_have_goes_to_both(typed):
    _, handed = split_arguments([typed, "evaluate.beam=1", "evaluate.test.name=x", "size=d192"])
    assert handed.train == (typed, "size=d192")
    assert handed.evaluate == (typed, "beam=1", "test.name=x")


@pytest.mark.parametrize(
    ("typed", "train"), [("evaluate.pool=true", ()), ("evaluate.valid=wmt13", ("evaluate.valid=wmt13",))]
)
def test_of_the_test_sets_by_name_each_program_gets_what_it_has(typed, train):
    _, handed = split_arguments([typed])
    assert (handed.train, handed.evaluate) == (train, () if train else (typed,))


def test_a_folder_of_configs_goes_to_both():
    mine, handed = split_arguments(["--config-dir", "my conf", "--cfg", "job", "model=own"])
    assert mine == ["--config-dir", "my conf", "--cfg", "job"]
    assert handed == ChildOverrides(("model=own",), (), ("--config-dir", "my conf"))


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("experiments=rnn,luong", 'experiments=["rnn","luong"]'),
        ("seeds=1,2,3", "seeds=[1,2,3]"),
        ("seeds=7", "seeds=[7]"),
        ("runs=[out put/a,20261129]", 'runs=["out put/a","20261129"]'),
        ("runs=['a,b']", "runs=['a,b']"),
        ("runs=null", "runs=null"),
        ("searches=beam=1,beam=10 length_penalty=0", 'searches=["beam=1","beam=10 length_penalty=0"]'),
    ],
)
def test_lists_need_neither_brackets_nor_quotes(typed, read):
    assert split_arguments([f"study.{typed}"])[0] == [f"study.{read}"]


@pytest.mark.parametrize(
    ("typed", "instead"),
    [
        ("seed=2", "study.seeds=2"),
        ("experiment=rnn", "study.experiments=rnn"),
        ("run_dir=x", "study.root=x"),
        ("seeds=[1,2]", "study.seeds=[1,2]"),
        ("report.text=none", "study.report.text=none"),
        ("threads=2", "study.threads=2"),
        ("beam=1", "evaluate.beam=1"),
        ("search=greedy", "evaluate.search=greedy"),
        ("test.src=a.en", "evaluate.test.src=a.en"),
        ("evaluate.output=x", "study.output=x"),
        ("evaluate.bootstrap.seed=1", "study.bootstrap.seed=1"),
    ],
)
def test_a_setting_under_another_name_is_refused_with_its_own(typed, instead):
    with pytest.raises(ConfigError, match=f"say {re.escape(instead)}$"):
        split_arguments([typed])


def test_what_a_comparison_evaluates_is_not_set_by_hand():
    with pytest.raises(ConfigError, match=r"a comparison sets it itself$"):
        split_arguments(["evaluate.checkpoint=run"])


def test_importing_compare_costs_neither_torch_nor_altair(tmp_path):
    code = "import sys, nmt.compare; print({'torch', 'altair', 'datasets', 'wandb'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.fixture
def runs(tmp_path):
    write_files(tmp_path)
    for system in FAULTS:
        write_run(tmp_path / "runs", system)
    return "study.runs=" + ",".join(f"runs/{system}" for system in FAULTS)


FEW = ("study.bootstrap.resamples=199", "study.bootstrap.trials=199")


def test_existing_runs_become_tables_figures_and_a_page(tmp_path, run_program, runs):
    done = run_program("compare", runs, "study.output=side by side", *FEW)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("* bahdanau leads rnn by ")
    assert done.stdout.rstrip().split("\n")[-1] == "figure: side by side/bleu_by_length.png"
    folder = tmp_path / "side by side"
    drawn = {f"{stem}.{suffix}" for stem in STEMS for suffix in ("png", "svg", "pdf", "json")}
    assert {path.name for path in folder.iterdir()} == {
        *drawn, "comparison.md", "comparison.json", "comparison.html", "tables",
    }  # fmt: skip
    report = json.loads((folder / "comparison.json").read_text(encoding="utf-8"))
    assert [system["system"] for system in report["systems"]] == list(FAULTS)
    assert str(tmp_path) not in json.dumps(report)


STEMS = ("bleu_by_length", "bleu_by_length_deciles", "learning_curves")


def test_nothing_named_is_not_everything():
    with pytest.raises(ConfigError, match=r"study\.runs= is empty"):
        split_arguments(["study.runs=", "evaluate.test.src=t.en"])


@pytest.mark.slow
def test_a_run_without_weights_keeps_the_row_of_its_search(runs, tmp_path, run_program):
    kept = tmp_path / "runs" / "rnn" / "evaluation"
    (kept / "beam=1").mkdir()
    for name in ("test.json", "test.hyp.txt"):
        (kept / "beam=1" / name).write_bytes((kept / name).read_bytes())
    greedy = json.loads((kept / "test.json").read_text())
    greedy["search"]["beam"] = 1
    (kept / "beam=1" / "test.json").write_text(json.dumps(greedy))
    done = run_program("compare", "study.runs=runs/rnn", "study.searches=beam=1", "study.output=out", *FEW)
    assert done.returncode == 0, done.stderr
    assert "rnn, beam=1" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sp\udce4ss.hyp", "\u4e2d" * 75 + ".hyp"])
def test_any_file_name_may_stand_in_a_report_and_any_terminal_shows_it(tmp_path, run_program, runs, monkeypatch, name):
    (tmp_path / name).write_text("".join(f"{line}\n" for line in translations("luong")))
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    done = run_program("compare", f"study.runs=[runs/rnn,'{name}']", "study.output=out", *FEW)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "comparison.html").exists()


@pytest.mark.parametrize("useless", ["evaluate.beam=1", "study.searches=[beam=1]"])
def test_a_search_has_no_use_where_nothing_can_be_translated_again(runs, tmp_path, monkeypatch, useless):
    monkeypatch.chdir(tmp_path)
    mine, handed = split_arguments(["study.runs=runs/rnn/evaluation/test.json,t.de", useless])
    with (
        initialize_config_dir(str(conf_dir()), version_base="1.3"),
        pytest.raises(ConfigError, match="beam=1 has no use"),
    ):
        compare(composed_comparison(mine), handed, "")


@pytest.mark.slow
def test_evaluations_and_texts_of_other_programs_are_compared_together(tmp_path, run_program, runs):
    for name in ("A", "B"):  # the same under two names
        (tmp_path / f"{name}.hyp").write_text("".join(f"{line}\n" for line in translations("luong")))
    files = "runs/rnn/evaluation/test.json,runs/luong,A.hyp,B.hyp"
    test = ("evaluate.test.src=t.en", "evaluate.test.ref=t.de", "evaluate.test.name=test")
    done = run_program("compare", f"study.runs={files}", "study.output=out", "study.pairs=all", *test, *FEW)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "out" / "comparison.json").read_text(encoding="utf-8"))
    assert [system["system"] for system in report["systems"]] == ["rnn", "luong", "A", "B"]
    same = [test for test in report["significance"]["tests"] if (test["a"], test["b"]) == ("A", "B")]
    assert all(test["p_bootstrap"] == test["p_randomisation"] == 1 and not test["significant"] for test in same)
    assert "identical" in done.stdout


@pytest.mark.slow
def test_names_can_be_given_to_texts(tmp_path, run_program, runs):
    (tmp_path / "x.txt").write_text("".join(f"{line}\n" for line in translations("luong")))
    test = ("evaluate.test.src=t.en", "evaluate.test.ref=t.de", "study.output=out", *FEW)
    done = run_program("compare", "study.runs=x.txt", "study.names=opus", *test)
    assert done.returncode == 0, done.stderr
    assert "\nopus " in done.stdout
    done = run_program("compare", "study.runs=x.txt", "study.names=a,b", *test)
    assert (done.returncode, "2 names for 1 text files" in done.stderr) == (2, True)


@pytest.mark.parametrize("given", ["study.names=[one,one]", "study.names=[one,' ']"])
def test_texts_without_names_of_their_own_are_no_seeds_of_one_system(tmp_path, run_program, runs, given):
    for name in ("A.hyp", "B.hyp"):
        (tmp_path / name).write_text("\n" * len(translations("rnn")), encoding="utf-8")
    done = run_program("compare", "study.runs=A.hyp,B.hyp", "evaluate.test.src=t.en", "evaluate.test.ref=t.de", given)
    assert done.returncode == 2
    assert "each text file needs a name of its own" in done.stderr


@pytest.mark.parametrize("output", ["t.en", "t.en/below"])
def test_a_place_that_cannot_be_written_is_refused_in_one_line(tmp_path, run_program, runs, output):
    done = run_program("compare", runs, f"study.output={output}")
    assert done.returncode == 1
    assert f"cannot write into {output}" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_second_comparison_in_a_folder_is_refused_in_one_line(tmp_path, run_program, runs):
    with only_comparison_in(tmp_path / "out"):
        done = run_program("compare", runs, "study.output=out", *FEW)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "another comparison is at work in out; wait for it, or choose another study.output" in done.stderr
    assert not (tmp_path / "out").exists()


def test_an_evaluation_is_reused_while_all_that_it_was_made_from_is_the_same(tmp_path):
    run = write_run(tmp_path)
    weights, stored = run / "best.safetensors", run / "evaluation" / "test.json"
    test = EvaluationSet(invented_test(), "invented", "en", "de")

    def evaluated(*overrides: str, test: EvaluationSet = test) -> bool:
        with initialize_config_dir(str(conf_dir()), version_base="1.3"):
            settings = evaluation_settings(overrides)
        return is_evaluated(stored.parent, test, run, settings, [])

    assert evaluated()  # kept without its weights
    assert not evaluated("beam=1")
    save_file({"weight": torch.zeros(2)}, weights)
    assert not evaluated()
    made_from = {"weights_sha256": file_sha256(weights), "max_src_pieces": 100}
    stored.write_text(json.dumps({**json.loads(stored.read_text()), **made_from}))
    os.utime(stored, (0, 0))  # the time of a copy says nothing
    assert evaluated()
    assert evaluated("batch=2", "ter=true", "bootstrap.seed=3")
    assert not evaluated("length_penalty=0")
    assert not evaluated("max_src_pieces=99")
    retranslated = replace(invented_test(), references=[invented_test().sources])
    assert not evaluated(test=test._replace(set=retranslated))
    save_file({"weight": torch.ones(2)}, weights)
    assert not evaluated()
    weights.write_bytes(b"no weights")
    assert not evaluated()


def test_texts_need_the_text_that_was_translated(tmp_path, run_program, runs):
    (tmp_path / "x.txt").write_text("a\n")
    done = run_program("compare", "study.runs=x.txt", "study.output=out")
    assert (done.returncode, "evaluate.test.src=FILE evaluate.test.ref=FILE" in done.stderr) == (2, True)


def test_a_text_that_is_a_line_short_is_refused_with_both_counts(tmp_path, run_program, runs):
    (tmp_path / "x.txt").write_text("".join(f"{line}\n" for line in translations("luong")[1:]))
    done = run_program("compare", "study.runs=runs/rnn,x.txt", "study.output=out")
    assert done.returncode == 1
    assert "x.txt has 612 lines, the sources of test has 613 lines" in done.stderr
    assert not (tmp_path / "out").exists()


def test_different_test_sets_are_refused_in_one_line(tmp_path, run_program, runs):
    write_run(tmp_path / "other", "rnn", source_sha256="00" * 32)
    done = run_program("compare", "study.runs=runs/rnn,other/rnn", "study.output=out")
    assert done.returncode == 1
    assert "different test sets" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("study.report.text=half", "all or none"),
        ("study.headline.long=[5,9]", "must end before"),
        ("study.headline.short=[1]", "study.headline.short=.1.: give .FIRST,LAST. in words"),
        ("study.headline.short=[19,1]", "LAST not below it"),
        ("study.headline.short=[-4,0]", "FIRST from 1"),
        ("study.headline.long=[50,40]", "LAST not below it"),
        ("study.report.samples=many", "study.report.samples=many: give a whole number from 0 to 10,000"),
        ("study.report.explorer=-1", "study.report.explorer=-1: give a whole number from 0 to 100,000"),
        ("study.jobs=two", "study.jobs=two: give a whole number from 1 to 1,024 or null"),
        ("study.bootstrap.trials=0", "study.bootstrap.trials"),
        ("study.bootstrap=null", "it is a group of settings: study.bootstrap.resamples="),
        ("study.headline=5", "it is a group of settings: study.headline.short="),
        ("study.output=[a,b]", "study.output=.*give the name of a file or folder"),
        ("evaluate.target_language=[fr,de]", "target_language=.*give text or null"),
        ("study.equal_time=no", "study.equal_time=no: give true or false"),
        ("evaluate.ter=maybe", "ter=maybe: give true or false"),
    ],
)
def test_a_setting_that_means_nothing_is_refused(wrong, said):
    mine, handed = split_arguments([wrong])
    with initialize_config_dir(str(conf_dir()), version_base="1.3"), pytest.raises(ConfigError, match=said):
        compare(composed_comparison(mine), handed, "")


def test_a_baseline_that_is_not_there_is_refused_in_one_line(run_program, runs):
    done = run_program("compare", runs, "study.output=out", "study.baseline=x")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "none of the systems" in done.stderr


def test_a_run_that_does_not_exist_is_named(run_program, tmp_path, runs):
    done = run_program("compare", "study.runs=runs/rnn,nowhere/rnn", "study.output=out")
    assert done.returncode == 1
    assert "nowhere/rnn" in done.stderr
    assert "Traceback" not in done.stderr


def test_training_settings_have_no_use_with_existing_runs(run_program, runs):
    done = run_program("compare", runs, "training.max_updates=3")
    assert done.returncode == 2
    assert "trains nothing" in done.stderr


@pytest.mark.parametrize(
    "wrong", ["training.max_update=3", "study.experiments=rnn,banana", "no_such=1", "data=nothing"]
)
def test_a_mistyped_setting_is_refused_before_anything_starts(run_program, tmp_path, wrong):
    done = run_program("compare", wrong)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


TINY = [
    "data=text", "data.train_src=t.en", "data.train_tgt=t.fr", "data.valid_src=t.en", "data.valid_tgt=t.fr",
    "data.test_src=t.en", "data.test_tgt=t.fr", "data.source=en", "data.target=fr",
    "tokenizer.vocab_size=288", "batching.tokens=300", "training.max_epochs=null", "cleaning=none",
]  # fmt: skip


@pytest.fixture
def text(tmp_path):
    """Forty invented pairs."""
    numbers = range(40)
    sentences = [f"the man number {n} sees the dog {n % 17} near the house" for n in numbers]
    (tmp_path / "t.en").write_text("".join(f"{line}\n" for line in sentences), encoding="utf-8")
    french = [f"l homme numero {n} voit le chien {n % 17} devant la maison" for n in numbers]
    (tmp_path / "t.fr").write_text("".join(f"{line}\n" for line in french), encoding="utf-8")


@pytest.mark.slow
def test_from_nothing_through_an_interrupt_to_the_table_and_then_nothing_is_left(tmp_path, run_program, text):
    command = [*TINY, "training.max_updates=200"]
    run_program_interrupted(tmp_path, command)
    done = run_program("compare", *command)
    assert done.returncode == 0, done.stderr
    root = tmp_path / "outputs" / "text"
    for experiment in EXPERIMENTS:
        assert json.loads((root / experiment / "evaluation" / "test.json").read_text())["system"] == experiment
    made = {path.name for path in (root / "comparison").iterdir()}
    assert {f"attention-{name}.png" for name in EXPERIMENTS[1:]} < made
    assert "attention-rnn.png" not in made
    assert "Same training data for all: 40 pairs" in done.stdout

    before = {path: path.stat().st_mtime_ns for path in root.rglob("*") if "comparison" not in path.parts}
    again = run_program("compare", *command)
    assert again.returncode == 0
    assert "Same updates for all: 200." in done.stdout
    assert again.stdout.split("Made")[0] == done.stdout.split("Made")[0]
    assert "to train or evaluate" not in again.stderr
    assert before == {path: path.stat().st_mtime_ns for path in root.rglob("*") if "comparison" not in path.parts}


def run_program_interrupted(folder, arguments):
    """Ctrl-C once two trainings have begun: both must leave a checkpoint, and the exit status is 130."""
    process = subprocess.Popen(
        [sys.executable, "-m", "nmt.compare", *arguments],
        cwd=folder, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env=os.environ | {"PYTHONPATH": os.getcwd()},
    )  # fmt: skip
    status = [folder / "outputs" / "text" / name / "status.json" for name in ("transformer", "bahdanau")]
    end = time.monotonic() + 120
    while not all(path.exists() for path in status) and time.monotonic() < end and process.poll() is None:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    assert "Traceback" not in said
    states = [json.loads(path.read_text())["state"] for path in status]
    assert "interrupted" in states
    assert set(states) <= {"interrupted", "finished"}
    assert all((path.parent / "resume.pt").exists() for path in status)


@pytest.mark.slow
def test_a_failing_run_is_shown_and_the_others_go_on(tmp_path, run_program, text):
    (tmp_path / "outputs" / "text").mkdir(parents=True)
    (tmp_path / "outputs" / "text" / "luong").write_text("in the way")
    done = run_program(
        "compare", *TINY, "training.max_updates=2", "study.experiments=rnn,luong", "study.draw_attention=false"
    )
    assert done.returncode == 1
    assert "luong: training failed: error: " in done.stderr
    assert "logs/luong.log" in done.stderr
    assert "1 of 2 runs failed (luong)" in done.stderr
    assert "\nrnn " in done.stdout


@pytest.mark.slow
def test_a_launcher_of_hydras_trains_what_is_missing_and_an_unknown_one_is_named(tmp_path, run_program, text):
    command = [*TINY, "training.max_updates=4", "study.experiments=rnn,luong", "study.seeds=1,2"]
    command += ["study.report.text=none"]
    done = run_program("compare", *command, "study.launcher=warehouse")
    assert (done.returncode, "study.launcher=warehouse: there is none of this name here" in done.stderr) == (2, True)
    done = run_program("compare", *command, "study.launcher=joblib")
    assert done.returncode == 0, done.stderr
    root = tmp_path / "outputs" / "text"
    for name in ("rnn", "rnn-seed2", "luong", "luong-seed2"):
        assert json.loads((root / name / "status.json").read_text())["state"] == "finished"
        assert len(list((root / name / "kept").iterdir())) == 4
        log = (root / "comparison" / "logs" / f"{name}.log").read_text()
        assert "hydra/launcher=joblib" in log
        assert "finished (4 updates, training.max_updates=4)" in log
    report = json.loads((root / "comparison" / "comparison.json").read_text(encoding="utf-8"))
    assert [len(system["runs"]) for system in report["systems"]] == [2, 2]
