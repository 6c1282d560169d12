"""Kills a training everywhere and resumes it: python -m scripts.soak_kills [--share 0.1] [--seed 1] [--systems rnn,...]

A small training of each system is killed (SIGKILL) before every write-open, rename, deletion and fsync of a file of
its run, at random moments, and again and again while it validates. The same command then resumes it, and must end with
the bytes of a training that was never stopped: last, best and averaged weights, metrics and status but for times.
"""

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
from scripts.soak_files import (  # noqa: E402
    Watch,
    at_event,
    attack_options,
    count_events,
    run_forked,
    without_times,
    write_outcomes,
)

SYSTEMS = ("rnn", "bahdanau", "luong", "transformer")
SETTINGS = (
    "data=copy data.train_pairs=200 data.valid_pairs=20 data.test_pairs=5 data.max_length=8 threads=1 device=cpu "
    "size.embedding=8 size.attention=8 size.bahdanau.encoder=8 size.bahdanau.hidden=16 size.luong.encoder=8 "
    "size.luong.hidden=16 size.transformer.layers=1 size.transformer.heads=2 size.transformer.feed_forward=8 "
    "size.dropout=0.1 training.max_updates=12 training.validate_every=4 training.log_every=3 training.keep_every=6 "
    "training.average_last=2 training.bleu_sentences=5 batching.tokens=200"
).split()
RANDOM_KILLS, VALIDATION_KILLS = 100, 6


def train(system: str, run_dir: str, watch: Watch | None = None, seconds: float = 60.0) -> int:
    """A training in a process of its own; its exit code, or minus the signal that ended it."""
    arguments = [f"experiment={system}", *SETTINGS, f"run_dir={run_dir}"]
    return run_forked(nmt.train.main, "train", arguments, Path(f"{run_dir}.log"), Path(run_dir), watch, seconds)


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def differences(reference: Path, run: Path) -> list[str]:
    """What a resumed run holds otherwise than one never stopped."""
    found = []
    for name in ("last", "best", "averaged"):
        file = f"{name}.safetensors"
        if not (run / file).exists() or (run / file).read_bytes() != (reference / file).read_bytes():
            found.append(file)
    for name in ("metrics.jsonl", "status.json"):
        if not (run / name).exists() or without_times(run / name) != without_times(reference / name):
            found.append(name)
    extra = {path.relative_to(run).as_posix() for path in run.rglob("*")} - {
        path.relative_to(reference).as_posix() for path in reference.rglob("*")
    }
    return [*found, *sorted(extra)]


def cases(system: str, share: float, generator: random.Random) -> Iterator[tuple[str, list[Watch | float]]]:
    """A name, and how each start but the last is ended: at an event, or after seconds."""
    code, events = count_events(lambda watch: train(system, f"count-{system}", watch))
    assert code == 0
    for at in range(events):
        if generator.random() < share:
            yield f"event {at}", [at_event(at, kill)]
    for number in range(round(RANDOM_KILLS / len(SYSTEMS) * share) or 1):
        yield f"moment {number}", [generator.uniform(0.05, 1.5)]

    def in_validation(event: str) -> None:
        if event.startswith("os.rename checkpoints/"):  # written while it validates
            kill()

    yield "validation", [in_validation] * VALIDATION_KILLS


def main(arguments: list[str]) -> int:
    options = attack_options("soak_kills", __doc__, "systems", SYSTEMS, arguments)
    generator, results, faults = random.Random(options.seed), {}, 0
    with tempfile.TemporaryDirectory(prefix="nmt-kills-") as folder:
        os.chdir(folder)
        for system in options.systems:
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
    write_outcomes(results, options.output)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
