"""The command line of a comparison: which of its settings are its own, and which are handed on."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from nmt.data.named import set_names, short_name
from nmt.errors import ConfigError

LISTS = ("experiments", "seeds", "runs", "slowest_first")  # experiments=rnn,luong needs no brackets
FOR_EVALUATE = (
    "search", "beam", "length_penalty", "max_ratio", "max_extra", "batch", "max_src_pieces",
    "test", "ter", "bootstrap", "target_language", "evaluate", "data_dir",
)  # fmt: skip
ELSEWHERE = {"experiment": "experiments=rnn,luong", "seed": "seeds=1,2", "run_dir": "root=DIRECTORY"}


class Handed(NamedTuple):
    """What of the command line belongs to the programs that are started."""

    train: tuple[str, ...] = ()  # overrides
    evaluate: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()  # --config-dir

    @property
    def both(self) -> tuple[str, ...]:
        """Of the settings of an evaluation those that training has too: it keeps these sets out of its text."""
        return tuple(override for override in self.evaluate if override.startswith(("evaluate.", "data_dir=")))

    @property
    def chooses_test(self) -> bool:
        """Whether the command line says what to test on."""
        return any(override.startswith(("test.", "evaluate.test=")) for override in self.evaluate)

    @property
    def test(self) -> str:
        """What nmt.evaluate will call the test set, the first of several: the name of its JSON."""
        given = dict(override.split("=", 1) for override in self.evaluate if "=" in override)
        if named := set_names(given.get("evaluate.test", "").strip("[]\"'")):
            return short_name(named[0].strip("\"'"))
        source = Path(given.get("test.src", "test").strip("\"'")).name.removesuffix(".gz")
        return given.get("test.name", source).strip("\"'")


def split_arguments(arguments: Sequence[str], own: Iterable[str]) -> tuple[list[str], Handed]:
    """The command line for Hydra and what is handed on to training and evaluation.

    Raises ConfigError for a setting of training that comparing sets itself.
    """
    mine: list[str] = []
    train: list[str] = []
    evaluate: list[str] = []
    flags: list[str] = []
    own = set(own)
    for index, argument in enumerate(arguments):
        before = arguments[index - 1] if index else ""
        if argument.startswith(("--config-dir", "-cd")) or before in ("--config-dir", "-cd"):
            mine.append(argument)
            flags.append(argument)
            continue
        key = re.split(r"[=@]", argument.lstrip("+~"), maxsplit=1)[0]
        if argument.startswith("-") or ("=" not in argument and not argument.startswith("~")):
            mine.append(argument)  # a flag, or the value of one
        elif key in ELSEWHERE:
            raise ConfigError(f"{argument}: here it is {ELSEWHERE[key]}")
        elif key.split(".")[0] in FOR_EVALUATE and key != "evaluate.valid":
            evaluate.append(argument)
        elif key in own or key.split(".")[0] == "hydra":
            mine.append(_bracketed(argument) if key in LISTS else argument)
        else:
            train.append(argument)
    return mine, Handed(tuple(train), tuple(evaluate), tuple(flags))


def _bracketed(argument: str) -> str:
    """key=a,b as the list that it means, each element as text: 20261129 stays a name."""
    key, value = argument.split("=", 1)
    if value in ("", "null", "None") or set(value) & set("'\""):
        return argument
    elements = [element.strip() for element in value.removeprefix("[").removesuffix("]").split(",")]
    if key == "seeds":
        return f"{key}=[{','.join(elements)}]"
    # a backslash counts only before a quote, and at a folder's end it says nothing
    texts = ['"' + element.rstrip("\\") + '"' for element in elements if element]
    return f"{key}=[{','.join(texts)}]"
