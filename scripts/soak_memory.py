"""Memory and open files over a long training: python -m scripts.soak_memory [--updates 20000] [--output FILE]

The smallest model is trained with validations and checkpoints; resident memory and open files at the end are compared
with those after the first 1,000 updates. Exit code 1 where memory grew by over 2% or files by any.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parent.parent
SETTINGS = (
    "experiment=rnn data=copy data.train_pairs=200 data.valid_pairs=20 data.test_pairs=5 data.max_length=8 threads=1 "
    "device=cpu size.embedding=4 size.bahdanau.encoder=4 size.bahdanau.hidden=4 training.validate_every=500 "
    "training.log_every=100 training.keep_every=5000 training.average_last=2 training.bleu_sentences=5 "
    "training.max_epochs=null batching.tokens=200 run_dir=run"
).split()
FROM, GROWTH = 1_000, 0.02  # updates; of resident memory


def last_update(metrics: Path) -> int:
    lines = metrics.read_text(encoding="utf-8").splitlines() if metrics.exists() else []
    try:
        return int(json.loads(lines[-1])["update"])
    except (IndexError, ValueError):  # nothing yet, or half a line
        return 0


def watch(updates: int, folder: str) -> dict[str, Any]:
    """What the training holds, each time that another 100 updates are logged."""
    command = [sys.executable, "-m", "nmt.train", *SETTINGS, f"training.max_updates={updates}"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    samples: dict[int, tuple[int, int]] = {}
    with subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.DEVNULL) as training:
        process = psutil.Process(training.pid)
        while training.poll() is None:
            update = last_update(Path(folder, "run", "metrics.jsonl"))
            try:
                samples.setdefault(update, (process.memory_info().rss, process.num_fds()))
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                break
            time.sleep(0.05)
    if training.returncode:
        raise SystemExit(f"the training ended with {training.returncode}")
    counted = {update: sample for update, sample in samples.items() if update >= FROM}
    (first, at_first), (last, at_last) = min(counted.items()), max(counted.items())
    return {
        "updates": [first, last],
        "resident_bytes": [at_first[0], at_last[0]],
        "most_resident_bytes": max(memory for memory, _ in counted.values()),
        "open_files": [at_first[1], at_last[1]],
    }


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="soak_memory", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--updates", type=int, default=20_000)
    parser.add_argument("--output", type=Path, help="JSON of the outcome; by default nothing is written")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="nmt-memory-") as folder:
        outcome = watch(options.updates, folder)
    outcome["growth"] = round(outcome["resident_bytes"][1] / outcome["resident_bytes"][0] - 1, 4)
    print(json.dumps(outcome))
    if options.output:
        options.output.write_text(json.dumps(outcome, indent=1) + "\n", encoding="utf-8")
    return int(outcome["growth"] > GROWTH or outcome["open_files"][1] > outcome["open_files"][0])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
