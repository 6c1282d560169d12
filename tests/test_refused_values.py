"""Values that cannot work: each ends in one line that names its setting, before anything is read or written."""

from pathlib import Path

import pytest

import nmt.benchmark
import nmt.compare
import nmt.evaluate
import nmt.prepare
import nmt.train
import nmt.translate
from scripts.soak_files import run_forked
from tests.small_text import some_slow

PROGRAMS = {
    "train": (nmt.train.main, "experiment=bahdanau data=copy"),
    "prepare": (nmt.prepare.main, "data=copy"),
    "translate": (nmt.translate.main, "checkpoint=run"),
    "evaluate": (nmt.evaluate.main, "checkpoint=run"),
    "compare": (nmt.compare.main, ""),
    "benchmark": (nmt.benchmark.main, "suite=training"),
}
TRAIN = """
    optimizer.lr=-1 optimizer.lr=abc optimizer.lr=nan optimizer.betas=[2,2] schedule.warmup_updates=abc
    training.label_smoothing=high training.label_smoothing=null training.max_updates=abc training.max_minutes=nan
    training.max_minutes=inf training.save_minutes=abc training.save_minutes=null training.save_minutes=-1
    training.clip_norm=abc training.clip_norm=-1 training.patience=nan training=5 model.layers=0 model=null
    model.dropout=2 model.dropout=1.5 model.dropout=-1 size.embedding=0 size.dropout=1 size.dropout=-1
    model.hidden_size=abc seed=18446744073709551616 batching.seed=-1 data.seed=abc cleaning.max_ratio=abc
    cleaning.duplicates=abc tokenizer.shrink=abc tokenizer.character_coverage=abc tokenizer.character_coverage=2
    tokenizer.joint=nan device=0 device=null device=true threads=true init_from=[a,b] run_dir=[a,b]
""".split()
OTHERS = [
    ("prepare", "cleaning.max_ratio=abc"),
    ("translate", "scores=no"),
    ("translate", "max_ratio=1e30"),
    ("translate", "checkpoint=[a,b]"),
    ("translate", "input=[a,b]"),
    ("translate", "threads=true"),
    ("translate", "device=null"),
    ("evaluate", "device=0"),
    ("evaluate", "max_ratio=1e30"),
    ("benchmark", "threads=true"),
]


@pytest.mark.parametrize(("program", "wrong"), some_slow([*OTHERS, *(("train", wrong) for wrong in TRAIN)], fast=15))
def test_a_value_that_cannot_work_is_one_line_with_its_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, wrong: str
) -> None:
    monkeypatch.chdir(tmp_path)
    main, rest = PROGRAMS[program]
    arguments = [setting for setting in rest.split() if setting.split("=")[0] != wrong.split("=")[0]]
    code = run_forked(main, program, [*arguments, wrong], Path("log"), tmp_path)
    lines = Path("log").read_text(encoding="utf-8").strip().split("\n")
    assert code == 2
    assert len(lines) == 1, lines
    assert lines[0].startswith("error: ")
    assert wrong.split("=")[0] in lines[0]
    assert [path.name for path in tmp_path.iterdir()] == ["log"]
