"""Entry of every program: Hydra composes the settings, their declarations check them, and errors leave as one line.

Below a program there are only objects and plain values.
"""

import atexit
import difflib
import io
import os
import re
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from functools import cache, wraps
from pathlib import Path
from typing import Any, NamedTuple

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from nmt import __version__
from nmt.cli_help import print_help
from nmt.errors import ConfigError, Interrupted, ModelError, UserError
from nmt.files import printable
from nmt.progress import say
from nmt.provenance import DISTRIBUTION
from nmt.schema import Declared, check, conf_dir, declared_settings, is_text
from nmt.settings import PROGRAMS
from nmt.training_settings import TrainConfig

SWEPT_KEYS = "NMT_SWEPT_KEYS"  # environment of a sweep's jobs: the settings in which they differ
VALUE_FLAGS = {"--cfg", "-c", "--package", "-p", "--config-name", "-cn", "--config-dir", "-cd", "--info", "-i"}
PLAIN_FLAGS = {"--help", "-h", "--hydra-help", "--version", "--multirun", "-m", "--run", "-r", "--resolve"}


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
    failures: list[tuple[str, int]] = []
    closed_pipe = False

    def task(cfg: DictConfig) -> None:
        nonlocal closed_pipe
        try:
            main(composed(name, cfg))
        except BrokenPipeError:  # the reader (head, less) has gone; nothing is wrong
            closed_pipe = True
        except (UserError, HydraException, OmegaConfBaseException) as error:
            hydra_config = HydraConfig.get()
            say(f"error: {error_line(error, name)}")
            if hydra_config.mode != RunMode.MULTIRUN:
                failures.append(("", _code(error)))
                return
            failures.append((f"job {hydra_config.job.num} ({', '.join(hydra_config.overrides.task)})", _code(error)))
            raise  # an ordinary exception: the jobs after this one still run
        except OSError as error:  # a full disk, a name that is too long (some of Hydra's are OSErrors too)
            say(f"error: {error_line(error, name)}")
            failures.append(("", 1))
            closed_pipe = error.filename is None
        except Exception as error:
            failures.append(("", _report_fault(error)))

    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal of another encoding loses no table
    try:
        arguments = [readable_override(argument) for argument in _require_overrides(sys.argv[1:], name)]
        if "--version" in arguments:
            print(f"{DISTRIBUTION} {__version__}")
            return 0
        if set(arguments) & {"--help", "-h"}:
            print_help(name, _with_an_experiment(name, arguments))
            return 0
        sys.argv[1:] = _for_sweep(_with_an_experiment(name, arguments))
        OmegaConf.register_new_resolver("nmt.scratch", _scratch, replace=True, use_cache=True)
        # oneDNN keeps a kernel for each shape of a bf16 product, 1,024 of them by default: gigabytes, and no faster
        os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")
        os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra raises instead of printing and exiting: we print one line
        hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name=name)(task)()
    except KeyboardInterrupt as error:
        say("interrupted")
        return error.code if isinstance(error, Interrupted) else 130
    except BrokenPipeError:
        closed_pipe = True
    except (UserError, HydraException, OmegaConfBaseException) as error:
        if not failures:
            say(f"error: {error_line(error, name)}")
            return _code(error)
    except Exception as error:
        return _report_fault(error)
    if closed_pipe:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that no flush at exit fails again
    if failures and _is_sweep(sys.argv):
        say(f"error: {len(failures)} of the jobs failed: " + "; ".join(job for job, _ in failures))
    return max((code for _, code in failures), default=0)


def composed(name: str, cfg: DictConfig) -> Composed:
    """The checked settings of a program. ConfigError for a wrong value, before anything is read or written."""
    missing = [str(key) for key in OmegaConf.missing_keys(cfg)]
    if missing:
        raise ConfigError(f"{missing[0]}=... is needed")
    config: dict[str, Any] = OmegaConf.to_container(cfg, resolve=True)  # type: ignore[assignment]
    hydra_config = HydraConfig.get()
    keys = os.environ.get(SWEPT_KEYS, "").split() if hydra_config.mode == RunMode.MULTIRUN else []
    swept = [one for one in hydra_config.overrides.task if _key_of(one) in keys]
    settings = check(PROGRAMS[name], config)
    typed = frozenset(_key_of(one) for one in hydra_config.overrides.task)
    return Composed(settings, config, dict(hydra_config.runtime.choices), tuple(swept), typed, _trusted(settings))


