"""The command `nmt`, which is `python -m nmt`: starts the programs, or lists them."""

import difflib
import importlib
import json
import platform
import sys

from nmt import __version__
from nmt.progress import say
from nmt.provenance import DISTRIBUTION, git_commit, machine_description, package_version

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
    word, *arguments = sys.argv[1:] or ["--help"]
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
    elif word in ("--help", "-h", "help"):
        print(overview())
    else:
        say(f"error: {_meant(word)}")
        sys.exit(2)


def _meant(word: str) -> str:
    near = difflib.get_close_matches(word.removeprefix("nmt."), PROGRAMS, n=1)
    if word == "completion":
        return f"for which shell? nmt completion {' or nmt completion '.join(SHELLS)}"
    if near:
        return f"there is no program {word}; did you mean nmt {near[0]}?"
    return f"{word}: name a program first: nmt {', '.join(PROGRAMS)}"


def overview() -> str:
    """The programs, and the environment for a bug report."""
    packages = ("torch", "sentencepiece", "sacrebleu", "hydra-core", "pydantic", "datasets", "numpy", "safetensors")
    environment = {
        "nmt": __version__,
        "commit": git_commit(),
        "python": platform.python_version(),
        "system": platform.platform(),
        "machine": machine_description(),
        **{name: package_version(name) for name in packages},
    }
    lines = [f"nmt {__version__}: neural machine translation with and without attention", ""]
    lines += [f"  {name:<12}{purpose:<34}{example}" for name, (purpose, example) in PROGRAMS.items()]
    lines += ["", "Each explains itself: nmt train --help. nmt train and python -m nmt.train are the same.", ""]
    return "\n".join([*lines, "For a bug report:", json.dumps(environment, indent=1)])


if __name__ == "__main__":
    main()
