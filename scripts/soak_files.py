"""Programs run in a fork that reports each change of a file before it is made: for soak_kills and soak_disk."""

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch._dynamo  # noqa: F401 (torch.optim wants it: a second in each fork that has not inherited it)

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
        code = 0
        try:
            main()
        except SystemExit as exit:
            code = int(exit.code or 0)
        except BaseException as error:
            print(f"Traceback: {error!r}", file=sys.stderr)
            code = 99
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    started = time.monotonic()
    while time.monotonic() - started < seconds:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


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
