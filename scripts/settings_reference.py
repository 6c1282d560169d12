"""Writes docs/settings.md, every setting of every program: python -m scripts.settings_reference (a test checks it).

Meanings and values are the declarations' own (nmt/settings.py), defaults those of the YAML files in conf/.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from omegaconf import OmegaConf

from nmt.cli_help import groups_of, options_of
from nmt.schema import accepted, conf_dir, declared_settings, shown
from nmt.settings import PROGRAMS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "settings.md"
ORDER = ("prepare", "train", "translate", "evaluate", "compare", "benchmark")
HEAD = """\
# Settings

Every setting of every program, written `key=value` on the command line:
`nmt train experiment=rnn training.max_updates=300`. `nmt train --help` shows the values that a command would have.
A setting that several programs share is described once. The defaults are those of `conf/`; `data=`, `experiment=`
and `size=` preset some of them. `null` means that there is none. A class of your own has the settings of its
constructor. `python -m scripts.settings_reference` writes this page.
"""
HANDED_ON = (
    "It also takes the settings of `nmt train` as they are, for every training, and those of `nmt evaluate` as "
    "`evaluate.KEY`, for every evaluation that it starts."
)
BRIEF = {
    r"a whole number": "integer",
    r"a number": "number",
    r"the name of a file or folder": "path",
    r", a list of such names": " or list",
    r"text, a list of text": "text or list",
    r"a list of": "list of",
    r", ([\d,]+) or more": r" ≥ \1",
    r" above (\S+) to below ": r" > \1, < ",
    r" above (\S+) to ": r" > \1, ≤ ",
    r" above ": " > ",
    r" from (\S+) to below ": r" ≥ \1, < ",
    r" from (\S+) to ": r" \1–",
}


class Row(NamedTuple):
    key: str
    meaning: str
    values: str


def rows(program: str) -> Iterator[tuple[Row, str]]:
    """The settings of a program, each with the class that a choice of the group selects."""
    for one in declared_settings(PROGRAMS[program]):
        key, meaning = one.key, one.field.description or ""
        if one.key == "data.parts":
            yield Row("data.parts.NAME.KEY", f"{meaning}; KEY is any setting of a corpus", ""), one.target
        elif not one.is_section and not key.startswith("data.parts.") and one.field.default != {}:
            yield Row(key, meaning, brief(accepted(one.schema))), one.target


def brief(words: str) -> str:
    for long, short in BRIEF.items():
        words = re.sub(long, short, words)
    return words


def page() -> str:
    lines = [HEAD]
    described: dict[Row, str] = {}
    for program in ORDER:
        targets: dict[Row, list[str]] = defaultdict(list)
        for row, target in rows(program):
            targets[row].append(target)
        new = [row for row in targets if row not in described]
        lines += [f"## nmt {program}", ""]
        lines += shared({row: described[row] for row in targets if row in described}, {section(row) for row in new})
        lines += [HANDED_ON, ""] if program == "compare" else []
        for name in sorted(dict.fromkeys(map(section, new)), key=bool):  # the settings outside any section come first
            lines += table(program, name, {row: targets[row] for row in new if section(row) == name})
        described |= dict.fromkeys(new, program)
    return "\n".join(lines)


def section(row: Row) -> str:
    """training.max_updates -> training; empty for a setting that is in none."""
    return row.key.split(".")[0] if "." in row.key else ""


def shared(described: Mapping[Row, str], new_sections: set[str]) -> list[str]:
    """A line for each program above that describes settings of this one: whole sections by their name."""
    names: dict[str, list[str]] = defaultdict(list)
    for row, program in described.items():
        whole = section(row) and section(row) not in new_sections
        names[program].append(f"{section(row)}.*" if whole else row.key)
    return [
        line
        for program, keys in names.items()
        for line in (f"As in `nmt {program}`: {', '.join(f'`{key}`' for key in dict.fromkeys(keys))}.", "")
    ]


def table(program: str, name: str, targets: Mapping[Row, list[str]]) -> list[str]:
    choices = dict(groups_of(PROGRAMS[program])).get(name, [])
    about = {one.key: one.field.description for one in declared_settings(PROGRAMS[program]) if one.is_section}
    heading = [f"### {name}", "", sentence(about[name], name, choices), ""] if name else []
    of_choices = any(target for row in targets for target in targets[row])
    columns = ["setting", *(["of"] if of_choices else []), "default", "values", "meaning"]
    lines = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    for row, classes in targets.items():
        options = sorted({option for target in classes for option in options_of(target)})
        default = ", ".join(dict.fromkeys(defaults(program, row.key, options)))
        cells = [f"`{row.key}`", *([", ".join(options)] if of_choices else []), default, row.values, row.meaning]
        lines.append("| " + " | ".join(re.sub(r"([|<*])", r"\\\1", cell) for cell in cells) + " |")
    return [*heading, *lines, ""]


def sentence(meaning: str | None, group: str, choices: list[str]) -> str:
    """The section's description, with the names that choose it whole."""
    named = f" Choose `{group}=NAME`: {', '.join(choices)}." if choices else ""
    text = (meaning or "").split(":")[0]
    is_list_of_choices = set(re.findall(r"\w+", text)) <= {group, *choices}
    return named.strip() if is_list_of_choices else f"{text[0].upper()}{text[1:]}.{named}"


def defaults(program: str, key: str, options: list[str]) -> Iterator[str]:
    """What a setting is where nothing is chosen, or in each of the options of its group."""
    for option in options or [""]:
        values = shipped(f"{program}.yaml")
        for file in sorted(conf_dir().glob(f"*/{option}.yaml")) if option else ():
            values = values | shipped(file.relative_to(conf_dir()).as_posix())
        if key in values:
            value = values[key]
            yield "null" if value is None else "needed" if value == "???" else code(value)


def code(value: Any) -> str:
    """`${size.embedding}` is written as the name of the setting that it follows."""
    name = re.sub(r"^[$]{(?:oc.select:\w+,)?(.*)}$", r"\1", shown(value))
    return f"`{name}`"


@cache
def shipped(file: str) -> dict[str, Any]:
    """The values of a YAML file and of those that it starts from, by their full keys."""
    path = conf_dir() / file
    content: Any = OmegaConf.to_container(OmegaConf.load(path), resolve=False)
    package = re.search(r"^# @package (\S+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    group = path.parent.name if path.parent != conf_dir() else ""
    prefix = {"_global_": ""}.get(package[1], package[1]) if package else group
    values: dict[str, Any] = {}
    for entry in content.pop("defaults", []):
        name, option = next(iter(entry.items())) if isinstance(entry, dict) else (group, entry)
        is_preset = name in ("data", "experiment") and not group  # it changes settings of other sections
        if option != "_self_" and not is_preset and not name.startswith(("override", "/")):
            values |= shipped(f"{name}/{option}.yaml" if name else f"{option}.yaml")
    return values | dict(flat(content, f"{prefix}." if prefix else ""))


def flat(section: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in section.items():
        if isinstance(value, dict) and value:
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
