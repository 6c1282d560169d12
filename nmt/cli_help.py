"""Help, shell completion and the settings reference, made from the declarations of the settings."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hydra import compose, initialize_config_dir
from omegaconf import MISSING, OmegaConf

from nmt.schema import Settings, accepted, conf_dir, declared_settings, properties, section_for, shown
from nmt.settings import PROGRAMS

MARGIN = 36  # columns of key=value
WIDTH = 118


def print_help(program: str, arguments: Sequence[str]) -> None:
    """What a program does, its groups, and every setting: its value here, its meaning, and what it may be."""
    folders = [arguments[n + 1] for n, one in enumerate(arguments[:-1]) if one in ("--config-dir", "-cd")]
    overrides = [one for one in arguments if "=" in one and not one.startswith("-")]
    if folders:
        overrides.append(f"hydra.searchpath=[{','.join(f'file://{folder}' for folder in folders)}]")
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        config = compose(program, overrides, return_hydra_config=True)
    usage = config.hydra.help
    values: Any = OmegaConf.to_container(
        OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"]), resolve=True
    )
    lines = [usage.header.strip(), "", "Groups (group=name):"]
    lines += [f"  {group + '=':<{MARGIN - 2}}{', '.join(names)}" for group, names in groups_of(PROGRAMS[program])]
    lines += ["", "Settings (key=value; --cfg job shows the values alone):"]
    for key, value, meaning in setting_rows(PROGRAMS[program], values):
        left = f"  {key}={'...' if value == MISSING else shown(value)}"
        wrapped = textwrap.wrap(meaning, WIDTH - MARGIN) or [""]
        first = f"{left:<{MARGIN}}{wrapped[0]}" if len(left) < MARGIN else f"{left}\n{' ' * MARGIN}{wrapped[0]}"
        lines += [first, *(" " * MARGIN + line for line in wrapped[1:])]
    lines += ["", usage.footer.strip()] if usage.footer.strip() else []
    print("\n".join(lines), flush=True)


def setting_rows(
    declared: type[Settings], values: Mapping[str, Any], prefix: str = ""
) -> Iterator[tuple[str, Any, str]]:
    """Key, value and meaning of every setting of a composed configuration."""
    for name, field in declared.model_fields.items():
        name = field.alias or name
        if name.startswith("_") or name not in values:
            continue
        key, value = f"{prefix}{name}", values[name]
        section = section_for(field, value)
        if section is not None and isinstance(value, Mapping):
            yield from setting_rows(section, value, f"{key}.")
        elif isinstance(value, Mapping) and "_target_" in value:  # a class of the user's own
            yield from ((f"{key}.{name}", one, "") for name, one in value.items() if not name.startswith("_"))
        else:
            yield key, value, f"{field.description} ({accepted(properties(declared)[name])})"


def groups_of(declared: type[Settings]) -> Iterator[tuple[str, list[str]]]:
    """The groups of a program's configuration with their choices."""
    sections = set(declared.model_fields) | ({"experiment", "attention"} if "model" in declared.model_fields else set())
    for folder in sorted(path for path in conf_dir().iterdir() if path.name in sections):
        yield (
            folder.name,
            sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.yaml")),
        )


def reference() -> str:
    """docs/settings.md: every setting of every program."""
    lines = ["# Settings", "", "Made by `python scripts/settings_reference.py` from the declarations; do not edit."]
    for program, declared in PROGRAMS.items():
        lines += ["", f"## nmt {program}", "", "| setting | of | meaning | values |", "|---|---|---|---|"]
        for one in declared_settings(declared):
            if one.is_section:
                continue
            row = (f"`{one.key}`", one.target.rsplit(".", 1)[-1], one.field.description, accepted(one.schema))
            lines.append("| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |")
    return "\n".join(lines) + "\n"


def completion(shell: str) -> str:
    """A script that completes programs, keys, and the choices of groups and settings: eval "$(nmt completion bash)"."""
    cases = []
    for program, declared in PROGRAMS.items():
        words = {f"{one.key}=" for one in declared_settings(declared) if not one.is_section}
        words |= {f"{group}={name}" for group, names in groups_of(declared) for name in names}
        for one in declared_settings(declared):
            choices = [True, False] if one.schema.get("type") == "boolean" else one.schema.get("enum", [])
            words |= {f"{one.key}={shown(choice)}" for choice in choices}
        cases.append(f"    {program}) words='{' '.join(sorted(words))}' ;;")
    zsh = "autoload -U +X bashcompinit && bashcompinit\n" if shell == "zsh" else ""
    return zsh + _COMPLETION.replace("PROGRAMS", " ".join(PROGRAMS)).replace("CASES", "\n".join(cases))


_COMPLETION = r"""_nmt() {
  local typed=${COMP_LINE:0:$COMP_POINT} words
  local word=${typed##* } before=()
  read -ra before <<<"$typed"
  [ "${before[0]}" = nmt ] && [ -n "${before[1]}" ] && [ "${before[1]}" != "$word" ] || before[1]=
  case "${before[1]}" in
CASES
    *) words='PROGRAMS' ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  case "$word" in *=*) COMPREPLY=("${COMPREPLY[@]#"${word%%=*}="}") ;;
    *) [ ${#COMPREPLY[@]} -eq 1 ] && compopt -o nospace 2>/dev/null ;;
  esac
}
complete -F _nmt nmt
"""
