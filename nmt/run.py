"""A run on disk: its directory, its settings, and what a resume may change.

A run directory is started once and resumed with the same settings only; no absolute path is written into it.
"""

import json
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from filelock import FileLock, Timeout

from nmt.data.tokenizer import SOURCE_MODEL, TARGET_MODEL, Tokenizer
from nmt.errors import ConfigError, UserError
from nmt.files import CONTROLS, printable, read_json, read_yaml, require_self_contained, write_bytes, write_text
from nmt.schema import About, OwnComponent, Settings, about, check, section_for, shown
from nmt.training_settings import StoredConfig, TrainConfig, section_of_corpus

CONFIG, DATA, STATUS, LOCK = "config.yaml", "data.json", "status.json", ".lock"
SMALL_FILES = (CONFIG, DATA, SOURCE_MODEL, TARGET_MODEL)  # kept in the resume state too
UNFINISHED = ("running", "interrupted", "failed")  # states of status.json
LONGEST_TEXT = 4096  # characters of a setting


def check_resume(run_dir: Path, config: dict[str, Any]) -> bool:
    """True where `run_dir` holds a run of these settings; ConfigError, nothing touched, where it holds another."""
    if not run_dir.exists():
        return False
    if not run_dir.is_dir():
        raise ConfigError(f"run_dir={run_dir} is a file; choose another run_dir")
    if not (run_dir / CONFIG).exists():
        names = {path.name for path in run_dir.iterdir()}
        if not all(name in (LOCK, *SMALL_FILES) or name.endswith(".tmp") for name in names):  # else: killed early
            raise ConfigError(f"run_dir={run_dir} is not empty and holds no run; choose another run_dir")
        return False
    trust = [section["_target_"] for section in sections_in(config)]  # the command itself names these classes
    changed = changed_settings(read_config(run_dir, trust), portable_config(config))
    if changed:
        listed = "; ".join(changed[:5]) + (f"; and {len(changed) - 5} more" if len(changed) > 5 else "")
        raise ConfigError(
            f"{run_dir} was started with other settings ({listed}); "
            f"give those, or run_dir={_free_name(run_dir)} for a new run"
        )
    return True


def changed_settings(
    old: dict[str, Any], new: dict[str, Any], declared: type[Settings] | None = TrainConfig, prefix: str = ""
) -> list[str]:
    """'key=old, now new' for each setting that a resume may not change. Files are compared by checksum, elsewhere."""
    changed = []
    for key in sorted({*old, *new}):
        field = declared.model_fields.get(key) if declared else None
        meaning = about(field) if field else About()
        before, now = old.get(key), new.get(key)
        if meaning.path or not meaning.stored or meaning.resume is True:
            continue
        if isinstance(meaning.resume, frozenset) and {before, now} <= meaning.resume:
            continue
        if isinstance(before, dict) and isinstance(now, dict):
            section = section_for(field, before) if field else section_of_corpus(before)
            changed += changed_settings(before, now, section, f"{prefix}{key}.")
        elif before != now:
            changed.append(f"{prefix}{key}={shown(before)}, now {shown(now)}")
    return changed


def _free_name(run_dir: Path) -> str:
    number = 2
    while os.path.lexists(f"{run_dir}-{number}"):
        number += 1
    return f"{run_dir}-{number}"


@contextmanager
def run_lock(run_dir: Path) -> Iterator[None]:
    """Only one process at a time trains into a directory; the lock is released however the process ends."""
    try:
        run_dir.mkdir(parents=True, exist_ok=True)
        lock = FileLock(str(run_dir / LOCK))
        lock.acquire(timeout=0)
    except Timeout:
        raise UserError(f"another process is training in {run_dir}; wait for it, or choose another run_dir") from None
    except OSError as error:
        raise UserError(f"cannot write to {run_dir}: {error.strerror}") from None
    try:
        yield
    finally:
        lock.release()


