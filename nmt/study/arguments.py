"""The command line of a comparison: which of its settings are its own, and which are handed on."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from nmt.errors import ConfigError
from nmt.schema import declared_settings, properties
from nmt.settings import CompareConfig, MeasuredSettings

REPLACED_KEYS = {"experiment": "experiments=rnn,luong", "seed": "seeds=1,2", "run_dir": "root=DIRECTORY"}


SEARCH_GROUP = "search"  # search=greedy, of nmt.evaluate


class ChildOverrides(NamedTuple):
    """What of the command line belongs to the programs that are started."""

    train: tuple[str, ...] = ()  # overrides
    evaluate: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()  # --config-dir

    @property
    def both(self) -> tuple[str, ...]:
        """Of the settings of an evaluation those that training has too: it keeps these sets out of its text."""
        return tuple(override for override in self.evaluate if override.startswith(("evaluate.", "data_dir=")))


def split_arguments(arguments: Sequence[str]) -> tuple[list[str], ChildOverrides]:
    """The command line for Hydra and what is handed on to training and evaluation.

    Raises ConfigError for a setting of training that comparing sets itself.
    """
    compare_overrides: list[str] = []
    train: list[str] = []
    evaluate: list[str] = []
    flags: list[str] = []
    evaluate_keys = {SEARCH_GROUP, *(one.key for one in declared_settings(MeasuredSettings))}
    for index, argument in enumerate(arguments):
        before = arguments[index - 1] if index else ""
        if argument.startswith(("--config-dir", "-cd")) or before in ("--config-dir", "-cd"):
            compare_overrides.append(argument)
            flags.append(argument)
            continue
        key = re.split(r"[=@]", argument.lstrip("+~"), maxsplit=1)[0]
        if argument.startswith("-") or ("=" not in argument and not argument.startswith("~")):
            compare_overrides.append(argument)  # a flag, or the value of one
        elif argument == "runs=":  # of an unset variable; nothing named is not all of it
            raise ConfigError("runs= is empty: name run directories or files of translations")
        elif key in REPLACED_KEYS:
            raise ConfigError(f"{argument}: here it is {REPLACED_KEYS[key]}")
        elif key in evaluate_keys:
            evaluate.append(argument)
        elif key.split(".")[0] in (*CompareConfig.model_fields, "hydra"):
            compare_overrides.append(_bracketed(argument) if _takes_list(key) else argument)
        else:
            train.append(argument)
    return compare_overrides, ChildOverrides(tuple(train), tuple(evaluate), tuple(flags))


def _takes_list(key: str) -> bool:
    """experiments=rnn,luong needs no brackets."""
    schema = properties(CompareConfig).get(key, {})
    return any(choice.get("type") == "array" for choice in schema.get("anyOf", []))


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
