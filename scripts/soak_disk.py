"""Fills the disk under each program: python -m scripts.soak_disk [--share 0.1] [--seed 1] [--programs train,...]

train, prepare, evaluate, translate and compare run on a small disk of memory (tmpfs), which is filled to the last byte
before each write-open, rename, deletion and fsync in turn. A program whose writes then fail must end with one line and
exit code 1; once there is space again the same command must finish with what it would have written anyway.
"""

import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1") | {"WANDB_MODE": "offline"}
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

# ruff: noqa: E402 (the environment comes before the imports that read it)
import nmt.compare
import nmt.evaluate
import nmt.prepare
import nmt.train
import nmt.translate
from scripts.soak_files import (
    TIMES,
    Watch,
    at_event,
    attack_options,
    count_events,
    run_forked,
    without_times,
    write_outcomes,
)
from scripts.soak_kills import SETTINGS

DISK_BYTES = 48 << 20
BALLAST = "ballast"
DATED = {".pdf", ".html", ".md", ".log"}  # the date is in them, as it is in notes of comparison.json and resume files
RUN = "run"
LINES = "".join(f"{'abcdefgh'[: 2 + n % 6]} {n}\n" for n in range(40))


class Program(NamedTuple):
    """What is typed, and the files it makes, which must come out equal."""

    main: Any
    arguments: list[str]
    outputs: list[str]


TRAIN = ["experiment=bahdanau", *SETTINGS]
DATA = ["data=copy", "data.train_pairs=200", "data.valid_pairs=20", "data.test_pairs=5", "data.max_length=8"]
SCORES = ["device=cpu", "threads=1", "bootstrap.resamples=40"]
STUDY = [
    f"study.{setting}" for setting in (*SCORES, "bootstrap.trials=40", "headline.short=[1,3]", "headline.long=[4,null]")
]
PROGRAMS = {
    "train": Program(nmt.train.main, [*TRAIN, "run_dir=new"], ["new"]),
    "prepare": Program(nmt.prepare.main, [*DATA, "workers=1"], ["data"]),
    "evaluate": Program(nmt.evaluate.main, [f"checkpoint={RUN}", *SCORES, "output=scores"], ["scores"]),
    "translate": Program(
        nmt.translate.main,
        [f"checkpoint={RUN}", "input=lines", "output=out.txt", "attention_out=out.jsonl", "device=cpu", "threads=1"],
        ["out.txt", "out.jsonl"],
    ),
    "compare": Program(
        nmt.compare.main,
        [f"study.runs=[{RUN}]", "study.output=comparison", "study.jobs=1", *STUDY],
        ["comparison", f"{RUN}/evaluation"],
    ),
}  # fmt: skip


@contextmanager
def small_disk(size: int = DISK_BYTES) -> Iterator[Path]:
    """A disk of memory, mounted on a new folder. OSError where it cannot be mounted."""
    folder = Path(tempfile.mkdtemp(prefix="nmt-disk-"))
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "nmt-disk", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise OSError(done.stderr.strip())
        try:
            yield folder
        finally:
            subprocess.run(["umount", "-l", str(folder)], check=True)
    finally:
        folder.rmdir()


def fill(folder: Path) -> None:
    """Takes all space that is left."""
    with (folder / BALLAST).open("ab", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while file.write(bytes(size)) == size:
                    pass
            except OSError:
                continue


def fingerprint(folder: Path, outputs: list[str]) -> dict[str, str]:
    """Name -> checksum of every file of the outputs, JSON less its times."""
    files = [path for name in outputs for path in (folder / name, *(folder / name).rglob("*")) if path.is_file()]
    files = [path for path in files if not path.name.startswith("resume.") and path.suffix not in DATED]
    return {path.relative_to(folder).as_posix(): _checksum(path) for path in sorted(files)}


def _checksum(path: Path) -> str:
    data = path.read_bytes()
    if path.suffix in (".json", ".jsonl"):
        data = json.dumps(without_times(path, (*TIMES, "notes")), sort_keys=True).encode()
    return hashlib.sha256(data).hexdigest()[:16]


def start(name: str, disk: Path, log: Path, watch: Watch | None = None) -> int:
    program = PROGRAMS[name]
    log.unlink(missing_ok=True)
    return run_forked(program.main, name, program.arguments, log, disk, watch, seconds=120)


def fault(code: int, log: Path) -> str:
    """What is wrong with how a program ended on a full disk; empty where nothing is."""
    text = log.read_text(encoding="utf-8", errors="replace")
    errors = [line for line in text.split("\n") if line.startswith("error: ")]
    if "Traceback" in text or "a fault of the program" in text:
        return f"a traceback: {text[-300:]}"
    if code not in (0, 1) or (code == 1) != (len(errors) == 1):
        return f"exit {code} with {len(errors)} errors: {text[-300:]}"
    return ""


def attack(name: str, disk: Path, template: Path, share: float, generator: random.Random) -> dict[str, Any]:
    """The outcomes of one program, the disk filled at each of its events."""
    log = disk.with_suffix(".log")

    def reset() -> None:
        for path in disk.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copytree(template, disk, dirs_exist_ok=True)

    reset()
    code, count = count_events(lambda watch: start(name, disk, log, watch))
    if code:
        raise SystemExit(f"{name} does not run: {log.read_text(encoding='utf-8')[-500:]}")
    reference = fingerprint(disk, PROGRAMS[name].outputs)
    outcome: dict[str, Any] = {"events": count, "refused": 0, "unaffected": 0, "faults": {}}
    for at in range(count):
        if generator.random() >= share:
            continue
        reset()
        code = start(name, disk, log, at_event(at, partial(fill, disk)))
        wrong = fault(code, log)
        (disk / BALLAST).unlink(missing_ok=True)
        if not wrong and (again := start(name, disk, log)) != 0:
            wrong = f"the same command ends with {again}: {log.read_text(encoding='utf-8')[-300:]}"
        if not wrong and (after := fingerprint(disk, PROGRAMS[name].outputs)) != reference:
            names = sorted(key for key in {*after, *reference} if after.get(key) != reference.get(key))
            wrong = f"{', '.join(names)} differ"
        outcome["refused" if code else "unaffected"] += 1
        if wrong:
            outcome["faults"][f"event {at}"] = wrong
    log.unlink(missing_ok=True)
    return outcome


def main(arguments: list[str]) -> int:
    options = attack_options("soak_disk", __doc__, "programs", PROGRAMS, arguments)
    generator, results = random.Random(options.seed), {}
    with tempfile.TemporaryDirectory(prefix="nmt-disk-template-") as made, small_disk() as disk:
        template = Path(made)
        os.chdir(template)
        (template / "lines").write_text(LINES, encoding="utf-8")
        log = template.with_suffix(".log")
        run_dir = [*TRAIN, f"run_dir={RUN}"]
        if run_forked(nmt.train.main, "train", run_dir, log, template) != 0:
            raise SystemExit(log.read_text(encoding="utf-8")[-500:])
        log.unlink()
        shutil.rmtree(template / "data", ignore_errors=True)
        os.chdir(disk)
        for name in options.programs:
            results[name] = outcome = attack(name, disk, template, options.share, generator)
            print(f"{name}: {json.dumps(outcome)}", flush=True)
        os.chdir(ROOT)
    write_outcomes(results, options.output)
    return int(any(outcome["faults"] for outcome in results.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
