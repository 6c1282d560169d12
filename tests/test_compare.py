"""python -m nmt.compare: on runs with invented numbers (fast), and from nothing to the table (slow)."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
import yaml

from nmt.cli import conf_dir
from nmt.errors import ConfigError
from nmt.study.arguments import Handed, split_arguments
from tests.study.fakes import INVENTED, write_run

OWN = yaml.safe_load(open(f"{conf_dir()}/compare.yaml", encoding="utf-8"))
EXPERIMENTS = ("rnn", "bahdanau", "luong", "transformer")


def test_settings_that_compare_lacks_go_to_training_as_they_are():
    typed = ["data=text", "data.train_src=a b.en", "size=base", "+x.y=1", "~tracker", "seeds=[1,2]", "jobs=3"]
    mine, handed = split_arguments(typed, OWN)
    assert mine == ["seeds=[1,2]", "jobs=3"]
    assert handed == Handed(("data=text", "data.train_src=a b.en", "size=base", "+x.y=1", "~tracker"))


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ([], "test"),
        (["beam=1"], "test"),
        (["test.name=mine"], "mine"),
        (["test.src=a/news.en.gz", "test.ref=news.de"], "news.en"),
        (["evaluate.test=wmt14/full"], "wmt14-full"),
        (["evaluate.test=[wmt20/robust/set1,wmt13]", "beam=1"], "wmt20-robust-set1"),
    ],
)
def test_settings_of_the_evaluation_go_there_and_name_its_file(typed, name):
    mine, handed = split_arguments(typed, OWN)
    assert (mine, handed.train, handed.evaluate, handed.test) == ([], (), tuple(typed), name)


def test_test_sets_by_name_are_for_training_too():
    _, handed = split_arguments(["evaluate.test=wmt14/full", "beam=1", "test.name=x", "size=base"], OWN)
    assert handed.both == ("evaluate.test=wmt14/full",)
    assert handed.train == ("size=base",)


def test_a_folder_of_configs_goes_to_both():
    mine, handed = split_arguments(["--config-dir", "my conf", "--cfg", "job", "model=own"], OWN)
    assert mine == ["--config-dir", "my conf", "--cfg", "job"]
    assert handed == Handed(("model=own",), (), ("--config-dir", "my conf"))


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("experiments=rnn,luong", 'experiments=["rnn","luong"]'),
        ("seeds=1,2,3", "seeds=[1,2,3]"),
        ("seeds=7", "seeds=[7]"),
        ("runs=[out put/a,20261129]", 'runs=["out put/a","20261129"]'),
        ("runs=['a,b']", "runs=['a,b']"),
        ("runs=null", "runs=null"),
    ],
)
def test_lists_need_neither_brackets_nor_quotes(typed, read):
    assert split_arguments([typed], OWN)[0] == [read]


@pytest.mark.parametrize("typed", ["seed=2", "experiment=rnn", "run_dir=x"])
def test_what_compare_sets_itself_is_refused_with_its_own_word(typed):
    with pytest.raises(ConfigError, match="here it is"):
        split_arguments([typed], OWN)


def test_importing_compare_costs_neither_torch_nor_matplotlib(tmp_path):
    code = "import sys, nmt.compare; print({'torch', 'matplotlib', 'datasets', 'wandb'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.fixture
def runs(tmp_path):
    for system in INVENTED:
        write_run(tmp_path / "runs", system)
    return "runs=" + ",".join(f"runs/{system}" for system in INVENTED)


def test_existing_runs_become_a_table_and_a_figure(tmp_path, run_program, runs):
    done = run_program("compare", runs, "output=side by side")
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip().split("\n")[-1] == "figure: side by side/bleu_by_length.png"
    assert done.stdout.startswith("system ")
    folder = tmp_path / "side by side"
    assert {path.name for path in folder.iterdir()} == {
        *(f"bleu_by_length.{suffix}" for suffix in ("png", "svg", "pdf")),
        "comparison.md",
        "comparison.json",
    }
    report = json.loads((folder / "comparison.json").read_text(encoding="utf-8"))
    assert [system["system"] for system in report["systems"]] == list(INVENTED)
    assert str(tmp_path) not in json.dumps(report)


def test_evaluations_alone_are_enough(tmp_path, run_program, runs):
    files = ",".join(f"runs/{system}/evaluation/test.json" for system in ("rnn", "luong"))
    done = run_program("compare", f"runs={files}", "output=out")
    assert done.returncode == 0, done.stderr
    assert "luong" in done.stdout


def test_different_test_sets_are_refused_in_one_line(tmp_path, run_program, runs):
    write_run(tmp_path / "other", "rnn", source_sha256="00" * 32)
    done = run_program("compare", "runs=runs/rnn,other/rnn", "output=out")
    assert done.returncode == 1
    assert "different test sets" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_run_that_does_not_exist_is_named(run_program, tmp_path):
    done = run_program("compare", "runs=nowhere/rnn", "output=out")
    assert done.returncode == 1
    assert "nowhere/rnn" in done.stderr
    assert "Traceback" not in done.stderr


def test_training_settings_have_no_use_with_existing_runs(run_program, runs):
    done = run_program("compare", runs, "training.max_updates=3")
    assert done.returncode == 2
    assert "trains nothing" in done.stderr


@pytest.mark.parametrize("wrong", ["training.max_update=3", "experiments=rnn,banana", "no_such=1", "data=nothing"])
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
    assert set(states) <= {"interrupted", "finished (200 updates)"}
    assert all((path.parent / "resume.pt").exists() for path in status)


@pytest.mark.slow
def test_a_failing_run_is_shown_and_the_others_go_on(tmp_path, run_program, text):
    (tmp_path / "outputs" / "text").mkdir(parents=True)
    (tmp_path / "outputs" / "text" / "luong").write_text("in the way")
    done = run_program("compare", *TINY, "training.max_updates=2", "experiments=rnn,luong", "draw_attention=false")
    assert done.returncode == 1
    assert "luong: training failed: error: " in done.stderr
    assert "logs/luong.log" in done.stderr
    assert "1 of 2 runs failed (luong)" in done.stderr
    assert done.stdout.split("\n")[2].startswith("rnn ")
