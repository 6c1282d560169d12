"""No value of a setting ends in a traceback: a tenth of what scripts/soak.py tries, and its committed table."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from nmt.schema import declared_settings
from nmt.settings import PROGRAMS
from tests.conftest import ROOT, program_environment

TABLE = ROOT / "outputs" / "reference" / "soak" / "settings.json"


@pytest.mark.slow
def test_a_tenth_of_all_values_of_all_settings_are_refused_in_one_line_or_run(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "scripts.soak", "settings", "--share", "0.1"]
    environment = program_environment()
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 faults" in done.stdout
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_table_has_no_setting_that_is_gone_and_no_fault(program: str) -> None:
    """A new setting is in the table once scripts/soak.py has written it again; until then the tenth includes it."""
    table = json.loads(TABLE.read_text(encoding="utf-8"))[program]
    owners = {(one.key, one.target.rpartition(".")[2]) for one in declared_settings(PROGRAMS[program])}
    in_table = {re.fullmatch(r"(\S+)(?: \((\w+)\))?", setting).groups("") for setting in table}  # type: ignore[union-attr]
    assert {(re.sub(r"parts\.\w+\.", "parts.", key), owner) for key, owner in in_table} <= owners
    assert not [outcome for outcomes in table.values() for outcome in outcomes if outcome.startswith("FAULT")]
