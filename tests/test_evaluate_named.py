"""evaluate.test: a run on test sets by sacreBLEU's names, asked for or recorded; in comparisons too."""

import json
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.conftest import RunProgram
from tests.program_server import run_module
from tests.sacrebleu_folder import write_set
from tests.small_text import assert_refused

EN = ["the old man sees the dog", "a cat runs", "we eat fish today"]
DE = ["der alte Mann sieht den Hund", "eine Katze läuft", "wir essen heute Fisch"]
TRAINING = ["data.train_pairs=60", "data.valid_pairs=3", "data.test_pairs=5", "training.max_updates=2", "device=cpu"]


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("sacrebleu")
    write_set(folder, "wmt13", "en-de", {"src": EN[:2], "ref": DE[:2]})
    return write_set(folder, "wmt14/full", "en-de", {"src": EN, "ref": DE})


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """plain: a run without recorded test sets; recorded: one that was told of wmt14/full and wmt13."""
    folder = tmp_path_factory.mktemp("runs")
    run_module("nmt.train", ["experiment=rnn", "data=grammar", *TRAINING, "run_dir=plain"], folder).check_returncode()
    subprocess.run(["cp", "-r", "plain", "recorded"], cwd=folder, check=True)
    file = folder / "recorded" / "config.yaml"
    settings = yaml.safe_load(file.read_text(encoding="utf-8"))
    settings["evaluate"] = {"valid": None, "test": ["wmt14/full", "wmt13"]}
    file.write_text(yaml.safe_dump(settings), encoding="utf-8")
    return folder


def test_a_set_is_translated_into_files_of_its_name(
    runs: Path, sets: dict[str, str], run_program: RunProgram, tmp_path: Path
) -> None:
    done = run_program(
        "evaluate", f"checkpoint={runs / 'plain'}", "evaluate.test=[wmt14/full]", "output=o", "json=true", env=sets
    )
    assert done.returncode == 0, done.stderr
    evaluation = json.loads(done.stdout)
    test = {key: evaluation["test"][key] for key in ("name", "data", "sentences", "source_language", "target_language")}
    assert test == {
        "name": "wmt14-full", "data": "sacrebleu", "sentences": 3, "source_language": "en", "target_language": "de",
    }  # fmt: skip
    assert {path.name for path in (tmp_path / "o").iterdir()} == {"wmt14-full.json", "wmt14-full.hyp.txt"}


def test_several_sets_are_evaluated_one_after_the_other(
    runs: Path, sets: dict[str, str], run_program: RunProgram
) -> None:
    both = f"checkpoint=[{runs / 'plain'},{runs / 'recorded'}]"
    done = run_program("evaluate", both, "evaluate.test=wmt13,wmt14/full", "output=o", "json=true", "beam=1", env=sets)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.split("\n")[:-1]]
    assert [(line["run"], line["test"]["name"], line["test"]["sentences"]) for line in lines] == [
        ("plain", "wmt13", 2), ("plain", "wmt14-full", 3), ("recorded", "wmt13", 2), ("recorded", "wmt14-full", 3),
    ]  # fmt: skip


@pytest.mark.slow
def test_what_a_run_records_is_evaluated_unless_another_is_named(
    runs: Path, sets: dict[str, str], run_program: RunProgram
) -> None:
    for asked, names in (
        ([], ["wmt14-full", "wmt13"]),
        (["test.name=test"], ["test"]),
    ):
        done = run_program("evaluate", f"checkpoint={runs / 'recorded'}", *asked, "output=o", "json=true", env=sets)
        assert done.returncode == 0, done.stderr
        assert [json.loads(line)["test"]["name"] for line in done.stdout.split("\n")[:-1]] == names


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["checkpoint=RUN", "evaluate.test=wmt14/fool"], "the nearest: wmt14/full"),
        (["checkpoint=RUN", "evaluate.test=multi30k/2018"], "cannot fetch multi30k/2018"),
    ],
)
def test_what_cannot_be_evaluated_ends_with_one_line(
    runs: Path, sets: dict[str, str], run_program: RunProgram, arguments: list[str], message: str
) -> None:
    typed = [argument.replace("RUN", str(runs / "plain")) for argument in arguments]
    done = run_program("evaluate", *typed, env=sets)
    assert_refused(done, message)
    assert "translating" not in done.stderr


@pytest.mark.slow
def test_a_comparison_takes_the_set_that_is_named_or_recorded(
    runs: Path, sets: dict[str, str], run_program: RunProgram, tmp_path: Path
) -> None:
    named = run_program(
        "compare",
        f"study.runs={runs / 'plain'}",
        "evaluate.test=[wmt13,wmt14/full]",
        "study.output=c",
        "study.sentence=a cat",
        env=sets,
    )
    assert named.returncode == 0, named.stderr
    assert _compared(tmp_path / "c") == ["wmt13"]
    recorded = run_program(
        "compare", f"study.runs={runs / 'recorded'}", "study.output=d", "study.sentence=a cat", env=sets
    )
    assert recorded.returncode == 0, recorded.stderr
    assert _compared(tmp_path / "d") == ["wmt14-full"]


@pytest.mark.slow
def test_a_comparison_tells_training_and_evaluation_of_the_sets(
    sets: dict[str, str], run_program: RunProgram, tmp_path: Path
) -> None:
    chosen = ["data=grammar", *TRAINING[:-1], "study.device=cpu", "study.experiments=rnn", "evaluate.test=wmt14/full"]
    done = run_program("compare", *chosen, "study.draw_attention=false", env=sets)
    assert done.returncode == 0, done.stderr
    run = tmp_path / "outputs" / "grammar" / "rnn"
    assert yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))["evaluate"]["test"] == "wmt14/full"
    assert (run / "evaluation" / "wmt14-full.json").exists()
    assert not (run / "evaluation" / "test.json").exists()


def _compared(folder: Path) -> list[str]:
    report = json.loads((folder / "comparison.json").read_text(encoding="utf-8"))
    return [report["test"]["name"]]