def create_run(
    run_dir: Path, config: dict[str, Any], data_facts: dict[str, Any], source: Tokenizer, target: Tokenizer
) -> None:
    """Write the files of a new run before its first update; the config last, since it makes the directory a run."""
    for name, tokenizer in ((SOURCE_MODEL, source), (TARGET_MODEL, target)):
        write_bytes(run_dir / name, tokenizer.model)
    write_text(run_dir / DATA, json.dumps(data_facts, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    write_config(run_dir, config)


def write_config(run_dir: Path, config: dict[str, Any]) -> None:
    """The resolved settings, less what means something on this machine only."""
    write_text(run_dir / CONFIG, yaml.safe_dump(portable_config(config), sort_keys=False, allow_unicode=True))


def portable_config(config: dict[str, Any]) -> dict[str, Any]:
    """Without what belongs to this machine; absolute paths become relative to the current folder."""

    def make_portable(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: make_portable(item) for key, item in value.items()}
        if isinstance(value, list):
            return [make_portable(item) for item in value]
        return _relative_path(value) if isinstance(value, str) and os.path.isabs(value) else value

    declared = TrainConfig.model_fields
    return {
        key: make_portable(value) for key, value in config.items() if key not in declared or about(declared[key]).stored
    }


def _relative_path(path: str) -> str:
    try:
        return os.path.relpath(path)
    except ValueError:  # Windows: another drive
        return Path(path).name


def read_config(folder: Path, trust: Collection[str] = ()) -> dict[str, Any]:
    """The settings with which the run was started. A run may come from anywhere, so they are data, and checked as such.

    Bounded in size and depth, no aliases, no interpolations, nothing undeclared, nothing out of range. UserError for
    anything else, and for a class of the user's own unless `trust` names it or its module. Nothing is imported.
    """
    require_self_contained(folder)
    path = folder / CONFIG
    try:
        config = read_yaml(path)
        if not isinstance(config, dict):
            raise ValueError("it holds no settings")
        _require_plain(config)
        stored = check(StoredConfig, config)
    except FileNotFoundError:
        raise UserError(f"{folder} is not a run directory: it has no {CONFIG}") from None
    except ValueError as error:
        raise UserError(f"cannot read {path}: {printable(' '.join(str(error).split()))}") from None
    except ConfigError as error:
        raise UserError(f"{path}: {printable(str(error))}") from None
    for name in own_classes(stored):
        if not is_trusted(name, trust):
            raise UserError(
                f"{path} names the class {printable(name)}, which is not of this program, and would run its code; "
                f"if you trust it: trust={printable(name.rsplit('.', 1)[0])}"
            )
    return config


def _require_plain(value: Any) -> None:
    """ValueError for an interpolation, a control character or an endless text anywhere in a stored configuration."""
    if isinstance(value, dict):
        for part in (*value.keys(), *value.values()):
            _require_plain(part)
    elif isinstance(value, list):
        for part in value:
            _require_plain(part)
    elif isinstance(value, str):
        if "${" in value:
            raise ValueError(f"{value[:60]}: interpolations are not read")
        if CONTROLS.search(value) or len(value) > LONGEST_TEXT:
            raise ValueError(f"{value[:60]}: a text with control characters, or of over {LONGEST_TEXT:,} characters")


def own_classes(settings: Settings) -> Iterator[str]:
    """The classes named in settings that are not declared in this program."""
    if isinstance(settings, OwnComponent):
        yield settings.target_class
    for value in (*vars(settings).values(), *(settings.model_extra or {}).values()):
        for part in value.values() if isinstance(value, dict) else [value]:
            if isinstance(part, Settings):
                yield from own_classes(part)
    for section in sections_in(settings.model_extra or {}):
        yield str(section["_target_"])


def sections_in(value: Any) -> Iterator[dict[str, Any]]:
    """The sections within plain values that name a class."""
    if isinstance(value, dict):
        if "_target_" in value:
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from sections_in(part)


def is_trusted(name: str, trust: Collection[str]) -> bool:
    """Whether a class, or a module or package that holds it, is named."""
    return any(name == trusted or name.startswith(f"{trusted}.") for trusted in trust)


def is_whole(path: Path) -> bool:
    """Whether one of SMALL_FILES can be read; what it says is checked elsewhere."""
    try:
        if path.name == CONFIG:
            return isinstance(read_yaml(path), dict)
        if path.name == DATA:
            return bool(read_json(path))
        Tokenizer.from_file(path, normalises=False)
        return True
    except (UserError, OSError):
        return False


def read_data_facts(run_dir: Path) -> dict[str, Any]:
    """The text read for training (counts, checksums), and the prepared folder it came from; empty where unknown."""
    try:
        return read_json(run_dir / DATA)
    except FileNotFoundError:
        return {}


def read_status(run_dir: Path) -> str:
    """The training's state in status.json; empty where there is none."""
    try:
        return str(read_json(run_dir / STATUS)["state"])
    except (OSError, UserError, KeyError):
        return ""
