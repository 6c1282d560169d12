"""How settings are declared and checked: sections as pydantic models, and one readable line for a wrong value.

The declarations themselves stand in `settings.py`. pydantic checks what Hydra has composed before anything is read or
written. A class of the user's own declares its settings by the annotations of its constructor (`check_arguments`).
"""

from __future__ import annotations

import difflib
import inspect
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
    ModelWrapValidatorHandler,
    Tag,
    ValidationError,
    ValidatorFunctionWrapHandler,
    create_model,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from nmt.errors import ConfigError

UNBOUNDED = 10**9  # bounds from here on guard against overflow alone, and are not part of the help
SECTION = "\0"  # in a message the place of the section's own key, which only the sections above it know


class About(NamedTuple):
    """What a setting means beside its value."""

    path: bool = False  # names a file or folder; its content is compared by checksum, never its name
    resume: bool | frozenset[str] = False  # may change when a run is resumed; a set: among these values
    stored: bool = True  # belongs to the run and not to the machine: config.yaml keeps it
    fair: bool = False  # a fair comparison holds it equal


def setting(help: str, *, default: Any = ..., alias: str | None = None, **about: Any) -> Any:
    """A declared setting: its help, and what else it means; alias is its key where that is no name for an attribute."""
    extra: Any = {"about": About(**about), "is_path": about.get("path", False)}
    return Field(default, description=help, alias=alias, json_schema_extra=extra)


def about(field: FieldInfo) -> About:
    extra: Any = field.json_schema_extra or {}
    return extra.get("about", About())  # type: ignore[no-any-return]


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

    @model_validator(mode="wrap")
    @classmethod
    def _explain(cls, values: Any, check: ModelWrapValidatorHandler[Self]) -> Self:
        """The first error says what would be right; one of a section inside has said so already."""
        try:
            return check(values)
        except ValidationError as error:
            first: Any = error.errors()[0]
            if first["type"] in ("refused", "value_error") or first["loc"] in ((), ("_target_",)):
                raise  # to the section above this one, which knows the key
            raise PydanticCustomError("refused", "{text}", {"text": _refusal(cls, values, first)}) from None

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


class _Choice(NamedTuple):
    """Part of a field's annotation: the classes that it may hold, and which of them a value belongs to."""

    classes: Mapping[str, type[Component]]
    tag: Callable[[Any], str]


def one_of(classes: Mapping[str, type[Component]], untold: Callable[[Mapping[str, Any]], str] | None = None) -> Any:
    """The declared class that `_target_` names, or `untold` where there is none; any other is the user's own."""

    def tag(value: Any) -> str:
        name: Any = getattr(value, "target_class", None)
        if isinstance(value, Mapping):
            name = untold(value) if untold and "_target_" not in value else value.get("_target_")
        return name if isinstance(name, str) and name in classes else "own"

    union: Any = Annotated[OwnComponent, Tag("own")]
    for name, declared in classes.items():
        union = Annotated[declared, Tag(name)] | union  # type: ignore[valid-type]
    return Annotated[union, Discriminator(tag), _Choice(classes, tag)]


def optional(declared: type[Component]) -> type[Component]:
    """The same settings, where each may be left out: the constructor has a default."""
    fields: dict[str, Any] = {name: (field.annotation, copy(field)) for name, field in declared.model_fields.items()}
    for _, field in fields.values():
        field.default = None
    return create_model(f"Optional{declared.__name__}", __base__=declared, **fields)


def conf_dir() -> Path:
    """The configuration shipped with the program: inside the wheel, or beside the package in a checkout."""
    package = Path(__file__).resolve().parent
    return package / "conf" if (package / "conf").is_dir() else package.parent / "conf"


