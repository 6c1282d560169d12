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
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ("nmt.train", "nmt.translate", "nmt.evaluate", "nmt.compare", "nmt.prepare", "nmt.benchmark")
LIBRARIES = ("datasets", "altair", "torch._dynamo")  # which they, and torch.optim, import only where needed
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


def program_environment() -> dict[str, str]:
    """The checkout under test comes first, from whatever folder a program is started."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return os.environ | {"PYTHONPATH": path, "PYTHONUTF8": "1"}


ENVIRONMENT = program_environment()  # of the server, whose libraries have read it when they were imported


@cache
def _server() -> subprocess.Popen[bytes]:
    """The server of this test process."""
    command = [sys.executable, __file__]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT, start_new_session=True
    )


def _exit_code(request: Mapping[str, Any], timeout: float) -> int:
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(json.dumps(request).encode() + b"\n")
    server.stdin.flush()
    if select.select([server.stdout], [], [], timeout)[0]:
        return int(server.stdout.readline())
    os.killpg(server.pid, 9)
    _server.cache_clear()
    raise subprocess.TimeoutExpired(request["arguments"], timeout)


def run_module(
    module: str,
    arguments: Sequence[str],
    cwd: Path,
    *,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    timeout: float = 300,
) -> subprocess.CompletedProcess[bytes]:
    """`python -m MODULE ARGUMENTS`, with its output; by the server where a new interpreter would make no difference."""
    env = program_environment() if env is None else env
    command = [sys.executable, "-m", module, *arguments]
    if (
        module not in PROGRAMS
        or not hasattr(os, "fork")
        or {**env, PYTESTS_OWN: ""} != {**ENVIRONMENT, PYTESTS_OWN: ""}
    ):
        return subprocess.run(command, input=stdin, capture_output=True, cwd=cwd, env=env, timeout=timeout)
    with tempfile.TemporaryDirectory(prefix="nmt-test-") as folder:
        streams = [Path(folder, name) for name in ("stdin", "stdout", "stderr")]
        for stream, content in zip(streams, (stdin, b"", b""), strict=True):
            stream.write_bytes(content)
        request = {"module": module, "arguments": [*arguments], "cwd": str(cwd), "streams": [*map(str, streams)]}
        code = _exit_code(request, timeout)
        return subprocess.CompletedProcess(command, code, streams[1].read_bytes(), streams[2].read_bytes())


if __name__ == "__main__":
    serve()
