"""The door of every program: Hydra comes in here, and errors go out as one line.

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
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from nmt.errors import ConfigError, UserError, require_flag, require_text
from nmt.progress import say

# Values of these keys are names of files, directories or words, whatever characters they hold.
_TEXT_KEY = re.compile(
    r"\+*(?:(?:[\w.]*\.)?(?:run_dir|data_dir|init_from|checkpoint|input|output|root|sentence|hypotheses|references|"
    r"source|src|ref|attention_out|alignment_out|alignment\.(?:gold|links)|path|prepared|cache_dir|evaluate\.test|test\.name|target_language|baseline|"
    r"(?:train|valid|test)_(?:src|tgt|split)))$"
)


def conf_dir() -> str:
    """The configuration shipped with the program: inside the wheel, or beside the package in a checkout."""
    package = Path(__file__).resolve().parent
    inside = package / "conf"
    return str(inside if inside.is_dir() else package.parent / "conf")


def program(name: str) -> Callable[[Callable[[DictConfig], None]], Callable[[], None]]:
    """Decorate a program's main(cfg) with conf/<name>.yaml, readable errors and exit codes 0, 1, 2 or 130."""

    def decorate(main: Callable[[DictConfig], None]) -> Callable[[], None]:
        def entry() -> None:
            sys.exit(_run(name, main))

        return entry

    return decorate


def _run(name: str, main: Callable[[DictConfig], None]) -> int:
    failures: list[tuple[str, int]] = []
    closed_pipe = False

    def task(cfg: DictConfig) -> None:
        nonlocal closed_pipe
        try:
            main(cfg)
        except BrokenPipeError:  # the reader (head, less) has gone; nothing is wrong
            closed_pipe = True
        except (UserError, HydraException, OmegaConfBaseException) as error:
            about = HydraConfig.get()
            say(f"error: {_one_line(error)}")
            if about.mode != RunMode.MULTIRUN:
                failures.append(("", _code(error)))
                return
            failures.append((f"job {about.job.num} ({', '.join(about.overrides.task)})", _code(error)))
            raise  # an ordinary exception: the jobs after this one still run
        except OSError as error:  # a full disk, a name that is too long (some of Hydra's are OSErrors too)
            say(f"error: {error.filename or 'writing'}: {error.strerror or error}")
            failures.append(("", 1))
            closed_pipe = error.filename is None

    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal of another encoding loses no table
    try:
        sys.argv[1:] = [readable_override(argument) for argument in sys.argv[1:]]
        OmegaConf.register_new_resolver("nmt.scratch", _scratch, replace=True, use_cache=True)
        # one kernel is kept for each shape of a bf16 product, 1,024 of them by default: gigabytes, and no faster
        os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")
        os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra raises instead of printing and exiting: we print one line
        hydra.main(version_base="1.3", config_path=conf_dir(), config_name=name)(task)()
    except KeyboardInterrupt:
        say("interrupted")
        return 130
    except (UserError, HydraException, OmegaConfBaseException) as error:
        if not failures:
            say(f"error: {_one_line(error)}")
            return _code(error)
    if closed_pipe:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that no flush at exit fails again
    if failures and _sweeps(sys.argv):
        say(f"error: {len(failures)} of the jobs failed: " + "; ".join(job for job, _ in failures))
    return max((code for _, code in failures), default=0)


def _code(error: BaseException) -> int:
    user_error = _user_error(error)
    return user_error.code if user_error else ConfigError.code


def _user_error(error: BaseException | None) -> UserError | None:
    """Our own error, also where Hydra's `instantiate` has wrapped it."""
    while error is not None and not isinstance(error, UserError):
        error = error.__cause__ or error.__context__
    return error


def _sweeps(arguments: Sequence[str]) -> bool:
    return "-m" in arguments or "--multirun" in arguments


def _scratch() -> str:
    """A folder that goes away: Hydra's sweeper wants one to write multirun.yaml to."""
    path = tempfile.mkdtemp(prefix="nmt-sweep-")
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def require_kinds(cfg: DictConfig, texts: Sequence[str], flags: Sequence[str]) -> None:
    """ConfigError for a list where one name belongs, or a word where true or false does."""
    for key in texts:
        require_text(key, OmegaConf.select(cfg, key))
    for key in flags:
        require_flag(key, OmegaConf.select(cfg, key))


def readable_override(argument: str) -> str:
    """The argument as Hydra's grammar reads it. ConfigError with the text to type where it cannot be read.

    Names of files and directories are quoted here, so that `données.en`, `fr#1.fr` or a folder called
    20261129 need no quotes of the user's; `None` and nothing are read as null.
    """
    if argument.startswith("-") or "=" not in argument:
        return argument
    key, value = argument.split("=", 1)
    if value in ("None", ""):
        return f"{key}=null"
    if _TEXT_KEY.match(key) and value != "null" and not _is_structured(value):
        return f"{key}={_quoted(value)}"
    try:
        OverridesParser.create().parse_override(argument)
    except HydraException:
        suggestion = f"{key}={_quoted(value)}".replace("'", "'\\''")
        raise ConfigError(
            f"{key}={value} cannot be read; quote the value, and the whole for the shell: '{suggestion}'"
        ) from None
    return argument


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
    return "," in value and _sweeps(sys.argv)


def _quoted(value: str) -> str:
    escaped = re.sub(r'(\\*)"', r'\1\1\\"', value)  # the grammar: backslashes count only before a quote
    trailing = len(escaped) - len(escaped.rstrip("\\"))
    return f'"{escaped}{chr(92) * trailing}"'


def _one_line(error: BaseException) -> str:
    """The message on one line; for an unknown key, the nearest known one."""
    text = " ".join(str(_user_error(error) or error).split())
    unknown = re.search(r"Could not (?:override|append|delete) '([^']*)'|is not in struct full_key: (\S+)", text)
    if unknown:
        full_key = unknown[1] or unknown[2]
        known = _known_keys()
        if full_key in known:
            return f"what is chosen here has no setting {full_key}; it belongs to {' or '.join(known[full_key])}"
        near = difflib.get_close_matches(full_key, known, n=1)
        hint = f"did you mean {near[0]}?" if near else "see --cfg job for the keys there are"
        return f"there is no setting {full_key}; {hint}"
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


def _known_keys() -> dict[str, list[str]]:
    """Every dotted key of the shipped configuration, and the choices or programs that have it: ["model=luong"]."""
    keys: dict[str, list[str]] = {}
    root = Path(conf_dir())
    for path in sorted(root.rglob("*.yaml")):
        loaded: Any = OmegaConf.to_container(OmegaConf.load(path), resolve=False)
        if not isinstance(loaded, dict):
            continue
        first = path.read_text(encoding="utf-8").split("\n", 1)[0]
        package = "" if path.parent == root or "_global_" in first else path.parent.relative_to(root).as_posix()
        if declared := re.match(r"# @package ([\w.]+)", first):
            package = "" if declared[1] == "_global_" else declared[1]
        place = path.relative_to(root)
        if place.parts[0] == "experiment":  # it sets what others have
            continue
        owner = f"{place.parent.as_posix()}={path.stem}" if path.parent != root else f"nmt.{path.stem}"
        for key in _flat(loaded, package.replace("/", ".")):
            keys.setdefault(key, []).append(owner)
    return keys


def _flat(tree: dict[str, Any], prefix: str) -> list[str]:
    keys = []
    for key, value in tree.items():
        if key in ("defaults", "hydra") or str(key).startswith("_"):
            continue
        name = f"{prefix}.{key}" if prefix else str(key)
        keys += _flat(value, name) if isinstance(value, dict) else [name]
    return keys
