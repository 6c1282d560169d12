"""Kills a training everywhere and resumes it: python -m scripts.soak_kills [--share 0.1] [--seed 1] [--systems rnn,...]

A small training of each system is killed (SIGKILL) before every write-open, rename, deletion and fsync of a file of
its run, at random moments, and again and again while it validates. The same command then resumes it, and must end with
the bytes of a training that was never stopped: last, best and averaged weights, metrics and status but for times.
"""

import argparse
import itertools
import json
import os
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1") | {"WANDB_MODE": "offline"}
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import nmt.train  # noqa: E402 (imported once; each training is a fork)
from scripts.soak_files import Watch, run_forked  # noqa: E402

OUTPUT = ROOT / "outputs" / "reference" / "soak" / "kills.json"
SYSTEMS = ("rnn", "bahdanau", "luong", "transformer")
SETTINGS = (
    "data=copy data.train_pairs=200 data.valid_pairs=20 data.test_pairs=5 data.max_length=8 threads=1 device=cpu "
    "size.embedding=8 size.attention=8 size.bahdanau.encoder=8 size.bahdanau.hidden=16 size.luong.encoder=8 "
    "size.luong.hidden=16 size.transformer.layers=1 size.transformer.heads=2 size.transformer.feed_forward=8 "
    "size.dropout=0.1 training.max_updates=12 training.validate_every=4 training.log_every=3 training.keep_every=6 "
    "training.average_last=2 training.bleu_sentences=5 batching.tokens=200"
).split()
RANDOM_KILLS, VALIDATION_KILLS = 100, 6
TIMES = ("seconds", "cpu_seconds", "train/tokens_per_second", "provenance")


def train(system: str, run_dir: str, watch: Watch | None = None, seconds: float = 60.0) -> int:
    """A training in a process of its own; its exit code, or minus the signal that ended it."""
    arguments = [f"experiment={system}", *SETTINGS, f"run_dir={run_dir}"]
    return run_forked(nmt.train.main, "train", arguments, Path(f"{run_dir}.log"), Path(run_dir), watch, seconds)


def killer(at: int) -> Watch:
    """Kills this process at the event of that number, from 0."""
    counter = itertools.count()

    def watch(event: str) -> None:
        if next(counter) == at:
            os.kill(os.getpid(), signal.SIGKILL)

    return watch


def count_events(system: str) -> int:
    read, write = os.pipe()
    train(system, f"count-{system}", lambda event: os.write(write, b".") and None)
    os.close(write)
    with os.fdopen(read, "rb") as events:
        return len(events.read())


def differences(reference: Path, run: Path) -> list[str]:
    """What a resumed run holds otherwise than one never stopped."""
    found = []
    for name in ("last", "best", "averaged"):
        file = f"{name}.safetensors"
        if not (run / file).exists() or (run / file).read_bytes() != (reference / file).read_bytes():
            found.append(file)
    for name in ("metrics.jsonl", "status.json"):
        if _without_times(run / name) != _without_times(reference / name):
            found.append(name)
    extra = {path.relative_to(run).as_posix() for path in run.rglob("*")} - {
        path.relative_to(reference).as_posix() for path in reference.rglob("*")
    }
    return [*found, *sorted(extra)]


def _without_times(path: Path) -> Any:
    if not path.exists():
        return None
    text = path.read_text(encoding="utf-8")
    values = [json.loads(line) for line in text.split("\n") if line] if path.suffix == ".jsonl" else [json.loads(text)]
    return [{key: value for key, value in each.items() if key not in TIMES} for each in values]


def cases(system: str, share: float, generator: random.Random) -> Iterator[tuple[str, list[Watch | float]]]:
    """A name, and how each start but the last is ended: at an event, or after seconds."""
    for at in range(count_events(system)):
        if generator.random() < share:
            yield f"event {at}", [killer(at)]
    for number in range(round(RANDOM_KILLS / len(SYSTEMS) * share) or 1):
        yield f"moment {number}", [generator.uniform(0.05, 1.5)]

    def in_validation(event: str) -> None:
        if event.startswith("os.rename checkpoints/"):  # written while it validates
            os.kill(os.getpid(), signal.SIGKILL)

    yield "validation", [in_validation] * VALIDATION_KILLS


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="soak_kills", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--share", type=float, default=1.0, help="of the events that are tried")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument(
        "--output", type=lambda name: Path(name).resolve(), help="JSON of the outcomes; by default nothing is written"
    )
    options = parser.parse_args(arguments)
    generator, results, faults = random.Random(options.seed), {}, 0
    with tempfile.TemporaryDirectory(prefix="nmt-kills-") as folder:
        os.chdir(folder)
        for system in options.systems.split(","):
            if train(system, f"reference-{system}") != 0:
                print(Path(f"reference-{system}.log").read_text(encoding="utf-8")[-500:])
                return 1
            outcome: dict[str, Any] = {"kills": 0, "equal": 0, "different": {}}
            for name, ends in cases(system, options.share, generator):
                shutil.rmtree("run", ignore_errors=True)
                wrong = []
                for end in ends:
                    code = train(system, "run", seconds=end) if isinstance(end, float) else train(system, "run", end)
                    outcome["kills"] += code == -signal.SIGKILL
                    if code != -signal.SIGKILL and not isinstance(end, float):
                        wrong.append("it was not killed")
                if code := train(system, "run"):
                    wrong.append(f"exit {code}")
                wrong += differences(Path(f"reference-{system}"), Path("run"))
                if wrong:
                    outcome["different"][name] = wrong
                else:
                    outcome["equal"] += 1
            results[system] = outcome
            faults += len(outcome["different"])
            print(
                f"{system}: {outcome['kills']} kills, {outcome['equal']} resumed to equal bytes, {outcome['different']}"
            )
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
