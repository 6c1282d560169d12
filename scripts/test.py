"""All checks of the project, in one command: python3 scripts/test.py [--all] [arguments of pytest]

Makes or reuses .venv, then runs ruff, mypy and pytest; the last line is pytest's own.
"""

import argparse
import os
import sys

import environment

PLAN = f"""\
This will, in {environment.ROOT}:
  1. make or reuse .venv with the versions of constraints.txt: {environment.INSTALL_TIME};
  2. check style and types (ruff, mypy): under a minute;
  3. run the fast tests: within 3 minutes; with --all the slow ones too: within 30, both on two cores.
Tests on real data read it from the folder that NMT_DATA names, and are skipped where it is not set.
"""
CHECKS = {
    "ruff check": ["ruff", "check", "."],
    "ruff format": ["ruff", "format", "--check", "."],
    "mypy": ["mypy"],
}
FAST = "not slow and not gpu and not network"
ALL = "not network"


def pytest_arguments(everything: bool, given: list[str], cpus: int) -> list[str]:
    """What the project says first, so that what the person says overrides it."""
    chosen = ["-m", ALL if everything else FAST]
    if everything:
        chosen += ["--durations=15"]
    # A file's tests share what its fixtures have trained, hence loadfile; a debugger wants a single process.
    if cpus > 1 and not {"--pdb", "--trace", "-s"} & set(given):
        chosen += ["-n", str(min(cpus, 8)), "--dist", "loadfile", "--no-loadscope-reorder"]
    return chosen + given


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="test.py",
        allow_abbrev=False,
        description=PLAN,
        epilog="Anything else is handed to pytest, for example -k beam or tests/decoding.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--all", action="store_true", help="the slow tests too, and on a GPU those for it")
    parser.add_argument("--cpu", action="store_true", help=environment.CPU_HELP)
    options, given = parser.parse_known_args(arguments)

    print(PLAN, file=sys.stderr, flush=True)
    python = environment.ensure(extras=["dev"], cpu=options.cpu)
    env = environment.program_environment()
    failed = []
    for name, command in CHECKS.items():
        environment.say(f"python -m {' '.join(command)}")
        if environment.run([str(python), "-m", *command], env) != 0:
            failed.append(name)
    if failed:
        environment.say(f"{' and '.join(failed)} found what is to be mended, above; no test was run")
        return 1
    selected = pytest_arguments(options.all, given, environment.cpus())
    if "NMT_DATA" not in os.environ:
        environment.say("NMT_DATA is not set: the tests on real data will be skipped")
    return environment.run([str(python), "-m", "pytest", *selected], env)


if __name__ == "__main__":
    sys.exit(environment.guarded(main, environment.this_command()))
