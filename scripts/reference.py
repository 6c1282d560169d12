"""Copies what outputs/reference keeps of runs: python scripts/reference.py RUN... FOLDER

Settings, learning curve, status, evaluations and compressed translations; no weights, no text of a corpus.
"""

import gzip
import shutil
import sys
from pathlib import Path

KEPT = ("config.yaml", "data.json", "metrics.jsonl", "status.json")
DATA = "../shared/data"  # where $NMT_DATA pointed to, as a path relative to the checkout


def copy_run(run: Path, folder: Path) -> None:
    """One run directory, without weights."""
    copied = folder / run.name
    copied.mkdir(parents=True, exist_ok=True)
    for name in KEPT:
        shutil.copyfile(run / name, copied / name)
    config = (copied / "config.yaml").read_text(encoding="utf-8")
    (copied / "config.yaml").write_text(config.replace(DATA, "$NMT_DATA"), encoding="utf-8")
    for file in sorted((run / "evaluation").rglob("*")):
        to = copied / file.relative_to(run)
        if file.suffix == ".json":
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, to)
        elif file.name.endswith((".hyp.txt", ".alignment.txt")):
            to.parent.mkdir(parents=True, exist_ok=True)
            packed = gzip.compress(file.read_bytes(), mtime=0)  # the same bytes from the same text
            to.with_name(f"{file.name}.gz").write_bytes(packed)


if __name__ == "__main__":
    *runs, target = map(Path, sys.argv[1:])
    for run in runs:
        copy_run(run, target)
