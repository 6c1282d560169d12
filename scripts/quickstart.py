"""From a fresh clone to the figure, in one command: python3 scripts/quickstart.py

Makes .venv with the pinned versions, then trains, evaluates and compares four systems on the embedded corpus.
"""

import argparse
import sys

import environment

PLAN = f"""\
This will, in {environment.ROOT}:
  1. make .venv and install the versions of constraints.txt: {environment.INSTALL_TIME};
  2. train rnn, bahdanau, luong and transformer on the embedded corpus, two at a time with one thread each,
     and evaluate them: 10 to 20 minutes on two cores. The table and the figure's path end the output.
Ctrl-C at any time: the same command goes on from there and does only what is missing.
"""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="quickstart.py",
        allow_abbrev=False,
        description=PLAN,
        epilog="Anything else is handed to `python -m nmt.compare`, for example study.seeds=2.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--install-only", action="store_true", help="stop after step 1")
    parser.add_argument("--cpu", action="store_true", help=environment.CPU_HELP)
    options, overrides = parser.parse_known_args(arguments)

    print(PLAN, file=sys.stderr, flush=True)
    python = environment.ensure(cpu=options.cpu)
    if options.install_only:
        return 0
    environment.say("training, evaluating and comparing: python -m nmt.compare " + " ".join(overrides))
    code = environment.run([str(python), "-m", "nmt.compare", *overrides], environment.program_environment())
    if code not in (0, 130):
        environment.say(
            f"nmt.compare ended with code {code}, for the reason above; finished runs are kept, and"
            f" this goes on from there: {environment.this_command()}"
        )
    return code


if __name__ == "__main__":
    sys.exit(environment.guarded(main, environment.this_command()))
