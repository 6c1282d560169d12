"""Programs in processes of their own, forked from one that has imported torch: a start takes no seconds.

`run_module` does as `python -m MODULE ARGUMENTS` would. The server is this file, run as a script; it forks at each
request, before any thread of torch or arrow exists in it.
"""

import importlib
import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ("nmt.train", "nmt.translate", "nmt.evaluate", "nmt.compare", "nmt.prepare", "nmt.benchmark")
LIBRARIES = ("datasets", "altair")  # which they import only where they are needed
STREAMS = (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY)
PYTESTS_OWN = "PYTEST_CURRENT_TEST"  # in the environment; it changes from test to test


def serve() -> None:
    """A request is a line of JSON, the answer a program's exit code. In the children this returns."""
    requests, answers = os.fdopen(os.dup(0)), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):
        os.dup2(nothing, stream)
    for module in (*PROGRAMS, *LIBRARIES):
        importlib.import_module(module)
    for line in requests:
        child = os.fork()
        if child == 0:
            os.close(answers)
            return start(**json.loads(line))
        os.write(answers, f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n".encode())
    return None


def start(module: str, arguments: list[str], cwd: str, streams: list[str]) -> None:
    os.chdir(cwd)
    for number, (path, flags) in enumerate(zip(streams, STREAMS, strict=True)):
        os.dup2(os.open(path, flags), number)
    sys.path[0] = cwd
    sys.argv = [str(sys.modules[module].__file__), *arguments]
    sys.orig_argv = [sys.executable, "-m", module, *arguments]
    sys.modules[module].main()


class _Server:
    """The server of this test process, started when it is first asked for."""

    def __init__(self) -> None:
        self._environment: dict[str, str] = {}
        self._process: subprocess.Popen[bytes] | None = None

    def knows(self, module: str, environment: Mapping[str, str]) -> bool:
        """Whether it can do what a new interpreter would: libraries read the environment when they are imported."""
        given = {key: value for key, value in environment.items() if key != PYTESTS_OWN}
        if self._process is None and hasattr(os, "fork") and module in PROGRAMS:
            command = [sys.executable, __file__]
            self._environment = given
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=given, start_new_session=True
            )
        return self._process is not None and module in PROGRAMS and given == self._environment

    def exit_code(self, request: Mapping[str, Any], timeout: float) -> int:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
        if select.select([process.stdout], [], [], timeout)[0] and (answer := process.stdout.readline()):
            return int(answer)
        os.killpg(process.pid, 9)
        self._process = None
        raise subprocess.TimeoutExpired(request["arguments"], timeout)


_SERVER = _Server()


def program_environment() -> dict[str, str]:
    """The checkout under test comes first, from whatever folder a program is started."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return os.environ | {"PYTHONPATH": path, "PYTHONUTF8": "1"}


def run_module(
    module: str,
    arguments: Sequence[str],
    cwd: Path,
    *,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    timeout: float = 300,
) -> subprocess.CompletedProcess[bytes]:
    """`python -m MODULE ARGUMENTS`, with its output."""
    env = program_environment() if env is None else env
    command = [sys.executable, "-m", module, *arguments]
    if not _SERVER.knows(module, env):
        return subprocess.run(command, input=stdin, capture_output=True, cwd=cwd, env=env, timeout=timeout)
    with tempfile.TemporaryDirectory(prefix="nmt-test-") as folder:
        streams = [Path(folder, name) for name in ("stdin", "stdout", "stderr")]
        for stream, content in zip(streams, (stdin, b"", b""), strict=True):
            stream.write_bytes(content)
        request = {"module": module, "arguments": [*arguments], "cwd": str(cwd), "streams": [*map(str, streams)]}
        code = _SERVER.exit_code(request, timeout)
        return subprocess.CompletedProcess(command, code, streams[1].read_bytes(), streams[2].read_bytes())


if __name__ == "__main__":
    serve()
