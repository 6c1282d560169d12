"""Entry of every program: Hydra composes the settings, their declarations check them, and errors leave as one line.

Below a program there are only objects and plain values.
"""

import argparse
import difflib
import io
import os
import re
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from functools import cache, wraps
from pathlib import Path
from typing import Any, NamedTuple

import hydra
from hydra._internal.utils import get_args_parser
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException, MissingConfigException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException

from nmt import __version__
from nmt.cli_help import options_of, print_help
from nmt.errors import ConfigError, Interrupted, ModelError, UserError
from nmt.files import printable
from nmt.progress import say
from nmt.provenance import DISTRIBUTION
from nmt.schema import Declared, check, conf_dir, declared_settings, is_text
from nmt.settings import PROGRAMS
from nmt.training_settings import TrainConfig

SWEPT_KEYS = "NMT_SWEPT_KEYS"  # environment of a sweep's jobs: the settings in which they differ


class Composed(NamedTuple):
    """What a program is started with."""

    settings: Any  # the declared class of the program
    config: dict[str, Any]  # the same as plain values, as config.yaml keeps them
    choices: dict[str, str]  # of the groups: model=bahdanau, ...
    swept: tuple[str, ...]  # in a sweep the overrides in which its jobs differ
    typed: frozenset[str] = frozenset()  # the keys on the command line
    trust: tuple[str, ...] = ()  # classes and modules whose code a run may bring along


def program(name: str) -> Callable[[Callable[[Composed], None]], Callable[[], None]]:
    """Decorate a program's main with conf/<name>.yaml, checked settings, readable errors, exit codes 0, 1, 2 or 130."""

    def decorate(main: Callable[[Composed], None]) -> Callable[[], None]:
        @wraps(main)
        def entry() -> None:
            sys.exit(_run_program(name, main))

        return entry

    return decorate


def _run_program(name: str, main: Callable[[Composed], None]) -> int:
    codes: list[int] = []
    failed_jobs: list[str] = []
    config_dir: str | None = None

    def task(cfg: DictConfig) -> None:
        try:
            main(composed(name, cfg, config_dir))
        except Exception as error:
            codes.append(_end(error, name))
            job = HydraConfig.get()
            if job.mode == RunMode.MULTIRUN and codes[-1]:
                failed_jobs.append(f"job {job.job.num} ({', '.join(job.overrides.task)})")
                raise  # the jobs after this one still run

    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal of another encoding loses no table
    try:
        if "--version" in sys.argv[1:]:
            print(f"{DISTRIBUTION} {__version__}")
            return 0
        options, flags = _parse_arguments(sys.argv[1:], name)
        config_dir = options.config_dir
        if options.help:
            print_help(name, options.overrides, config_dir)
            return 0
        if options.multirun:  # Hydra's sweeper wants a folder for its multirun.yaml
            scratch = tempfile.TemporaryDirectory(prefix="nmt-sweep-")
            options.overrides.insert(0, f'hydra.sweep.dir="{scratch.name}"')
        sys.argv[1:] = [*options.overrides, *flags]
        # oneDNN keeps a kernel for each shape of a bf16 product, 1,024 of them by default: gigabytes, and no faster
        os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")
        os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra raises instead of printing and exiting: we print one line
        hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name=name)(task)()
    except (KeyboardInterrupt, Exception) as error:
        if not codes or isinstance(error, KeyboardInterrupt):
            return _end(error, name)
    if failed_jobs:
        say(f"error: {len(failed_jobs)} of the jobs failed: {'; '.join(failed_jobs)}")
    return max(codes, default=0)


