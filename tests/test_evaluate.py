"""The evaluate program: file pairs through the command line, runs in this process."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
from sacrebleu.metrics import BLEU

from nmt.cli import conf_dir
from nmt.data.test_sets import read_selection, read_test_set
from nmt.errors import ConfigError, UserError
from nmt.evaluate import evaluations
from nmt.schema import check
from nmt.settings import EvaluateConfig
from tests.conftest import program_environment
from tests.program_server import run_module
from tests.study.fakes import write_run


def evaluate(*overrides: str) -> list[dict[str, Any]]:
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        values: Any = OmegaConf.to_container(compose("evaluate", list(overrides)), resolve=True)
    return list(evaluations(check(EvaluateConfig, values), trust=()))


@pytest.fixture(autouse=True)
def in_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(**files: str) -> None:
    for name, text in files.items():
        Path(name).write_bytes(text.encode())


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has hardly learned anything, with a test set of 11 sentences."""
    folder = tmp_path_factory.mktemp("runs")
    command = "experiment=rnn data=copy data.train_pairs=50 data.valid_pairs=3 data.test_pairs=11"
    command += " data.max_length=5 training.max_updates=2 device=cpu run_dir=rnn"
    run_module("nmt.train", command.split(), folder).check_returncode()
    return folder / "rnn"


def test_windows_line_ends_are_no_part_of_the_text(run_program: Callable[..., Any], tmp_path: Path) -> None:
    write(
        h="the old dog sleeps now\r\na cat sees the bird\r\nwe like green apples today",
        r="the old dog sleeps now\na cat sees the bird\nwe like green apples today\n",
    )
    done = run_program("evaluate", "hypotheses=h", "references=r", "source=r", "json=true", "output=o")
    assert done.returncode == 0, done.stderr
    evaluation = json.loads(done.stdout)
    assert evaluation["test"]["sentences"] == 3
    assert [evaluation["metrics"][name]["score"] for name in ("bleu", "chrf", "ter")] == [100, 100, 0]
    assert b"\r" not in (tmp_path / "o" / "h.json").read_bytes()
    assert json.loads((tmp_path / "o" / "h.json").read_text())["metrics"] == evaluation["metrics"]


def test_different_counts_end_the_program_with_one_line(run_program: Callable[..., Any]) -> None:
    write(h="a b c d e\nx\n", r="a b c d e\n")
    for hypotheses, references in (("h", "r"), ("r", "h")):
        done = run_program("evaluate", f"hypotheses={hypotheses}", f"references={references}")
        assert done.returncode == 1
        assert done.stdout == ""
        assert "h has 2 lines" in done.stderr
        assert "r has 1 line" in done.stderr
        assert "Traceback" not in done.stderr


def test_a_short_source_or_second_reference_is_refused_too() -> None:
    write(h="a\nb\n", r="a\nb\n", short="a\n")
    with pytest.raises(UserError, match="short has 1 line"):
        evaluate("hypotheses=h", "references=r", "source=short")
    with pytest.raises(UserError, match="short has 1 line"):
        evaluate("hypotheses=h", "references=[r,short]")


def test_only_newlines_end_a_segment() -> None:
    text = "one\u2029two\nthree\x0cfour\nfive\x1csix\x1dsix\nseven\reight\nnine\n"
    write(u=text)
    (evaluation,) = evaluate("hypotheses=u", "references=u", "source=u")
    assert evaluation["test"]["sentences"] == 5


def test_two_references_may_be_a_list_or_have_a_comma() -> None:
    write(h="a b c d e\n", r1="a b c d f\n", r2="a b c d e\n")
    listed, written = evaluate("hypotheses=h", "references=[r1,r2]") + evaluate("hypotheses=h", "references='r1,r2'")
    assert listed["metrics"] == written["metrics"]
    assert listed["metrics"]["bleu"]["score"] == 100
    assert "nrefs:2" in listed["metrics"]["bleu"]["signature"]
    assert listed["by_length"] == []


