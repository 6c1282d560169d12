"""Help and shell completion, made from the declarations of the settings."""

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from hydra import compose, initialize_config_dir
from omegaconf import MISSING, OmegaConf

from nmt.schema import Settings, accepted, conf_dir, declared_settings, properties, section_for, shown
from nmt.settings import PROGRAMS, REPLACED_KEYS, MeasuredSettings, StudyConfig

MARGIN = 36  # columns of key=value
WIDTH = 118


def print_help(program: str, arguments: Sequence[str]) -> None:
    """What a program does, its groups, and every setting: its value here, its meaning, and what it may be."""
    folders = [arguments[n + 1] for n, flag in enumerate(arguments[:-1]) if flag in ("--config-dir", "-cd")]
    overrides = [argument for argument in arguments if "=" in argument and not argument.startswith("-")]
    if folders:
        overrides.append(f"hydra.searchpath=[{','.join(f'file://{folder}' for folder in folders)}]")
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        config = compose(program, overrides, return_hydra_config=True)
    usage = config.hydra.help
    values: Any = OmegaConf.to_container(
        OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"]), resolve=True
    )
    lines = [usage.header.strip(), "", f"nmt {program} and python -m nmt.{program} are the same."]
    lines += ["", "Groups (group=name):"]
    for group, names in groups_of(PROGRAMS[program]):
        lines += _two_columns(f"  {group}=", ", ".join(names))
    lines += ["", "Settings (key=value; --cfg job shows the values alone):"]
    for key, value, meaning in setting_rows(PROGRAMS[program], values):
        lines += _two_columns(f"  {key}={'...' if value == MISSING else shown(value)}", meaning)
    lines += ["", usage.footer.strip()] if usage.footer.strip() else []
    print("\n".join(lines), flush=True)


def _two_columns(left: str, right: str) -> list[str]:
    """The lines of an entry; a long left side has a line to itself."""
    wrapped = textwrap.wrap(right, WIDTH - MARGIN) or [""]
    first = [f"{left:<{MARGIN}}{wrapped[0]}"] if len(left) < MARGIN else [left, " " * MARGIN + wrapped[0]]
    return [*first, *(" " * MARGIN + line for line in wrapped[1:])]


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


def completion(shell: str) -> str:
    """A script that completes programs, settings and values without starting Python: eval "$(nmt completion bash)"."""
    keys: dict[str, list[str]] = {}
    values: dict[str, list[str]] = {}
    paths: set[str] = set()
    for program, declared in PROGRAMS.items():
        groups = dict(groups_of(declared))
        settings = [each for each in declared_settings(declared) if not each.is_section and ".parts." not in each.key]
        keys[program] = [f"{key}=" for key in {*groups, *(setting.key for setting in settings)}]
        values |= {setting.key: choices for setting in settings if (choices := choices_of(setting.schema))} | groups
        paths |= {setting.key for setting in settings if setting.schema["is_path"]}
    of_evaluations = [
        f"evaluate.{setting.key}=" for setting in declared_settings(MeasuredSettings) if not setting.is_section
    ]
    own = {f"{key}=" for key in (*StudyConfig.model_fields, *REPLACED_KEYS)}
    keys["compare"] += {*keys["train"], "evaluate.pool=", *of_evaluations} - own
    keys["completion"] = list(_SHELL_FUNCTIONS)
    values["study.experiments"] = values["experiment"]
    lines = _shell_table("_nmt_keys", keys) + _shell_table("_nmt_values", values)
    lines += [f'_nmt_is_path() {{ case "$1" in {"|".join(sorted(paths))}) ;; *) false ;; esac; }}']
    return "\n".join(lines) + "\n" + _SHELL_FUNCTIONS[shell].replace("PROGRAMS", " ".join(keys))


def choices_of(schema: Mapping[str, Any]) -> list[str]:
    """The values of a setting, where they can be listed."""
    values: list[Any] = []
    for choice in schema.get("anyOf") or [schema]:
        values += [True, False] if choice.get("type") == "boolean" else choice.get("enum", [])
        values += [choice["const"]] if "const" in choice else []
    return [shown(value) for value in values]


def _shell_table(name: str, rows: Mapping[str, Iterable[str]]) -> list[str]:
    """A shell function that prints the words of a row."""
    cases = [f"  {key}) echo '{' '.join(sorted(words))}' ;;" for key, words in sorted(rows.items())]
    return [f'{name}() {{ case "$1" in', *cases, "esac; }"]


# In bash a word breaks at "=" (COMP_WORDBREAKS), so that only what follows it is replaced; 3.2 of macOS has no compopt.
_SHELL_FUNCTIONS = {
    "bash": r"""_nmt() {
  local typed=${COMP_LINE:0:COMP_POINT} words word key value head reply
  read -ra words <<<"$typed"
  word=${typed##*[[:space:]]}
  [ -n "$word" ] || words+=("")
  COMPREPLY=()
  if [ ${#words[@]} -lt 3 ]; then
    COMPREPLY=($(compgen -W 'PROGRAMS --help --version' -- "$word"))
  elif [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W '--help --cfg --config-dir --multirun' -- "$word"))
  elif [[ $word == *=* ]]; then
    key=${word%%=*} value=${word#*=}
    key=${key#+} head=${value%"${value##*[,[]}"} value=${value##*[,[]}
    [[ $COMP_WORDBREAKS == *=* ]] || head=${word%%=*}=$head
    if _nmt_is_path "$key"; then
      compopt -o filenames 2>/dev/null
      while IFS= read -r reply; do COMPREPLY+=("$head$reply"); done < <(compgen -f -- "$value")
    else
      COMPREPLY=($(compgen -P "$head" -W "$(_nmt_values "$key")" -- "$value"))
    fi
  else
    compopt -o nospace 2>/dev/null
    COMPREPLY=($(compgen -W "$(_nmt_keys "${words[1]}")" -- "$word"))
  fi
}
complete -F _nmt nmt
""",
    "zsh": r"""_nmt() {
  local word=$words[CURRENT]
  if (( CURRENT == 2 )); then
    compadd -- PROGRAMS --help --version
  elif [[ $word == -* ]]; then
    compadd -- --help --cfg --config-dir --multirun
  elif [[ $word == *=* ]]; then
    local key=${${word%%=*}#+}
    compset -P 1 '*='
    compset -P '*[,\[]'
    if _nmt_is_path $key; then _files; else compadd -- $(_nmt_values $key); fi
  else
    compadd -S '' -- $(_nmt_keys $words[2])
  fi
}
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
compdef _nmt nmt
""",
}
