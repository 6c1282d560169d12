"""What a program decides by itself it says, and what it cannot do it refuses: nothing is wrong without a word."""

import json
import sys
from pathlib import Path

import pytest
from hydra.errors import InstantiationException
from hydra.utils import instantiate

import nmt.loading
from nmt.cli import program
from nmt.decoding.translator import Translator
from nmt.run import read_config
from tests.conftest import RunProgram
from tests.small_text import assert_refused, contents, train

PARENT = (
    "run_dir=parent",
    "training.max_updates=2",
    "training.max_epochs=null",
    "schedule=linear",
    "schedule.warmup_updates=1",
)


@pytest.mark.parametrize("target", ["os.system", "logging.os.system", "nmt.files.os.system"])
def test_hydra_itself_refuses_what_would_run_a_command(target: str, tmp_path: Path) -> None:
    """The second fence, in force from the lower bound in pyproject.toml on."""
    with pytest.raises(InstantiationException, match="blocklisted"):
        instantiate({"_target_": target, "_args_": [f"touch {tmp_path}/canary"]})
    assert not list(tmp_path.iterdir())


@pytest.fixture
def parent(text: Path, run_program: RunProgram) -> Path:
    done = train(run_program, *PARENT)
    assert done.returncode == 0, done.stderr
    return text / "parent"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        (["tokenizer.vocab_size=320"], ["tokenizer.vocab_size=320", "init_from=parent", "tokenizer.vocab_size=310"]),
        (["tokenizer.joint=true"], ["tokenizer.joint=true", "init_from=parent"]),
        (["size.embedding=24"], ["init_from=parent is another model", "model.embedding_size=16, now 24"]),
    ],
)
def test_what_the_parent_run_decides_is_refused_before_any_text_is_read(
    parent: Path, run_program: RunProgram, settings: list[str], parts: list[str]
) -> None:
    (parent.parent / "b.en").unlink()  # it would be missed if it were read first
    before = contents(parent.parent)
    assert_refused(train(run_program, "run_dir=child", "init_from=parent", *settings), *parts)
    assert contents(parent.parent) == before


@pytest.mark.slow
def test_a_child_takes_pieces_and_weights_of_its_parent_and_says_so(parent: Path, run_program: RunProgram) -> None:
    done = train(run_program, "run_dir=child", "init_from=parent")
    assert done.returncode == 0, done.stderr
    assert "weights and pieces are those of parent, update 2\n" in done.stderr
    child = parent.parent / "child"
    assert (child / "source.model").read_bytes() == (parent / "source.model").read_bytes()
    assert read_config(child)["tokenizer"] == read_config(parent)["tokenizer"]


def test_extending_a_run_says_what_becomes_of_its_learning_rate(parent: Path, run_program: RunProgram) -> None:
    done = train(run_program, *PARENT, "training.max_updates=6")
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stderr.split("\n") if "the next learning rate was" in line]
    assert "training.max_updates" in line
    ((update, change),) = json.loads((parent / "status.json").read_text(encoding="utf-8"))["extended"]
    assert update == 2
    assert change in line


def test_the_limit_that_ends_a_training_is_said_at_its_start_and_its_end(text: Path, run_program: RunProgram) -> None:
    settings = ("training.max_updates=5000", "training.max_epochs=1", "batching.tokens=4000")
    done = train(run_program, "run_dir=run", *settings)
    assert done.returncode == 0, done.stderr
    lines = done.stderr.split("\n")
    (start,) = [line for line in lines if line.startswith("  ends ")]
    assert "training.max_epochs" in start
    assert "training.max_updates" not in start
    (end,) = [line for line in lines if line.startswith("finished")]
    assert "epoch" in end


@pytest.mark.slow
def test_the_longest_source_of_the_training_is_stored_and_used(text: Path, run_program: RunProgram) -> None:
    with (text / "b.en").open("a") as source, (text / "b.fr").open("a") as target:
        source.write(" ".join(["dog"] * 40) + "\n")
        target.write(" ".join(["chien"] * 40) + "\n")
    assert train(run_program, "run_dir=run").returncode == 0
    run = nmt.loading.load_run(text / "run")
    longest = max(
        len(ids) for ids in run.source_tokenizer.encode_batch((text / "b.en").read_text("utf-8").splitlines())
    )
    assert json.loads((text / "run" / "data.json").read_text("utf-8"))["longest_source"] == longest
    assert run.translator().max_src_pieces == longest < run.config["batching"]["max_pieces"]
    assert run.translator(max_src_pieces=20).max_src_pieces == 20
    sets = ["test.src=3.en", "test.ref=3.fr", "output=scores", "bootstrap.resamples=40"]
    assert run_program("evaluate", "checkpoint=run", *sets).returncode == 0
    (scores,) = (text / "scores").glob("*.json")
    assert json.loads(scores.read_text("utf-8"))["max_src_pieces"] == longest


@pytest.mark.slow
def test_load_chooses_the_device_as_the_programs_do(parent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(nmt.loading, "choose_device", lambda name: asked.append(name) or "cpu")
    assert isinstance(nmt.loading.load(parent), Translator)
    assert asked == ["auto"]


def test_what_nobody_foresaw_is_one_line_with_a_file_to_send(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["nmt.prepare", "data=copy"])
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)

    @program("prepare")
    def main(composed: object) -> None:
        raise ZeroDivisionError("by nought\n\x1b[2J")

    with pytest.raises(SystemExit, match="1"):
        main()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ZeroDivisionError: by nought \\x1b[2J; a fault of the program: the traceback is in ")
    (file,) = tmp_path.iterdir()
    assert str(file) in line
    assert "raise ZeroDivisionError" in file.read_text(encoding="utf-8")
