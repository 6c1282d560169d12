"""A run on disk: its directory, its settings, how its results were made, and the trained model loaded from it.

A run directory is started once and resumed with the same settings only; no absolute path is written into it. torch
takes seconds to import, so only the functions that need it import it.
"""

import datetime
import importlib.metadata
import json
import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from filelock import FileLock, Timeout
from hydra.utils import get_class, instantiate

from nmt.data.corpus import Corpus
from nmt.data.tokenizer import PAD, SOURCE_MODEL, TARGET_MODEL, Tokenizer, load_tokenizers
from nmt.errors import ConfigError, UserError
from nmt.files import printable, write_text, write_whole
from nmt.model_settings import ATTENTIONS, MODELS
from nmt.progress import say
from nmt.schema import About, Settings, about, check_arguments, section_for, shown
from nmt.training_settings import CORPORA, TrainConfig

if TYPE_CHECKING:
    from torch import nn

    from nmt.decoding.translator import Translator
    from nmt.models.seq2seq import BottleneckSize, Seq2Seq

CONFIG, DATA, STATUS, LOCK = "config.yaml", "data.json", "status.json", ".lock"
UNFINISHED = ("running", "interrupted", "failed")  # states of status.json
SHAPE_VOCAB_SIZE = 8  # for a model of which only the shape matters


