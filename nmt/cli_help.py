"""Help and shell completion, made from the declarations of the settings."""

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from omegaconf import MISSING, OmegaConf

from nmt.schema import (
    Settings,
    accepted,
    alternatives,
    conf_dir,
    declared_settings,
    fields_of,
    properties,
    section_for,
    shown,
)
from nmt.settings import PROGRAMS, REPLACED_KEYS, MeasuredSettings, StudyConfig

MARGIN = 36  # columns of key=value
WIDTH = 118


def print_help(program: str, overrides: Sequence[str], config_dir: str | None = None) -> None:
    """What a program does, its groups, and every setting: its value here, its meaning, and what it may be."""
    search_path = [f"hydra.searchpath=[file://{config_dir}]"] if config_dir else []
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        config = compose(program, [*overrides, *search_path], return_hydra_config=True)
    usage = config.hydra.help
    values: Any = OmegaConf.to_container(
        OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"]), resolve=True
    )
    rows = [(f"{group}=", ", ".join(names)) for group, names in groups_of(PROGRAMS[program])]
    lines = [usage.header.strip(), "", f"nmt {program} and python -m nmt.{program} are the same."]
    lines += ["", "Groups (group=name):", *_two_columns(rows)]
    rows = [
        (f"{key}={'...' if value == MISSING else shown(value)}", meaning)
        for key, value, meaning in _setting_rows(PROGRAMS[program], values)
    ]
    lines += ["", "Settings (key=value; --cfg job shows the values alone):", *_two_columns(rows)]
    lines += ["", usage.footer.strip()] if usage.footer.strip() else []
    print("\n".join(lines), flush=True)


def _two_columns(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    """A long left side has a line to itself."""
    margin = " " * MARGIN
    for left, right in rows:
        text = textwrap.fill(right, WIDTH, initial_indent=margin, subsequent_indent=margin).ljust(MARGIN)
        yield f"  {left:<{MARGIN - 2}}{text[MARGIN:]}" if len(left) + 2 < MARGIN else f"  {left}\n{text}"


def _setting_rows(
    declared: type[Settings], values: Mapping[str, Any], prefix: str = ""
) -> Iterator[tuple[str, Any, str]]:
    """Key, value and meaning of every setting of a composed configuration."""
    for name, field in fields_of(declared).items():
        if name not in values:
            continue
        key, value = f"{prefix}{name}", values[name]
        section = section_for(field, value)
        if section is not None and isinstance(value, Mapping):
            yield from _setting_rows(section, value, f"{key}.")
        elif isinstance(value, Mapping) and "_target_" in value:  # a class of the user's own
            yield from ((f"{key}.{name}", part, "") for name, part in value.items() if not name.startswith("_"))
        else:
            yield key, value, f"{field.description} ({accepted(properties(declared)[name])})"


def groups_of(declared: type[Settings]) -> Iterator[tuple[str, list[str]]]:
    """The groups of a program's configuration with their choices."""
    sections = set(declared.model_fields)
    sections |= {"experiment", "attention"} if "model" in sections else {"search"} if "beam" in sections else set()
    for folder in sorted(path for path in conf_dir().iterdir() if path.name in sections):
        yield (
            folder.name,
            sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.yaml")),
        )


@cache
def options_of(target: str) -> tuple[str, ...]:
    """The choices of a group that build a class: copy and reverse for nmt.data.synthetic.SyntheticCorpus."""
    line = re.compile(rf"^\s*_target_: {re.escape(target)}$", re.MULTILINE)
    return tuple(path.stem for path in sorted(conf_dir().rglob("*.yaml")) if target and line.search(path.read_text()))


def completion(shell: str) -> str:
    """A script that completes programs, settings and values without starting Python: eval "$(nmt completion bash)"."""
    keys: dict[str, list[str]] = {}
    values: dict[str, list[str]] = {}
    paths: set[str] = set()
    for program, declared in PROGRAMS.items():
        groups = dict(groups_of(declared))
        settings = [each for each in declared_settings(declared) if not each.is_section and ".parts." not in each.key]
        keys[program] = [f"{key}=" for key in {*groups, *(setting.key for setting in settings)}]
        values |= {setting.key: choices for setting in settings if (choices := _choices_of(setting.schema))} | groups
        paths |= {setting.key for setting in settings if setting.schema["is_path"]}
    of_evaluations = [
        f"evaluate.{setting.key}=" for setting in declared_settings(MeasuredSettings) if not setting.is_section
    ]
    own = {f"{key}=" for key in (*StudyConfig.model_fields, *REPLACED_KEYS)}
    keys["compare"] += {*keys["train"], "evaluate.pool=", *of_evaluations} - own
    keys["completion"] = ["bash", "zsh"]
    values["study.experiments"] = values["experiment"]
    lines = _shell_table("_nmt_keys", keys) + _shell_table("_nmt_values", values)
    lines += [f'_nmt_is_path() {{ case "$1" in {"|".join(sorted(paths))}) ;; *) false ;; esac; }}']
    functions = Path(__file__).with_name(f"completion.{shell}").read_text(encoding="utf-8")
    return "\n".join([*lines, functions.replace("PROGRAMS", " ".join(keys))])


def _choices_of(schema: Mapping[str, Any]) -> list[str]:
    """The values of a setting, where they can be listed."""
    values: list[Any] = []
    for choice in alternatives(schema):
        values += [True, False] if choice.get("type") == "boolean" else choice.get("enum", [])
        values += [choice["const"]] if "const" in choice else []
    return [shown(value) for value in values]


def _shell_table(name: str, rows: Mapping[str, Iterable[str]]) -> list[str]:
    """A shell function that prints the words of a row."""
    cases = [f"  {key}) echo '{' '.join(sorted(words))}' ;;" for key, words in sorted(rows.items())]
    return [f'{name}() {{ case "$1" in', *cases, "esac; }"]
