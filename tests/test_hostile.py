"""A stranger's run directory runs no code, whichever program opens it: a fifth of what scripts/soak.py tries."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import soak_hostile
from scripts.soak_records import VARIATIONS
from scripts.soak_strangers import Variation
from tests.conftest import ROOT, program_environment

TABLE = ROOT / "outputs" / "reference" / "soak" / "hostile.json"
CODE = [(variation, name) for variation in VARIATIONS if variation.name.startswith("H") for name in variation.typed]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile") / "template"
    soak_hostile.make_template(folder)
    return folder


@pytest.mark.parametrize(("variation", "name"), CODE, ids=[f"{variation.name}-{name}" for variation, name in CODE])
def test_no_command_runs_the_code_of_a_run(template: Path, variation: Variation, name: str) -> None:
    limit = soak_hostile.Usage(cpu=60, memory=soak_hostile.MEMORY)
    line = soak_hostile.outcome(template, variation, name, limit, as_command=True)
    assert line.startswith("error: "), line
    assert "interpolations are not read" in line or "is not of this program, and would run its code" in line


def test_what_would_be_refused_is_found(template: Path) -> None:
    """The attack sees code that runs, a file that is written outside, and a text that is shown."""
    for change, fault in (
        (lambda run: (run / "../../outside/canary").touch(), "the stranger's code ran"),
        (lambda run: (run / "../../outside/secret.txt").write_text("x"), "outside/secret.txt was written"),
    ):
        with soak_hostile.case(template, VARIATIONS[0]) as work:
            before = soak_hostile.snapshot(work.parent)
            change(work / soak_hostile.RUN)
            done = soak_hostile.Done(0, soak_hostile.SECRET, "", soak_hostile.Usage(0, 0), is_late=False)
            faults = list(soak_hostile.breaches(done, work, VARIATIONS[0], before, soak_hostile.Usage(1, 1), False))
        assert faults == [fault, "text from outside was shown"]


@pytest.mark.slow
def test_a_fifth_of_all_runs_of_strangers_are_refused_in_one_line_or_work(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "scripts.soak", "hostile", "--share", "0.2"]
    done = subprocess.run(command, cwd=tmp_path, env=program_environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 faults" in done.stdout
    assert not list(tmp_path.iterdir())


def test_the_table_has_every_variation_and_no_fault() -> None:
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    assert set(table) == {variation.name for variation in VARIATIONS}
    assert not [line for outcomes in table.values() for line in outcomes.values() if line.startswith("FAULT")]
