"""How settings are declared and checked: sections as pydantic models, and one readable line for each wrong value.

The declarations themselves stand in `settings.py`. pydantic checks what Hydra has composed before anything is read or
written. A class of the user's own declares its settings by the annotations of its constructor (`check_arguments`).
"""

from __future__ import annotations

import difflib
import inspect
import re
import typing
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from functools import cache, reduce
from operator import getitem
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    ValidatorFunctionWrapHandler,
    create_model,
    field_validator,
)
from pydantic.fields import FieldInfo

from nmt.errors import ConfigError

UNBOUNDED = 10**9  # bounds from here on guard against overflow alone, and are not part of the help


class About(NamedTuple):
    """What a setting means beside its value."""

    path: bool = False  # names a file or folder; its content is compared by checksum, never its name
    resume: bool | frozenset[str] = False  # may change when a run is resumed; a set: among these values
    stored: bool = True  # belongs to the run and not to the machine: config.yaml keeps it
    fair: bool = False  # a fair comparison holds it equal


def setting(help: str, *, default: Any = ..., alias: str | None = None, **about: Any) -> Any:
    """A declared setting: its help, and what else it means; alias is its key where that is no name for an attribute."""
    extra: Any = {"about": About(**about)}
    return Field(default, description=help, alias=alias, json_schema_extra=extra)


def about(field: FieldInfo) -> About:
    extra = field.json_schema_extra
    found: Any = extra.get("about") if isinstance(extra, dict) else None
    return found or About()


class Settings(BaseModel):
    """A section of the configuration. Strict: no text counts as a number, no word as true or false."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False, protected_namespaces=(), str_min_length=1
    )
    shipped: ClassVar[tuple[tuple[str, str], ...]] = ()  # (YAML file, section) of the defaults; later ones win

    @field_validator("*", mode="wrap")
    @classmethod
    def _accept_any_file_name(cls, value: Any, check: ValidatorFunctionWrapHandler) -> Any:
        """Bytes of a file name that are no UTF-8 are surrogates in Python's text, which pydantic refuses."""
        encodable = _encodable(value)
        checked = check(encodable)
        return checked if encodable == value else value

    @classmethod
    def defaults(cls, **changes: Any) -> Self:
        """The shipped defaults with some changes, for use from Python. ConfigError for a wrong value."""
        section = cls.shipped[-1][1]
        return check(cls, {**_shipped_values(cls.shipped), **changes}, f"{section}." if section else "")


def _encodable(value: Any) -> Any:
    """A text, or a list of texts, with ? in place of surrogates."""
    if isinstance(value, list):
        return [_encodable(item) for item in value]
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


class Component(Settings):
    """A section from which an object of the class `_target_` is built."""

    target_class: str = Field(alias="_target_")
    is_partial: bool = Field(False, alias="_partial_")
    conversion: str = Field("none", alias="_convert_")


class OwnComponent(Component):
    """A class of the user's own."""

    model_config = ConfigDict(extra="allow")


def one_of(classes: Mapping[str, type[Component]], untold: Callable[[Mapping[str, Any]], str] | None = None) -> Any:
    """The declared class that `_target_` names, or `untold` where there is none; any other is the user's own."""

    def tag(value: Any) -> str:
        if not isinstance(value, Mapping):
            name: Any = getattr(value, "target_class", None)
        elif untold is not None and "_target_" not in value:
            name = untold(value)
        else:
            name = value.get("_target_")
        return name if isinstance(name, str) and name in classes else "own"

    union: Any = Annotated[OwnComponent, Tag("own")]
    for name, declared in classes.items():
        union = Annotated[declared, Tag(name)] | union  # type: ignore[valid-type]
    return Annotated[union, Discriminator(tag)]


def optional(declared: type[Component]) -> type[Component]:
    """The same settings, where each may be left out: the constructor has a default."""
    fields: dict[str, Any] = {}
    for name, field in declared.model_fields.items():
        fields[name] = (field.annotation, copy(field))
        fields[name][1].default = None
    return create_model(f"Optional{declared.__name__}", __base__=declared, **fields)


def conf_dir() -> Path:
    """The configuration shipped with the program: inside the wheel, or beside the package in a checkout."""
    package = Path(__file__).resolve().parent
    return package / "conf" if (package / "conf").is_dir() else package.parent / "conf"


class _HydraLoader(yaml.SafeLoader):
    """YAML as Hydra reads it: 1e-3 is a number."""


_HydraLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