# The run directory


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
    changed = changed_settings(read_config(run_dir), portable_config(config))
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
            section = section_for(field, before) if field else CORPORA.get(before.get("_target_", ""))
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
        write_whole(run_dir / name, partial(_write_bytes, tokenizer.model))
    write_text(run_dir / DATA, json.dumps(data_facts, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    write_config(run_dir, config)


def _write_bytes(content: bytes, to: Path) -> None:
    to.write_bytes(content)


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


def read_config(folder: Path) -> dict[str, Any]:
    """The resolved settings with which the run was started."""
    try:
        return yaml.safe_load((folder / CONFIG).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{folder} is not a run directory: it has no {CONFIG}") from None
    except (yaml.YAMLError, OSError) as error:
        raise UserError(f"cannot read {folder / CONFIG}: {' '.join(str(error).split())}") from None


def read_data_facts(run_dir: Path) -> dict[str, Any]:
    """The text read for training (counts, checksums), and the prepared folder it came from."""
    return json.loads((run_dir / DATA).read_text(encoding="utf-8"))


def read_status(run_dir: Path) -> str:
    """The training's state in status.json; empty where there is none."""
    try:
        return str(json.loads((run_dir / STATUS).read_text(encoding="utf-8"))["state"])
    except (OSError, ValueError, KeyError):
        return ""


# Provenance of results


def provenance() -> dict[str, Any]:
    """How a result was made, written beside every result."""
    return {
        "command": command_line(),
        "commit": git_commit(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": machine_description(),
        "versions": {
            "python": platform.python_version(),
            **{name: package_version(name) for name in ("nmt", "torch", "sentencepiece", "sacrebleu")},
        },
    }


def command_line() -> str:
    """`python -m nmt.train …` as it was typed; absolute paths are cut to their last part."""
    typed = sys.orig_argv[1:]  # sys.argv is rewritten by nmt/cli.py
    return printable(" ".join(["python", *(_quote_argument(without_absolute_paths(argument)) for argument in typed)]))


def _quote_argument(argument: str) -> str:
    return argument if "$NMT_DATA/" in argument else shlex.quote(argument)


def without_absolute_paths(argument: str) -> str:
    """`key=/home/me/a.en` -> `key=a.en`, or `key=$NMT_DATA/a.en`, in lists too: it is read on other machines."""
    parts = re.split(r"([=,\[\]])", argument)
    return "".join(_relocate(part) if os.path.isabs(part) else part for part in parts)


def _relocate(path: str) -> str:
    data = os.environ.get("NMT_DATA")
    if data and Path(path).is_relative_to(data):
        return f"$NMT_DATA/{Path(path).relative_to(data).as_posix()}"
    return Path(path).name


def git_commit() -> str:
    """The checkout's commit, marked +changes where files differ from it; empty for an installed wheel."""
    checkout = Path(__file__).resolve().parent.parent
    if not (checkout / ".git").exists():
        return ""
    try:
        head, changes = (
            subprocess.run(["git", "-C", str(checkout), *command], capture_output=True, text=True, timeout=10).stdout
            for command in (["rev-parse", "--short=10", "HEAD"], ["status", "--porcelain", "--untracked-files=no"])
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return head.strip() + ("+changes" if changes.strip() else "")


def machine_description() -> str:
    """Processor, number of cores and system, as far as the system tells."""
    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.split(":", 1)[1].strip() for line in cpuinfo.read_text().split("\n") if "model name" in line]
        processor = names[0] if names else processor
    return f"{processor}, {os.cpu_count()} cores, {platform.system()}"


def package_version(package: str) -> str:
    """Empty where it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


# Loading


@dataclass(frozen=True)
class Run:
    """A trained system, ready to use."""

    path: Path
    name: str
    seed: int
    config: dict[str, Any]
    model: "Seq2Seq"
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    updates: int
    weights: Path

    @property
    def parameters(self) -> int:
        return count_parameters(self.model)

    def translator(self, device: str = "cpu", max_src_pieces: int | None = None) -> "Translator":
        """Ready to translate; sources longer than `max_src_pieces` (the training's limit by default) are split."""
        from nmt.decoding.translator import Translator

        limit = max_src_pieces or self.config["batching"]["max_pieces"]
        return Translator(self.model.to(device).eval(), self.source_tokenizer, self.target_tokenizer, limit, device)

    def corpus(self) -> Corpus:
        """The corpus the run was trained on; file names are taken from the current directory."""
        return instantiate(self.config["data"])


def load_run(path: str | Path) -> Run:
    """The run at `path`: a run directory (its best weights, else the last) or a weights file in one."""
    from nmt.training import checkpoints

    path = Path(path).expanduser()
    if not path.exists():
        raise UserError(
            f"there is no checkpoint at {path}; train one, for example: python -m nmt.train experiment=bahdanau"
        )
    weights = path if path.is_file() else _weights_file(path)
    folder = weights.parent if (weights.parent / CONFIG).exists() else weights.parent.parent
    config = read_config(folder)
    source, target = load_tokenizers(folder)
    model = build_model(config["model"], source.vocab_size, target.vocab_size)
    checkpoints.load_weights(weights, model)
    name, updates = str(config.get("name") or folder.name), checkpoints.update_of(weights)
    return Run(folder, name, int(config["seed"]), config, model.eval(), source, target, updates, weights)


def _weights_file(folder: Path) -> Path:
    from nmt.training import checkpoints

    for name in (checkpoints.BEST, checkpoints.LAST):
        if (folder / name).exists():
            return folder / name
    if (folder / CONFIG).exists():
        if read_status(folder) not in ("", *UNFINISHED):
            raise UserError(f"{folder} is kept without its weights, so only the evaluations in it can be used")
        raise UserError(f"{folder} has no weights yet; the training has not reached its first checkpoint")
    raise UserError(f"{folder} is not a run directory: it has no {CONFIG}")


def load(path: str | Path, device: str = "cpu") -> "Translator":
    """`nmt.load("outputs/grammar/bahdanau").translate(["the old dog sleeps"])`."""
    return load_run(path).translator(device)


def build_model(config: dict[str, Any], src_vocab_size: int, tgt_vocab_size: int) -> "Seq2Seq":
    """The model of a config; ConfigError where a `_target_` is no model part."""
    for section in _sections(config):
        _check_section(section)
    partial_model = instantiate(config)
    try:
        return partial_model(src_vocab_size=src_vocab_size, tgt_vocab_size=tgt_vocab_size, pad_id=PAD)
    except TypeError as error:  # a setting too many or too few for this class
        raise ConfigError(f"the model cannot be built: {error}; do model= and attention= go together?") from None


def _sections(config: Any) -> Iterator[dict[str, Any]]:
    if isinstance(config, dict):
        if "_target_" in config:
            yield config
        config = list(config.values())
    if isinstance(config, list):
        for value in config:
            yield from _sections(value)


def _check_section(config: dict[str, Any]) -> None:
    """A run directory may come from anywhere: nothing but model classes is ever built from its config."""
    from torch import nn

    name = config["_target_"]
    try:
        target = get_class(name)
    except Exception as error:  # an import of the user's own module may raise anything
        reason = " ".join(str(error).split())
        raise ConfigError(f"cannot find {name} ({reason}); is its folder on PYTHONPATH or the current one?") from None
    if not issubclass(target, nn.Module):
        raise ConfigError(f"{name} is not a torch.nn.Module; only those can be part of a model")
    if name not in MODELS | ATTENTIONS:
        check_arguments(target, config, "model.")


def bottleneck_size(config: dict[str, Any]) -> "BottleneckSize | None":
    """How many numbers of a source reach the decoder of a run with these settings, whatever its vocabulary."""
    return build_model(config["model"], SHAPE_VOCAB_SIZE, SHAPE_VOCAB_SIZE).bottleneck_size()


def count_parameters(model: "nn.Module") -> int:
    """Trainable numbers, tied ones once."""
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def choose_device(name: str) -> str:
    """'auto' is the first available of CUDA, MPS and CPU; ConfigError where a named one is absent."""
    import torch

    backends = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    available = [kind for kind, present in backends.items() if present]
    if name == "auto":
        return available[0]
    if name.split(":")[0] not in available:
        raise ConfigError(f"device={name}: there is no such device here; there is: {', '.join(available)}")
    return name


def choose_precision(name: str, device: str) -> str:
    """The type of matrix products; fp32, and a note, where the device has no fast bf16.

    On x86 without AVX-512, PyTorch multiplies bfloat16 matrices one number at a time, and its LSTM refuses them.
    """
    import torch

    if name == "bf16" and torch.device(device).type == "cpu" and torch.backends.cpu.get_cpu_capability() == "AVX2":
        say("note: this processor has no AVX-512, so bf16 would be many times slower than fp32; precision=fp32 is used")
        return "fp32"
    return name
