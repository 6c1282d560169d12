"""A run directory: started once, resumed by the same settings only. No absolute path inside."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from filelock import FileLock, Timeout

from nmt.data.tokenizer import SOURCE_MODEL, TARGET_MODEL, Tokenizer
from nmt.errors import ConfigError, UserError
from nmt.files import write_text, write_whole

CONFIG, LOCK = "config.yaml", ".lock"
UNFINISHED = ("running", "interrupted", "failed")  # states of status.json
# Mean nothing on another machine, or are written elsewhere (size, attention_backend: in model): not written down.
PLACES = ("run_dir", "data_dir", "size", "prepared", "workers", "attention_backend")
# What a resume may change; everything else makes another model and is refused.
FREE_SECTIONS = ("device", "threads", "precision", "tracker", "search", *PLACES)
FREE_TRAINING = (
    "max_updates", "max_epochs", "max_minutes", "log_every", "validate_every", "save_minutes", "patience", "monitor",
    "bleu_sentences", "average_last", "keep_every",
)  # fmt: skip
ALIKE = ("auto", "fused", "varlen", "explicit", "tiled")  # backends that compute the same: a resume may change them
# File names say nothing of content, which is compared by checksum instead.
FILES = ("train_src", "train_tgt", "valid_src", "valid_tgt", "test_src", "test_tgt", "path", "data_dir")
# Settings that older runs did not have, and what was so in them. They are read as if they said it.
_RECURRENT: dict[str, Any] = {
    "reverse_source": False,
    "summary": "last_both",
    "bridge": "learned",
    "init": "default",
    "init_range": 0.1,
}
LATER: dict[str, dict[str, Any]] = {
    "nmt.models.recurrent.Bahdanau": {**_RECURRENT, "context_in_readout": True, "readout_size": None},
    "nmt.models.recurrent.Luong": _RECURRENT,
    "nmt.models.transformer.Transformer": {
        "attention_backend": "auto",
        "attention_window": 128,
        "positions": "sinusoidal",
        "max_positions": 1024,
    },
}
LATER_SECTIONS: dict[str, dict[str, Any]] = {"training": {"mean_over": "pieces", "keep_every": None}}


def read_config(folder: Path) -> dict[str, Any]:
    """The resolved settings with which the run was started."""
    try:
        return _completed(yaml.safe_load((folder / CONFIG).read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise UserError(f"{folder} is not a run directory: it has no {CONFIG}") from None
    except (yaml.YAMLError, OSError) as error:
        raise UserError(f"cannot read {folder / CONFIG}: {' '.join(str(error).split())}") from None


def _completed(config: dict[str, Any]) -> dict[str, Any]:
    later = {**LATER_SECTIONS, "model": LATER.get(config.get("model", {}).get("_target_"), {})}
    return {**config, **{name: {**values, **config[name]} for name, values in later.items() if name in config}}


def portable(config: dict[str, Any]) -> dict[str, Any]:
    """What is written into the run: no place on this machine; absolute paths become relative to the current folder."""

    def cut(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: cut(item) for key, item in value.items()}
        if isinstance(value, list):
            return [cut(item) for item in value]
        return _relative(value) if isinstance(value, str) and os.path.isabs(value) else value

    return {key: cut(value) for key, value in config.items() if key not in PLACES}


def _relative(path: str) -> str:
    try:
        return os.path.relpath(path)
    except ValueError:  # Windows: another drive
        return Path(path).name


def differences(old: dict[str, Any], new: dict[str, Any], prefix: str = "") -> list[str]:
    """'key=old, now new' for each setting that a resume may not change."""
    found = []
    for key in sorted({*old, *new}):
        name = f"{prefix}{key}"
        if name in FREE_SECTIONS or key in FILES or (prefix == "training." and key in FREE_TRAINING):
            continue
        before, now = old.get(key), new.get(key)
        if name == "model.attention_backend" and before in ALIKE and now in ALIKE:
            continue
        if isinstance(before, dict) and isinstance(now, dict):
            found += differences(before, now, f"{name}.")
        elif before != now:
            found.append(f"{name}={_shown(before)}, now {_shown(now)}")
    return found


def check_resume(run_dir: Path, config: dict[str, Any]) -> bool:
    """True where `run_dir` holds a run of these settings; ConfigError, nothing touched, where it holds another."""
    if not run_dir.exists():
        return False
    if not run_dir.is_dir():
        raise ConfigError(f"run_dir={run_dir} is a file; choose another run_dir")
    if not (run_dir / CONFIG).exists():
        if any(path.name != LOCK for path in run_dir.iterdir()):
            raise ConfigError(f"run_dir={run_dir} is not empty and holds no run; choose another run_dir")
        return False
    changed = differences(read_config(run_dir), portable(config))
    if changed:
        shown = "; ".join(changed[:5]) + (f"; and {len(changed) - 5} more" if len(changed) > 5 else "")
        raise ConfigError(
            f"{run_dir} was started with other settings ({shown}); "
            f"give those, or run_dir={_free_name(run_dir)} for a new run"
        )
    return True


@contextmanager
def locked(run_dir: Path) -> Iterator[None]:
    """Only one process at a time trains into a directory; the lock goes with the process, whatever ends it."""
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


def create(run_dir: Path, config: dict[str, Any], facts: dict[str, Any], source: Tokenizer, target: Tokenizer) -> None:
    """Write what a new run consists of before its first update; the config last, since it makes the directory a run."""
    for name, tokenizer in ((SOURCE_MODEL, source), (TARGET_MODEL, target)):
        write_whole(run_dir / name, partial(_write_bytes, tokenizer.model))
    text = json.dumps(facts, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    write_text(run_dir / "data.json", text)
    write_config(run_dir, config)


def write_config(run_dir: Path, config: dict[str, Any]) -> None:
    text = yaml.safe_dump(portable(config), sort_keys=False, allow_unicode=True)
    write_text(run_dir / CONFIG, text)


def _write_bytes(content: bytes, to: Path) -> None:
    to.write_bytes(content)


def read_facts(run_dir: Path) -> dict[str, Any]:
    """What was read for training, and from which prepared folder."""
    return json.loads((run_dir / "data.json").read_text(encoding="utf-8"))


def read_status(run_dir: Path) -> str:
    """How the run stands, as status.json says; empty where there is none."""
    try:
        return str(json.loads((run_dir / "status.json").read_text(encoding="utf-8"))["state"])
    except (OSError, ValueError, KeyError):
        return ""


def _shown(value: Any) -> str:
    return "null" if value is None else str(value)


def _free_name(run_dir: Path) -> str:
    number = 2
    while os.path.lexists(f"{run_dir}-{number}"):
        number += 1
    return f"{run_dir}-{number}"