@cache
def _shipped_values(sections: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for file, section in sections:
        loaded = yaml.load((conf_dir() / file).read_text(encoding="utf-8"), Loader=_HydraLoader)
        values |= {
            key: loaded.get(value[2:-1]) if str(value).startswith("${") else value  # batching.seed: ${seed}
            for key, value in reduce(getitem, section.split(".") if section else [], loaded).items()
        }
    return values


S = typing.TypeVar("S", bound=Settings)


def check(declared: type[S], values: Mapping[str, Any], prefix: str = "") -> S:
    """The values as settings. ConfigError, in one line, for the first that is wrong."""
    try:
        return declared.model_validate(dict(values))
    except ValidationError as error:
        raise ConfigError(_one_line(declared, values, error.errors()[0], prefix)) from None


def check_arguments(target: Callable[..., Any], values: Mapping[str, Any], prefix: str) -> None:
    """ConfigError where settings do not fit the annotations of the constructor of a user's own class."""
    fields: dict[str, Any] = {}
    hints = typing.get_type_hints(target.__init__ if inspect.isclass(target) else target)
    for name, parameter in inspect.signature(target).parameters.items():
        kind = hints.get(name, Any)
        if name in values and kind in (int, float, bool, str, int | None, float | None, str | None):
            fields[name] = (kind, parameter.default if parameter.default is not parameter.empty else ...)
    given = {name: values[name] for name in fields}
    check(create_model("Own", __base__=Settings, **fields), given, prefix)


class Declared(NamedTuple):
    """A setting with its full name, and the class that a choice of the group selects, if it is of one."""

    key: str
    field: FieldInfo
    target: str  # _target_ of the component; empty elsewhere
    schema: Mapping[str, Any]
    is_section: bool


def declared_settings(declared: type[Settings], prefix: str = "", target: str = "") -> Iterator[Declared]:
    """Every setting of a program or section, those of all classes of a component included."""
    for name, field in declared.model_fields.items():
        name = field.alias or name
        if name.startswith("_"):  # _target_ and its like
            continue
        key = f"{prefix}{name}"
        sections = sections_of(field)
        yield Declared(key, field, target, properties(declared)[name], bool(sections))
        for tag, section in sections:
            yield from declared_settings(section, f"{key}.", tag or target)


@cache
def properties(declared: type[Settings]) -> dict[str, Any]:
    """The JSON schema of each setting, by its key; `is_path` tells names of files from other text."""
    schemas = declared.model_json_schema().get("properties", {})
    paths = {field.alias or name: about(field).path for name, field in declared.model_fields.items()}
    return {key: {**schema, "is_path": paths[key]} for key, schema in schemas.items()}


def sections_of(field: FieldInfo) -> list[tuple[str, type[Settings]]]:
    """The sections that a field may hold, by their `_target_` where it says which."""
    sections = []
    members = [field.annotation]
    while members:
        member = members.pop()
        tags = [one.tag for one in getattr(member, "__metadata__", ()) if isinstance(one, Tag)]
        kind = typing.get_args(member)[0] if tags else member
        if inspect.isclass(kind) and issubclass(kind, Settings):
            sections += [(tags[0] if tags else "", kind)] if kind is not OwnComponent else []
        else:
            members += typing.get_args(member)
    return sections[::-1]


def section_for(field: FieldInfo, value: Any) -> type[Settings] | None:
    """The declared section of a value; None where it is no section, or a class of the user's own."""
    if typing.get_origin(field.annotation) is dict:  # sections by name: see section_of_part
        return None
    target = value.get("_target_", "") if isinstance(value, Mapping) else ""
    sections = dict(sections_of(field))
    return sections.get(target) or sections.get("")


def section_of_part(field: FieldInfo, value: Any) -> type[Settings] | None:
    """The declared section of one of the values of a dictionary of sections."""
    for choice in typing.get_args(field.annotation)[1:]:
        for one in getattr(choice, "__metadata__", ()):
            if isinstance(one, Discriminator) and callable(one.discriminator):
                return dict(sections_of(field)).get(str(one.discriminator(value)))
    return None


def _one_line(declared: type[Settings], values: Mapping[str, Any], error: Any, prefix: str) -> str:
    """key=value: what would be right."""
    if error["type"] == "value_error":
        return str(error["ctx"]["error"])
    names: list[str] = []
    section: type[Settings] | None = declared
    field: FieldInfo | None = None
    value: Any = values
    for part in error["loc"]:
        by_key = {(one.alias or name): one for name, one in section.model_fields.items()} if section else {}
        if part in by_key and section is not None:
            field = by_key[part]
            value = value.get(part) if isinstance(value, Mapping) else None
            names, schema = [*names, part], properties(section)[part]
            section = section_for(field, value)
        elif section is None and field and isinstance(value, Mapping) and part in value:  # a part of a mixture
            names, value = [*names, part], value[part]
            section, schema = section_of_part(field, value), schema.get("additionalProperties", schema)
        elif error["type"] == "extra_forbidden" and part == error["loc"][-1]:
            names, value = [*names, str(part)], error["input"]
    key = prefix + ".".join(names)
    if error["type"] == "extra_forbidden":
        if isinstance(value, Mapping) and "_target_" in value:
            return f"{key}: what is chosen here has none; leave {names[-1]}=NAME away, or choose another {names[0]}"
        known = [one.key for one in declared_settings(declared, prefix)]
        known += [f"{key.rpartition('.')[0]}.{name}" for name in section.model_fields] if section else []
        near = difflib.get_close_matches(key, known, n=1)
        return f"there is no setting {key} here" + (f"; did you mean {near[0]}?" if near else "")
    is_missing = error["type"] == "missing" and value is None
    if field is None:
        return f"{key or 'the configuration'}: a group of settings is needed, not {shown(value)}"
    parts = sections_of(field)
    options = sorted(path.stem for path in (conf_dir() / names[-1]).glob("*.yaml") if _fills_its_section(path))
    if parts and options and not isinstance(value, Mapping):
        wrong = f"{key} is missing" if is_missing else f"{key}={shown(value)}"
        return f"{wrong}: choose {names[-1]}=NAME, one of: {', '.join(options)}"
    if is_missing:
        return f"{key} is missing: give {accepted(schema)}"
    if parts and not isinstance(value, Mapping):
        names = [name for name in parts[0][1].model_fields if name not in Component.model_fields]
        examples = ", ".join(f"{key}.{name}=..." for name in names[:2])
        return f"{key}={shown(value)}: it is a group of settings" + (f": {examples}" if examples else "")
    most = error.get("ctx", {}).get("le", 0)
    return f"{key}={shown(value)}: give {accepted(schema)}" + (f", at most {most:,.10g}" if most >= UNBOUNDED else "")


def _fills_its_section(path: Path) -> bool:
    """Not so attention=multihead: its one setting is at the top level."""
    text = path.read_text(encoding="utf-8")
    return "@package _global_" not in text or "_target_:" in text or "defaults:" in text


def shown(value: Any) -> str:
    """A value as it is written on the command line."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, list | tuple):
        return f"[{','.join(shown(item) for item in value)}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {shown(item)}' for key, item in value.items())}}}"
    return str(value)


def is_text(schema: Mapping[str, Any]) -> bool:
    """Whether values are names or texts, single or in lists, whatever characters they hold."""
    kinds = {choice.get("type") for choice in schema.get("anyOf") or [schema]}
    return (
        "string" in kinds
        and kinds <= {"string", "array", "null"}
        and not {"enum", "pattern", "const"} & {key for choice in schema.get("anyOf") or [schema] for key in choice}
    )


def accepted(schema: Mapping[str, Any]) -> str:
    """The values of a JSON schema in words: a whole number from 1 to 256, or null."""
    if schema.get("is_path"):
        nothing = " or null" if {"type": "null"} in schema.get("anyOf", []) else ""
        several = ", a list of such names" if any(one.get("type") == "array" for one in schema.get("anyOf", [])) else ""
        return f"the name of a file or folder{several}{nothing}"
    choices = schema.get("anyOf") or [schema]
    words = [text for text in map(_accepted_alone, choices) if text]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _accepted_alone(schema: Mapping[str, Any]) -> str:
    if "const" in schema or "enum" in schema:
        *most, last = [shown(value) for value in schema.get("enum", [schema.get("const")])]
        return f"{', '.join(most)} or {last}" if most else last
    kind = schema.get("type")
    if kind == "string":
        if "pattern" in schema:
            return str(schema.get("description"))
        return "text"
    if kind == "array":
        return f"a list of {accepted(schema.get('items', {}))}"
    if kind in ("integer", "number"):
        return ("a whole number" if kind == "integer" else "a number") + _range(schema)
    return {"boolean": "true or false", "null": "null"}.get(str(kind), "a group of settings")


def _range(schema: Mapping[str, Any]) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if high is not None and high >= UNBOUNDED and low is not None:
        return f", {low:,} or more"
    first = f" from {low:,.10g}" if low is not None else f" above {above:,.10g}" if above is not None else ""
    if high is not None and high >= UNBOUNDED:
        return first
    last = f" to {high:,.10g}" if high is not None else f" to below {below:,.10g}" if below is not None else ""
    return first + last