def test_a_file_that_is_given_twice_counts_twice_among_references_and_pooled_sets() -> None:
    write(h="a b c d e\n", r="a b c d f\n", s="one\n", t="two\n")
    (twice,) = evaluate("hypotheses=h", "references=[r,r]")
    assert "nrefs:2" in twice["metrics"]["bleu"]["signature"]
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        wanted = read_selection(compose("evaluate", ["test.src=[s,s]", "test.ref=[r,t]"]))
    pooled = read_test_set(wanted.name, wanted.src, wanted.ref)
    assert (pooled.sources, pooled.references) == (["one", "one"], [["a b c d f", "two"]])


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ([], "what to evaluate"),
        (["checkpoint=a", "hypotheses=b"], "not both"),
        (["hypotheses=b"], "references=FILE"),
        (["checkpoint=a", "test.src=b"], "test.ref=FILE"),
        (["checkpoint=a", "references=b"], "test.ref="),
        (["hypotheses=a", "references=b", "test.src=c"], "source="),
        (["checkpoint=a", "test.name=../b"], "test.name"),
        (["checkpoint=a", "evaluate.test=wmt14/full", "test.src=b", "test.ref=c"], "leave test.src, test.ref and"),
        (["checkpoint=a", "evaluate.test=[wmt13,wmt14]", "test.name=test"], "leave test.src, test.ref and"),
        (["hypotheses=a", "references=b", "evaluate.test=wmt14"], "evaluate.test goes with checkpoint="),
    ],
)
def test_settings_that_do_not_say_what_to_score_are_refused(overrides: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        evaluate(*overrides)


def test_a_checkpoint_that_is_not_there_is_named_before_others_are_evaluated(run: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no checkpoint at gone"):
        evaluate(f"checkpoint=[{run},gone]", f"output={tmp_path}")
    assert list(tmp_path.iterdir()) == []


def test_a_run_kept_without_its_weights_says_so(tmp_path: Path) -> None:
    kept = write_run(tmp_path)
    (kept / "status.json").write_text('{"state": "finished"}', encoding="utf-8")
    with pytest.raises(UserError, match="kept without its weights"):
        evaluate(f"checkpoint={kept}")


def test_a_run_is_evaluated_on_its_own_test_set(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (first,) = evaluate(f"checkpoint={run}")
    assert {key: first[key] for key in ("system", "run", "seed", "updates")} == {
        "system": "rnn", "run": "rnn", "seed": 1, "updates": 2,
    }  # fmt: skip
    assert first["test"]["sentences"] == 11 == sum(row["n"] for row in first["by_length"])
    assert 0 <= first["capped"] <= 11
    assert first["search"]["beam"] == 5
    file = run / "evaluation" / "test.json"
    assert json.loads(file.read_text()) == first
    hypotheses = (run / "evaluation" / "test.hyp.txt").read_text().split("\n")[:-1]
    assert len(hypotheses) == 11
    assert str(run.parent) not in file.read_text()
    assert json.loads((file.parent / "test.alignment.json").read_text())["alignment"] == []  # there is no attention
    assert (file.parent / "test.alignment.txt").read_text() == "\n" * 11

    # again: not translated again, and the file stays as it is
    capsys.readouterr()
    (second,) = evaluate(f"checkpoint={run}")
    assert "translated again with force=true" in capsys.readouterr().err
    assert second == first == json.loads(file.read_text())

    # another search or force: translated again
    (greedy,) = evaluate(f"checkpoint={run}", "beam=1")
    assert greedy["search"]["beam"] == 1
    capsys.readouterr()
    evaluate(f"checkpoint={run}", "beam=1", "force=true")
    assert "translating" in capsys.readouterr().err


def test_a_file_pair_of_ones_own_is_translated_into_output(run: Path, tmp_path: Path) -> None:
    write(**{"s.en": "a b c\nd e\n", "r1.de": "a b c\nd e\n", "r2.de": "a b\nd\n"})
    (evaluation,) = evaluate(f"checkpoint={run}", "test.src=s.en", "test.ref=[r1.de,r2.de]", "output=out")
    assert evaluation["test"]["name"] == "s.en"
    hypotheses = (tmp_path / "out" / "s.en.hyp.txt").read_text().split("\n")[:-1]
    expected = BLEU().corpus_score(hypotheses, [["a b c", "d e"], ["a b", "d"]]).score
    assert evaluation["metrics"]["bleu"]["score"] in (expected, None)
    with pytest.raises(UserError, match="no test set other"):
        evaluate(f"checkpoint={run}", "test.name=other")


def test_an_output_that_is_no_folder_is_refused_before_translating(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(taken="")
    with pytest.raises(UserError, match="output=FOLDER"):
        evaluate(f"checkpoint={run}", "output=taken")
    assert "translating" not in capsys.readouterr().err


def test_two_systems_with_one_name_are_not_written_over_each_other(run: Path) -> None:
    with pytest.raises(ConfigError, match="same name"):
        evaluate(f"checkpoint=[{run},{run / 'best.safetensors'},{run / '..' / 'rnn'}]", "output=o")


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("source=[a,b]", "source=.*give the name of a file or folder"),
        ("test.name=[a,b]", "test.name=.*give text or null"),
        ("target_language=1", "target_language=1: give text or null"),
        ("ter=no", "ter=no: give true or false"),
    ],
)
def test_a_setting_of_another_kind_is_refused(setting: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        evaluate("hypotheses=h", "references=r", setting)


def test_a_table_of_both_sides_is_not_read_as_sentences(tmp_path: Path) -> None:
    write(h="a b c d\n", **{"pairs.tsv": "a b c d\te f g h\n"})
    with pytest.raises(UserError, match=r"pairs\.tsv: a \.tsv holds both sides"):
        evaluate("hypotheses=h", "references=pairs.tsv")
    with pytest.raises(UserError, match=r"pairs\.tsv: a \.tsv holds both sides"):
        read_test_set(None, ["pairs.tsv"], ["h"])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.slow
def test_a_full_disk_under_standard_output_is_one_line(tmp_path: Path) -> None:
    write(h="a b c d\n")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "nmt.evaluate", "hypotheses=h", "references=h"],
            stdout=full, stderr=subprocess.PIPE, text=True, env=program_environment(),
        )  # fmt: skip
    assert done.returncode == 1
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr
