"""A run on disk: its directory, its settings, and what a resume may change.

A run directory is started once and resumed with the same settings only; no absolute path is written into it.
"""

import json
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from itertools import count
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


def check_resume(run_dir: Path, config: dict[str, Any]) -> dict[str, Any] | None:
    """The stored settings of the run in `run_dir`; None where there is none yet, ConfigError where it is another's."""
    if not run_dir.exists():
        return None
    if not run_dir.is_dir():
        raise ConfigError(f"run_dir={run_dir} is a file; choose another run_dir")
    if not (run_dir / CONFIG).exists():
        names = {path.name for path in run_dir.iterdir()}
        if not all(name in (LOCK, *SMALL_FILES) or name.endswith(".tmp") for name in names):  # else: killed early
            raise ConfigError(f"run_dir={run_dir} is not empty and holds no run; choose another run_dir")
        return None
    trust = [section["_target_"] for section in sections_in(config)]  # the command itself names these classes
    stored = read_config(run_dir, trust)
    if changed := changed_settings(stored, portable_config(config)):
        listed = "; ".join(changed[:5]) + (f"; and {len(changed) - 5} more" if len(changed) > 5 else "")
        free = next(name for name in (f"{run_dir}-{n}" for n in count(2)) if not os.path.lexists(name))
        raise ConfigError(
            f"{run_dir} was started with other settings ({listed}); give those, or run_dir={free} for a new run"
        )
    return stored


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
        return os.path.relpath(value) if isinstance(value, str) and os.path.isabs(value) else value

    declared = TrainConfig.model_fields
    return {
        key: make_portable(value) for key, value in config.items() if key not in declared or about(declared[key]).stored
    }


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
        for text in (part for part in _parts_of(config) if isinstance(part, str)):
            if "${" in text:
                raise ValueError(f"{text[:60]}: interpolations are not read")
            if CONTROLS.search(text) or len(text) > LONGEST_TEXT:
                raise ValueError(f"{text[:60]}: a text with control characters, or of over {LONGEST_TEXT:,} characters")
        stored = check(StoredConfig, config)
    except FileNotFoundError:
        raise UserError(f"{folder} is not a run directory: it has no {CONFIG}") from None
    except ValueError as error:
        raise UserError(f"cannot read {path}: {printable(' '.join(str(error).split()))}") from None
    except ConfigError as error:
        raise UserError(f"{path}: {printable(str(error))}") from None
    own = [part.target_class for part in _parts_of(stored) if isinstance(part, OwnComponent)]
    for name in (*own, *(str(section["_target_"]) for section in sections_in(stored))):
        if not any(name == trusted or name.startswith(f"{trusted}.") for trusted in trust):
            raise UserError(
                f"{path} names the class {printable(name)}, which is not of this program, and would run its code; "
                f"if you trust it: trust={printable(name.rsplit('.', 1)[0])}"
            )
    return config


def _parts_of(value: Any) -> Iterator[Any]:
    """A value and all that is in it: settings, plain values, keys."""
    yield value
    if isinstance(value, Settings):
        value = {**vars(value), **(value.model_extra or {})}
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list):
        for part in value:
            yield from _parts_of(part)


def sections_in(value: Any) -> list[dict[str, Any]]:
    """The sections of plain values, or of settings of a user's own class, that name a class."""
    return [part for part in _parts_of(value) if isinstance(part, dict) and "_target_" in part]


def read_data_facts(run_dir: Path) -> dict[str, Any]:
    """The text read for training (counts, checksums), and the prepared folder it came from; empty where unknown."""
    try:
        return read_json(run_dir / DATA)
    except FileNotFoundError:
        return {}


def read_status(run_dir: Path) -> dict[str, Any]:
    """status.json of a training; empty where there is none that can be read."""
    try:
        return read_json(run_dir / STATUS)
    except (OSError, UserError):
        return {}
