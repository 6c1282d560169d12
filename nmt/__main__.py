"""The command `nmt`, which is `python -m nmt`: starts the programs, or lists them and tries what works here."""

import difflib
import importlib
import sys

from nmt import __version__
from nmt.progress import say
from nmt.provenance import DISTRIBUTION

PROGRAMS = {
    "prepare": ("clean and encode a corpus", "nmt prepare data=wmt14_en_fr"),
    "train": ("train one system", "nmt train experiment=bahdanau"),
    "translate": ("lines in, lines out", "echo 'the old dog sleeps' | nmt translate checkpoint=RUN"),
    "evaluate": ("BLEU, chrF2, TER, BLEU by length", "nmt evaluate checkpoint=RUN"),
    "compare": ("all systems, one report", "nmt compare"),
    "benchmark": ("how fast the parts are", "nmt benchmark"),
    "completion": ("completion for bash or zsh", 'eval "$(nmt completion bash)"'),
}
SHELLS = ("bash", "zsh")


def main() -> None:
    word, *arguments = sys.argv[1:] or [""]
    if word in PROGRAMS and word != "completion":
        if not sys.flags.safe_path:  # as `python -m` does, for classes of the user's own
            sys.path[0] = ""
        sys.argv = [f"nmt {word}", *arguments]
        importlib.import_module(f"nmt.{word}").main()
    elif word == "completion" and len(arguments) == 1 and arguments[0] in SHELLS:
        from nmt.cli_help import completion

        print(completion(arguments[0]), end="")
    elif word in ("--version", "-V"):
        print(f"{DISTRIBUTION} {__version__}")
    elif word in ("", "--help", "-h", "help"):
        print(f"nmt {__version__}: neural machine translation with and without attention\n")
        for name, (purpose, example) in PROGRAMS.items():
            print(f"  {name:<12}{purpose:<34}{example}")
        print("\nEach explains itself: nmt train --help. nmt train and python -m nmt.train are the same.")
        if word:
            print("nmt alone also tries what works here: text for a bug report.")
        else:
            from nmt.self_test import print_report

            sys.exit(print_report())
    else:
        near = difflib.get_close_matches(word.removeprefix("nmt."), PROGRAMS, n=1)
        meant = f"{word}: name a program first: nmt {', '.join(PROGRAMS)}"
        if word == "completion":
            meant = f"for which shell? nmt completion {' or nmt completion '.join(SHELLS)}"
        elif near:
            meant = f"there is no program {word}; did you mean nmt {near[0]}?"
        say(f"error: {meant}")
        sys.exit(2)


if __name__ == "__main__":
    main()
