"""Programs run in a fork that reports each change of a file before it is made: for soak_kills and soak_disk."""

import argparse
import itertools
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, NoReturn

import torch._dynamo  # noqa: F401 (torch.optim wants it: a second in each fork that has not inherited it)

TIMES = ("seconds", "cpu_seconds", "train/tokens_per_second", "provenance")
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
Watch = Callable[[str], None]  # called before each event that changes a file


def run_forked(
    main: Callable[[], object],
    program: str,
    arguments: list[str],
    log: Path,
    folder: Path,
    watch: Watch | None = None,
    seconds: float = 60.0,
) -> int:
    """Runs `main` in a process of its own, standard output and errors into `log`, events below `folder` watched.

    Its exit code, or minus the signal that ended it; it is killed after `seconds`.
    """
    child = os.fork()
    if child == 0:
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        sys.stdout, sys.stderr = (open(number, "w", encoding="utf-8", closefd=False) for number in (1, 2))
        if watch is not None:
            watch_files(folder.absolute(), watch)
        sys.argv = [f"nmt.{program}", *arguments]
        end_process(main)
    started = time.monotonic()
    while time.monotonic() - started < seconds:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def end_process(act: Callable[[], object]) -> NoReturn:
    """Does `act` and ends this process with its exit code, or with 99 and the traceback of what nobody foresaw."""
    code = 0
    try:
        act()
    except SystemExit as exit:
        code = int(exit.code or 0)
    except BaseException:
        traceback.print_exc()
        code = 99
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def at_event(number: int, act: Callable[[], object]) -> Watch:
    """Does `act` at the event of that number, from 0; what it changes itself are later events."""
    counter = itertools.count()

    def watch(event: str) -> None:
        if next(counter) == number:
            act()

    return watch


def count_events(start: Callable[[Watch], int]) -> tuple[int, int]:
    """The exit code of a program that `start` runs in a fork, and the number of its events."""
    read, write = os.pipe()

    def count(event: str) -> None:
        os.write(write, b".")

    code = start(count)
    os.close(write)
    with os.fdopen(read, "rb") as events:
        return code, len(events.read())


def without_times(path: Path, dropped: Collection[str] = TIMES) -> Any:
    """The values of a JSON file, or of one with a value a line, less what differs from run to run."""

    def stripped(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: stripped(part) for key, part in value.items() if key not in dropped}
        return [stripped(part) for part in value] if isinstance(value, list) else value

    text = path.read_text(encoding="utf-8")
    return stripped([json.loads(line) for line in text.splitlines()] if path.suffix == ".jsonl" else json.loads(text))


def attack_options(
    program: str, description: str, parts: str, choices: Collection[str], arguments: list[str]
) -> argparse.Namespace:
    """--share, --seed, --output, and --systems or --programs as a list."""
    parser = argparse.ArgumentParser(prog=program, description=description.split("\n", 1)[0])
    parser.add_argument("--share", type=float, default=1.0, help="of the events that are tried")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(f"--{parts}", type=lambda names: names.split(","), default=[*choices])
    parser.add_argument(
        "--output", type=lambda name: Path(name).resolve(), help="JSON of the outcomes; by default nothing is written"
    )
    return parser.parse_args(arguments)


def write_outcomes(outcomes: Mapping[str, Any], output: Path | None) -> None:
    if output:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(json.dumps(outcomes, indent=1) + "\n", encoding="utf-8")


def watch_files(folder: Path, watch: Watch) -> None:
    """Calls `watch` before each write-open, rename and deletion below the folder, and before each fsync."""

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and not (isinstance(arguments[2], int) and arguments[2] & WRITES):
            return
        if event in ("open", "os.rename", "os.remove", "os.mkdir") and isinstance(
            arguments[0], str | bytes | os.PathLike
        ):
            path = Path(os.fsdecode(arguments[0])).absolute()
            if path.is_relative_to(folder):
                watch(f"{event} {path.relative_to(folder).as_posix()}")

    sys.addaudithook(audit)
    fsync = os.fsync

    def watched_fsync(descriptor: int) -> None:
        watch("fsync")
        fsync(descriptor)

    os.fsync = watched_fsync