def _trusted(settings: Any) -> tuple[str, ...]:
    """What the user vouches for: trust=, and the classes named in a --config-dir of their own."""
    named = getattr(settings, "trust", None) or []
    trusted = [named] if isinstance(named, str) else list(named)
    folders = [sys.argv[n + 1] for n, flag in enumerate(sys.argv[:-1]) if flag in ("--config-dir", "-cd")]
    for path in (path for folder in folders for path in Path(folder).rglob("*.yaml")):
        trusted += re.findall(r"^\s*_target_:\s*([\w.]+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    return tuple(trusted)


def _report_fault(error: Exception) -> int:
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


def _code(error: BaseException) -> int:
    user_error = _user_error(error)
    return user_error.code if user_error else ConfigError.code


def _user_error(error: BaseException | None) -> UserError | None:
    """Our own error, also where Hydra's `instantiate` has wrapped it."""
    while error is not None and not isinstance(error, UserError):
        error = error.__cause__ or error.__context__
    return error


def _is_sweep(arguments: Sequence[str]) -> bool:
    return "-m" in arguments or "--multirun" in arguments


def _for_sweep(arguments: list[str]) -> list[str]:
    """Tells the jobs of a sweep, whatever launcher starts them, in which settings they differ."""
    if not _is_sweep(arguments):
        return arguments
    overrides = [one for one in arguments if "=" in one and not one.startswith("-")]
    parsed = OverridesParser.create().parse_overrides(overrides)
    keys = [one.key_or_group for one in parsed if one.is_sweep_override() and not one.is_hydra_override()]
    return [*arguments, f'+hydra.job.env_set.{SWEPT_KEYS}="{" ".join(keys)}"']


def _with_an_experiment(name: str, arguments: list[str]) -> list[str]:
    """Help and --cfg work without an experiment: they show those of bahdanau."""
    shows = {"--help", "-h", "--cfg", "-c", "--info", "-i"} & set(arguments)
    is_chosen = any(argument.startswith("experiment=") for argument in arguments)
    return [*arguments, "experiment=bahdanau"] if name == "train" and shows and not is_chosen else arguments


def _scratch() -> str:
    """A temporary folder: Hydra's sweeper wants one to write multirun.yaml to."""
    path = tempfile.mkdtemp(prefix="nmt-sweep-")
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def _require_overrides(arguments: Sequence[str], name: str) -> list[str]:
    """ConfigError, with what to type, for a word that is no key=value and for a flag of another program's style."""
    takes_value = False
    for index, argument in enumerate(arguments):
        if takes_value or argument in VALUE_FLAGS:
            takes_value = argument in VALUE_FLAGS and not takes_value
        elif argument.startswith("-"):
            flag = argument.split("=", 1)[0]
            if flag not in VALUE_FLAGS | PLAIN_FLAGS and not flag.startswith(("-sc", "--shell", "--experimental")):
                following = arguments[index + 1] if index + 1 < len(arguments) else "..."
                value = argument.split("=", 1)[1] if "=" in argument else following
                raise ConfigError(f"{flag}: settings are written key=value, {_meant_key(flag, name)}={value}")
        elif "=" not in argument and not argument.startswith("~"):
            groups = sorted({path.parent.name for path in conf_dir().rglob(f"{argument}.yaml")} - {conf_dir().name})
            meant = " or ".join(f"{group}={argument}" for group in ({"experiment"} & {*groups} or groups))
            if not meant and "checkpoint" in PROGRAMS[name].model_fields:
                meant = f"checkpoint={argument}"
            raise ConfigError(
                f"{argument}: settings are written key=value; " + (f"did you mean {meant}?" if meant else "see --help")
            )
        elif not _is_sweep(arguments):
            _require_choice(argument)
    return list(arguments)


def _require_choice(argument: str) -> None:
    """ConfigError where a group is given anything but a name."""
    folder = conf_dir() / _key_of(argument)
    value = argument.partition("=")[2]
    is_name = re.fullmatch(r"[A-Za-z][\w-]*(/[\w-]+)*", value.strip("\"'")) and value not in (
        "null",
        "None",
        "true",
        "false",
    )
    if folder.is_dir() and not is_name:
        names = sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.yaml"))
        raise ConfigError(f"{argument}: choose {folder.name}=NAME, one of: {', '.join(names)}")


def _meant_key(flag: str, name: str) -> str:
    """--max-updates -> training.max_updates"""
    word = flag.lstrip("-").replace("-", "_")
    keys = [one.key for one in declared_settings(PROGRAMS[name])]
    last = {key.split(".")[-1]: key for key in reversed(keys)}
    near = [word] if word in last or word in keys else difflib.get_close_matches(word, last, n=1)
    return last.get(near[0], near[0]) if near else word


def _key_of(argument: str) -> str:
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
        return f"{key}=null"
    if value != "null" and _is_text_key(_key_of(argument)) and not _is_structured(value):
        return f"{key}={_quoted(value)}"
    try:
        OverridesParser.create().parse_override(argument)
    except HydraException:
        suggestion = f"{key}={_quoted(value)}".replace("'", "'\\''")
        raise ConfigError(
            f"{key}={value} cannot be read; quote the value, and the whole for the shell: '{suggestion}'"
        ) from None
    return argument


@cache
def _every_setting() -> dict[str, list[tuple[str, Declared]]]:
    """Every key, with the programs that have it."""
    settings: dict[str, list[tuple[str, Declared]]] = {}
    for name, declared in PROGRAMS.items():
        for one in declared_settings(declared):
            settings.setdefault(one.key, []).append((name, one))
    return settings


@cache
def _is_text_key(key: str) -> bool:
    """Whether its values are names or texts, whatever characters they hold; also of a part of a mixture."""
    settings = _every_setting()
    if key in settings:
        return all(is_text(declared.schema) for _, declared in settings[key])
    alike = [
        declared
        for known, owners in settings.items()
        for _, declared in owners
        if known.endswith(f".{key.split('.')[-1]}")
    ]
    return "." in key and bool(alike) and all(is_text(declared.schema) for declared in alike)


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
    return "," in value and _is_sweep(sys.argv)


def _quoted(value: str) -> str:
    escaped = re.sub(r'(\\*)"', r'\1\1\\"', value)  # the grammar: backslashes count only before a quote
    trailing = len(escaped) - len(escaped.rstrip("\\"))
    return f'"{escaped}{chr(92) * trailing}"'


def error_line(error: BaseException, name: str) -> str:
    """The message on one line; for an unknown key, the nearest declared one."""
    if isinstance(error, OSError) and not isinstance(error, HydraException):
        return f"{error.filename or 'writing'}: {error.strerror or error}"
    user_error = _user_error(error)
    text = " ".join(str(user_error or error).split())
    if isinstance(user_error, ModelError):
        return _with_full_keys(text)
    unknown = re.search(r"Could not (?:override|append|delete) '([^']*)'|is not in struct full_key: (\S+)", text)
    if unknown:
        return _unknown_key(unknown[1] or unknown[2], name)
    missing = re.search(r"You must specify '(\w+)', e\.g, \w+=<OPTION> Available options: (.*)", text)
    if missing:
        return f"choose {missing[1]}=NAME, one of: {', '.join(missing[2].split())}"
    absent = re.search(
        r"Could not find '([\w-]+/)?(\S+)' Available options in '([\w/-]+)': (.*?)(?: Config search|$)", text
    )
    if absent:
        return f"there is no {absent[3]}={absent[2].split('/')[-1]}; one of: {', '.join(absent[4].split())}"
    variable = re.search(r"Environment variable '(\w+)' not found", text)
    if variable:
        return f"the environment variable {variable[1]} is not set; set it, or give a plain value"
    return text


def _with_full_keys(text: str) -> str:
    """heads=3 does not divide embedding_size=64 -> model.heads=3 does not divide model.embedding_size=64.

    Models know their arguments, not the keys. What is a key or a group by itself (attention=dot) stays as it is.
    """
    keys: dict[str, str] = {}
    for setting in declared_settings(TrainConfig):
        argument = setting.key.rpartition(".")[2]
        is_key = argument in TrainConfig.model_fields or (conf_dir() / argument).is_dir()
        if setting.key.startswith("model.") and not is_key:
            keys[argument] = min(keys.get(argument, setting.key), setting.key, key=lambda key: key.count("."))
    names = r"(?<![\w.@])([a-z]+(?==)|[a-z]+(?:_[a-z]+)+)\b"  # a word in prose is no name
    return re.sub(names, lambda name: keys.get(name[0], name[0]), text)


def _unknown_key(key: str, name: str) -> str:
    settings = _every_setting()
    if key in settings:
        owners = [
            f"{one.key.rsplit('.', 1)[0].split('.')[-1]}={_option(one)}" if one.target else f"nmt {owner}"
            for owner, one in settings[key]
        ]
        return f"what is chosen here has no setting {key}; it belongs to {' or '.join(dict.fromkeys(owners))}"
    near = difflib.get_close_matches(key, settings, n=1)
    hint = f"did you mean {near[0]}?" if near else f"see python -m nmt.{name} --help"
    return f"there is no setting {key}; {hint}"


def _option(declared: Declared) -> str:
    """The choice of a group that builds the class which has a setting: luong."""
    for path in sorted(conf_dir().rglob("*.yaml")):
        if re.search(rf"^\s*_target_: {re.escape(declared.target)}$", path.read_text(encoding="utf-8"), re.MULTILINE):
            return path.stem
    return declared.target.rsplit(".", 1)[-1]
