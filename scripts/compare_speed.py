"""Speed of two commits, one update in turn: python scripts/compare_speed.py BASE NEW [--turns 31] [--systems rnn,...]

BASE and NEW are checkouts (folders). Each trains the same system in a process of its own; while one computes an update
the other waits, so both meet the same machine. Printed for each system: the median over the turns of BASE's processor
seconds divided by NEW's, and its quartiles; over 1, NEW is faster. Their weights need not be equal, their batches are.
"""

import argparse
import json
import os
import select
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SYSTEMS = ("rnn", "bahdanau", "luong", "transformer")
WARM_UP = 5  # turns that are not counted
CHILD = """
import os, sys, time
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
turn, report = map(int, sys.argv[1:3])
started = time.process_time()
def wait(*_):
    global started
    os.write(report, f"{time.process_time() - started:.6f}\\n".encode())
    if os.read(turn, 1) != b"g":
        os._exit(0)
    started = time.process_time()
register_optimizer_step_post_hook(wait)
sys.argv = ["nmt.train", *sys.argv[3:]]
from nmt.train import main
main()
"""


class Trainer:
    """A training that computes one update whenever it is told to."""

    def __init__(self, checkout: Path, system: str, settings: list[str], folder: str) -> None:
        turn, self.turn = os.pipe()
        self.report, report = os.pipe()
        limits = ["training.max_updates=100000", "training.validate_every=100000", "run_dir=run", "tracker=none"]
        typed = [f"experiment={system}", *settings, *limits, "device=cpu", "threads=1"]
        self.log = Path(folder, "log.txt")
        with self.log.open("w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", CHILD, str(turn), str(report), *typed],
                cwd=folder,
                env=os.environ | {"PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1"},
                pass_fds=(turn, report),
                stderr=log,
            )
        os.close(turn)
        os.close(report)
        self.seconds()  # its first update

    def seconds(self) -> float:
        """Processor seconds of the update that ends next."""
        select.select([self.report], [], [], 300)
        line = os.read(self.report, 100).decode()
        if not line.endswith("\n"):
            raise SystemExit(f"a training ended: {self.log.read_text(encoding='utf-8')[-500:]}")
        return float(line)

    def update(self) -> float:
        os.write(self.turn, b"g")
        return self.seconds()

    def end(self) -> None:
        os.write(self.turn, b"e")
        self.process.wait()


def compare(base: Path, new: Path, system: str, settings: list[str], turns: int) -> dict[str, float | int]:
    with tempfile.TemporaryDirectory(prefix="nmt-base-") as one, tempfile.TemporaryDirectory(prefix="nmt-new-") as two:
        trainers = Trainer(base, system, settings, one), Trainer(new, system, settings, two)
        pairs = []
        for number in range(WARM_UP + turns):
            order = trainers if number % 2 else trainers[::-1]
            seconds = {trainer: trainer.update() for trainer in order}
            pairs.append((seconds[trainers[0]], seconds[trainers[1]]))
        for trainer in trainers:
            trainer.end()
    pairs = pairs[WARM_UP:]
    low, median, high = statistics.quantiles([before / after for before, after in pairs], n=4)
    medians = [round(statistics.median(column), 4) for column in zip(*pairs, strict=True)]
    return {
        "turns": turns, "ratio": round(median, 3), "low_quartile": round(low, 3), "high_quartile": round(high, 3),
        "base_seconds": medians[0], "new_seconds": medians[1],
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", type=Path, help="a checkout")
    parser.add_argument("new", type=Path, help="another")
    parser.add_argument("settings", nargs="*", default=[], help="settings of both trainings")
    parser.add_argument("--turns", type=int, default=31)
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    options = parser.parse_args()
    for system in options.systems.split(","):
        outcome = compare(options.base.resolve(), options.new.resolve(), system, options.settings, options.turns)
        print(system, json.dumps(outcome), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