def composed(name: str, cfg: DictConfig, config_dir: str | None = None) -> Composed:
    """The checked settings of a program. ConfigError for a wrong value, before anything is read or written.

    `config_dir` is the --config-dir of the user's own, who vouches for the classes it names.
    """
    for key in OmegaConf.missing_keys(cfg):
        raise ConfigError(f"{key}=... is needed")
    config: dict[str, Any] = OmegaConf.to_container(cfg, resolve=True)  # type: ignore[assignment]
    job = HydraConfig.get()
    keys = os.environ.get(SWEPT_KEYS, "").split() if job.mode == RunMode.MULTIRUN else []
    typed = {override: key_of(override) for override in job.overrides.task}
    swept = tuple(override for override, key in typed.items() if key in keys)
    settings = check(PROGRAMS[name], config)
    trust = getattr(settings, "trust", None) or []
    trust = [trust] if isinstance(trust, str) else [*trust]
    for path in Path(config_dir).rglob("*.yaml") if config_dir else ():
        trust += re.findall(r"^\s*_target_:\s*([\w.]+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    return Composed(settings, config, dict(job.runtime.choices), swept, frozenset(typed.values()), tuple(trust))


def _end(error: BaseException, name: str) -> int:
    """Say in one line what has ended the program. Its exit code."""
    if isinstance(error, KeyboardInterrupt):
        say("interrupted")
        return error.code if isinstance(error, Interrupted) else 130
    is_foreign = isinstance(error, HydraException | OmegaConfBaseException)
    if isinstance(error, OSError) and not is_foreign and error.filename is None:  # a reader has gone, a disk is full
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that no flush at exit fails again
    if isinstance(error, BrokenPipeError):  # of head or less; nothing is wrong
        return 0
    if not is_foreign and not isinstance(error, UserError | OSError):
        return _report_fault(error)
    say(f"error: {error_line(error, name)}")
    user_error = _user_error(error)
    return user_error.code if user_error else ConfigError.code if is_foreign else UserError.code


def _report_fault(error: BaseException) -> int:
    """One line for what nobody foresaw; the traceback goes into a file for the report."""
    file = Path(tempfile.gettempdir(), f"nmt-error-{os.getpid()}.txt")
    text = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    try:
        file.write_text("".join(traceback.format_exception(error)), encoding="utf-8", errors="backslashreplace")
        where = f"the traceback is in {file}"
    except OSError:
        where = "the traceback could not be written"
    say(f"error: {printable(text)}; a fault of the program: {where}; report it with what python -m nmt prints")
    return 1


def _user_error(error: BaseException | None) -> UserError | None:
    """Our own error, also where Hydra's `instantiate` has wrapped it."""
    while error is not None and not isinstance(error, UserError):
        error = error.__cause__ or error.__context__
    return error


# ---- the command line


def _parse_arguments(arguments: Sequence[str], name: str) -> tuple[argparse.Namespace, list[str]]:
    """Hydra's options with the overrides among them as its grammar reads them, and what is typed beside overrides.

    ConfigError, with what to type, for a word that is no key=value and for a flag of another program's style.
    """
    parser = get_args_parser()
    parser.allow_abbrev = False
    options, unknown = parser.parse_known_args(arguments)
    for flag in (argument for argument in unknown if argument.startswith("-")):
        key, is_given, value = flag.partition("=")
        following = [*arguments, "..."][arguments.index(flag) + 1]
        raise ConfigError(
            f"{key}: settings are written key=value, {_meant_key(key, name)}={value if is_given else following}"
        )
    typed = [*options.overrides, *unknown]  # argparse knows no more of them after a flag
    for word in (argument for argument in typed if "=" not in argument and not argument.startswith("~")):
        groups = sorted({path.parent.name for path in conf_dir().rglob(f"{word}.yaml")} - {conf_dir().name})
        meant = " or ".join(f"{group}={word}" for group in ({"experiment"} & {*groups} or groups))
        if not meant and "checkpoint" in PROGRAMS[name].model_fields:
            meant = f"checkpoint={word}"
        hint = f"did you mean {meant}?" if meant else "see --help"
        raise ConfigError(f"{word}: settings are written key=value; {hint}")
    options.overrides = [readable_override(argument) for argument in typed]
    if options.multirun:  # its jobs, whatever launcher starts them, are told in which settings they differ
        parsed = OverridesParser.create().parse_overrides(options.overrides)
        keys = [one.key_or_group for one in parsed if one.is_sweep_override() and not one.is_hydra_override()]
        options.overrides.append(f'+hydra.job.env_set.{SWEPT_KEYS}="{" ".join(keys)}"')
    is_shown = options.help or options.cfg or options.info
    if name == "train" and is_shown and not any(one.startswith("experiment=") for one in options.overrides):
        options.overrides.append("experiment=bahdanau")
    return options, [argument for argument in arguments if argument not in typed]


def _meant_key(flag: str, name: str) -> str:
    """--max-updates -> training.max_updates"""
    word = flag.lstrip("-").replace("-", "_")
    keys = [one.key for one in declared_settings(PROGRAMS[name])]
    last = {key.split(".")[-1]: key for key in reversed(keys)} | {key: key for key in keys}
    return next((last[near] for near in difflib.get_close_matches(word, last, n=1)), word)


def key_of(argument: str) -> str:
    """+data.parts.news.train_src=a.en -> data.parts.news.train_src"""
    return re.split(r"[=@]", argument.lstrip("+~"), maxsplit=1)[0]


def readable_override(argument: str) -> str:
    """The argument as Hydra's grammar reads it. ConfigError with the text to type where it cannot be read.

    Names and texts are quoted here, so that `données.en`, `fr#1.fr` or a folder called 20261129 need no quotes of the
    user's; `None` and nothing are read as null.
    """
    if argument.startswith("-") or "=" not in argument:
        return argument
    key, value = argument.split("=", 1)
    if value in ("None", ""):
        value = "null"
    if value != "null" and _is_text_key(key_of(argument)) and not _is_structured(value):
        return f"{key}={_quoted(value)}"
    try:
        parsed = OverridesParser.create().parse_override(f"{key}={value}")
    except HydraException:
        suggestion = f"{key}={_quoted(value)}".replace("'", "'\\''")
        raise ConfigError(
            f"{key}={value} cannot be read; quote the value, and the whole for the shell: '{suggestion}'"
        ) from None
    is_name = parsed.is_sweep_override() or isinstance(parsed.value(), str)
    if not is_name and (conf_dir() / key_of(argument)).is_dir():  # optimizer=5: Hydra has a traceback for a number
        return f"{key}={_quoted(value)}"
    return f"{key}={value}"


@cache
def _every_setting() -> dict[str, list[tuple[str, Declared]]]:
    """Every key, with the programs that have it."""
    settings: dict[str, list[tuple[str, Declared]]] = {}
    for name, declared in PROGRAMS.items():
        for one in declared_settings(declared):
            settings.setdefault(one.key, []).append((name, one))
    return settings


def _is_text_key(key: str) -> bool:
    """Whether its values are names or texts, whatever characters they hold; also of a part of a mixture."""
    owners = _every_setting().get(re.sub(r"^data\.parts\.[^.]+\.", "data.parts.", key), [])
    return bool(owners) and all(is_text(declared.schema) for _, declared in owners)


def _is_structured(value: str) -> bool:
    """Already quoted, a readable list, or a sweep with -m."""
    if value[0] in "\"'" and value[-1] == value[0] and len(value) > 1:
        return True
    if value[0] == "[" and value[-1] == "]":
        try:
            OverridesParser.create().parse_override(f"key={value}")
        except HydraException:
            return False
        return True
    return "," in value and bool({"-m", "--multirun"} & {*sys.argv})


def _quoted(value: str) -> str:
    """In the grammar backslashes count only before a quote."""
    return '"' + re.sub(r'(\\*)("|$)', r"\1\1\2", value).replace('"', '\\"') + '"'


# ---- errors


def error_line(error: BaseException, name: str) -> str:
    """The message on one line; for an unknown key, the nearest declared one."""
    if isinstance(error, MissingConfigException) and error.options:
        group, _, choice = str(error.missing_cfg_file).rpartition("/")
        return f"there is no {group}={choice}; one of: {', '.join(error.options)}"
    if isinstance(error, OSError) and not isinstance(error, HydraException):
        return f"{error.filename or 'writing'}: {error.strerror or error}"
    user_error = _user_error(error)
    text = " ".join(str(user_error or error).split())
    if isinstance(user_error, ModelError):
        return _with_full_keys(text)
    for cause in (error, error.__cause__):
        if user_error is None and isinstance(cause, ConfigAttributeError | ConfigKeyError):
            return _unknown_key(str(cause.full_key), name)
    if missing := re.search(r"You must specify '(\w+)', e\.g, \w+=<OPTION> Available options: (.*)", text):
        return f"choose {missing[1]}=NAME, one of: {', '.join(missing[2].split())}"
    if variable := re.search(r"Environment variable '(\w+)' not found", text):
        return f"the environment variable {variable[1]} is not set; set it, or give a plain value"
    return text


def _with_full_keys(text: str) -> str:
    """heads=3 does not divide embedding_size=64 -> model.heads=3 does not divide model.embedding_size=64.

    Models know their arguments, not the keys. What is a key or a group by itself (attention=dot) stays as it is.
    """
    settings = reversed([one.key for one in declared_settings(TrainConfig) if one.key.startswith("model.")])
    keys = {key.rpartition(".")[2]: key for key in settings}
    for argument in [*keys]:
        if argument in TrainConfig.model_fields or (conf_dir() / argument).is_dir():
            del keys[argument]
    names = r"(?<![\w.@])([a-z]+(?==)|[a-z]+(?:_[a-z]+)+)\b"  # a word in prose is no name
    return re.sub(names, lambda name: keys.get(name[0], name[0]), text)


def _unknown_key(key: str, name: str) -> str:
    owners = [
        f"{key.split('.')[-2]}={options_of(one.target)[0]}" if one.target else f"nmt {owner}"
        for owner, one in _every_setting().get(key, [])
    ]
    if owners:
        return f"what is chosen here has no setting {key}; it belongs to {' or '.join(dict.fromkeys(owners))}"
    near = difflib.get_close_matches(key, _every_setting(), n=1)
    return f"there is no setting {key}; " + (f"did you mean {near[0]}?" if near else f"see nmt {name} --help")