@cache
def _shipped_values(sections: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for file, section in sections:
        loaded = yaml.safe_load((conf_dir() / file).read_text(encoding="utf-8"))
        for key, value in reduce(getitem, section.split(".") if section else [], loaded).items():
            values[key] = loaded.get(value[2:-1]) if str(value).startswith("${") else value  # batching.seed: ${seed}
    return values


S = typing.TypeVar("S", bound=Settings)


def check(declared: type[S], values: Mapping[str, Any], prefix: str = "") -> S:
    """The values as settings. ConfigError, in one line, for the first that is wrong."""
    try:
        return declared.model_validate(dict(values))
    except ValidationError as error:
        first: Any = error.errors()[0]
    context = first.get("ctx", {})
    for part in first["loc"]:  # names of sections, and tags of classes
        if isinstance(values, Mapping) and part in values:
            prefix, values = f"{prefix}{part}.", values[part]
    raise ConfigError(str(context.get("error") or context.get("text", first["msg"]).replace(SECTION, prefix)))


def check_arguments(target: Callable[..., Any], values: Mapping[str, Any], prefix: str) -> None:
    """ConfigError where settings do not fit the annotations of the constructor of a user's own class."""
    hints = typing.get_type_hints(target.__init__ if inspect.isclass(target) else target)
    fields: dict[str, Any] = {
        name: (hints[name], ... if parameter.default is parameter.empty else parameter.default)
        for name, parameter in inspect.signature(target).parameters.items()
        if name in values and hints.get(name) in (int, float, bool, str, int | None, float | None, str | None)
    }
    check(create_model("Own", __base__=Settings, **fields), {name: values[name] for name in fields}, prefix)


class Declared(NamedTuple):
    """A setting with its full name, and the class that a choice of the group selects, if it is of one."""

    key: str
    field: FieldInfo
    target: str  # _target_ of the component; empty elsewhere
    schema: Mapping[str, Any]
    is_section: bool


def declared_settings(declared: type[Settings], prefix: str = "", target: str = "") -> Iterator[Declared]:
    """Every setting of a program or section, those of all classes of a component included."""
    for name, field in fields_of(declared).items():
        key, sections = f"{prefix}{name}", sections_of(field)
        yield Declared(key, field, target, properties(declared)[name], bool(sections))
        for tag, section in sections.items():
            yield from declared_settings(section, f"{key}.", tag or target)


def fields_of(declared: type[Settings]) -> dict[str, FieldInfo]:
    """The settings of a section by their keys, less _target_ and its like."""
    fields = {field.alias or name: field for name, field in declared.model_fields.items()}
    return {key: field for key, field in fields.items() if not key.startswith("_")}


@cache
def properties(declared: type[Settings]) -> dict[str, Any]:
    """The JSON schema of each setting, by its key; `is_path` tells names of files from other text."""
    return declared.model_json_schema().get("properties", {})  # type: ignore[no-any-return]


def sections_of(field: FieldInfo) -> dict[str, type[Settings]]:
    """The sections that a field may hold, by their `_target_` where it says which."""
    if inspect.isclass(field.annotation) and issubclass(field.annotation, Settings):
        return {"": field.annotation}
    choice = _choice(field)
    return dict(choice.classes) if choice else {}


def section_for(field: FieldInfo, value: Any) -> type[Settings] | None:
    """The declared section of a value; None where it is no section, or a class of the user's own."""
    choice = _choice(field)
    if choice is None:
        return sections_of(field).get("")
    return None if typing.get_origin(field.annotation) is dict else choice.classes.get(choice.tag(value))


def _choice(field: FieldInfo) -> _Choice | None:
    """Of a field that holds one of several sections, or a dictionary of such."""
    members = [one for part in typing.get_args(field.annotation) for one in getattr(part, "__metadata__", ())]
    return next((one for one in (*field.metadata, *members) if isinstance(one, _Choice)), None)


def _refusal(declared: type[Settings], values: Any, error: Any) -> str:
    """key=value: what would be right."""
    key, *inside = error["loc"]
    fields, value = fields_of(declared), values.get(key)
    if key not in fields:
        if isinstance(value, Mapping) and "_target_" in value:
            return f"{SECTION}{key}: what is chosen here has none; leave {key}=NAME away"
        near = difflib.get_close_matches(key, fields, n=1)
        return f"there is no setting {SECTION}{key} here" + (f"; did you mean {SECTION}{near[0]}?" if near else "")
    schema, sections = properties(declared)[key], list(sections_of(fields[key]).values())
    options = sorted(path.stem for path in (conf_dir() / key).glob("*.yaml") if _fills_its_section(path))
    if inside and isinstance(value, Mapping) and inside[0] in value:  # of a dictionary: data.weights.news
        key, value, schema = f"{key}.{inside[0]}", value[inside[0]], schema["additionalProperties"]
    is_missing = error["type"] == "missing" and not inside
    wrong = f"{SECTION}{key} is missing" if is_missing else f"{SECTION}{key}={shown(value)}"
    if sections and options:
        return f"{wrong}: choose {key}=NAME, one of: {', '.join(options)}"
    if sections:
        examples = ", ".join(f"{SECTION}{key}.{name}=..." for name in [*fields_of(sections[-1])][:2])
        return f"{wrong}: it is a group of settings" + (f": {examples}" if examples else "")
    most = error.get("ctx", {}).get("le", 0)
    return f"{wrong}: give {accepted(schema)}" + (f", at most {most:,.10g}" if most >= UNBOUNDED else "")


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


def alternatives(schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The schemas of a union, or the one there is."""
    return schema.get("anyOf") or [dict(schema)]


def is_text(schema: Mapping[str, Any]) -> bool:
    """Whether values are names or texts, single or in lists, whatever characters they hold."""
    kinds = {choice.get("type") for choice in alternatives(schema)}
    is_limited = any({"enum", "pattern", "const"} & choice.keys() for choice in alternatives(schema))
    return "string" in kinds and kinds <= {"string", "array", "null"} and not is_limited


def accepted(schema: Mapping[str, Any]) -> str:
    """The values of a JSON schema in words: a whole number from 1 to 256, or null."""
    if schema.get("is_path"):
        kinds = [choice.get("type") for choice in alternatives(schema)]
        several = ", a list of such names" if "array" in kinds else ""
        return f"the name of a file or folder{several}{' or null' if 'null' in kinds else ''}"
    *most, last = [_accepted_alone(choice) for choice in alternatives(schema)]
    return f"{', '.join(most)} or {last}" if most else last


def _accepted_alone(schema: Mapping[str, Any]) -> str:
    if "const" in schema or "enum" in schema:
        *most, last = [shown(value) for value in schema.get("enum", [schema.get("const")])]
        return f"{', '.join(most)} or {last}" if most else last
    kind = str(schema.get("type"))
    if kind == "array":
        return f"a list of {accepted(schema.get('items', {}))}"
    if kind in ("integer", "number"):
        return ("a whole number" if kind == "integer" else "a number") + _range(schema)
    words = {"boolean": "true or false", "null": "null", "string": "text"}
    return str(schema["description"]) if "pattern" in schema else words.get(kind, "a group of settings")


def _range(schema: Mapping[str, Any]) -> str:
    bounds = {word: schema[key] for word, key in _BOUNDS.items() if schema.get(key, UNBOUNDED) < UNBOUNDED}
    if [*bounds] == ["from"]:
        return f", {bounds['from']:,} or more"
    return "".join(f" {word} {bound:,.10g}" for word, bound in bounds.items())


_BOUNDS = {"from": "minimum", "above": "exclusiveMinimum", "to": "maximum", "to below": "exclusiveMaximum"}
