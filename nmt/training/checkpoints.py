"""Weights and resume state on disk. Importing this module does not import torch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

from safetensors import SafetensorError, safe_open

from nmt.errors import UserError
from nmt.files import printable, write_whole
from nmt.progress import say

if TYPE_CHECKING:
    from torch import nn

RESUME, PREVIOUS = "resume.pt", "resume.previous.pt"
LAST, BEST, AVERAGED, SUFFIX = "last.safetensors", "best.safetensors", "averaged.safetensors", ".safetensors"
AVERAGED_FOLDER, KEPT_FOLDER, KEPT_PREFIX = "checkpoints", "kept", "update-"
WEIGHT_TYPES = ("F32", "BF16", "F16")


def save_weights(path: Path, model: nn.Module, update: int) -> None:
    """Weights alone, tied ones once, with the update they are from."""
    from safetensors.torch import save_model

    path.parent.mkdir(exist_ok=True)
    write_whole(path, lambda to: save_model(model, str(to), metadata={"update": str(update)}))


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """UserError where the file is missing, damaged or of another model."""
    try:
        yield
    except FileNotFoundError:
        raise UserError(f"there are no weights at {path}; the training has not saved any yet") from None
    except (RuntimeError, SafetensorError, OSError) as error:
        raise UserError(f"cannot load {path}: {printable(' '.join(str(error).split())[:300])}") from None


def load_weights(path: Path, model: nn.Module) -> None:
    """UserError where the file is missing, damaged or of another model."""
    from safetensors.torch import load_model

    with _readable(path):
        load_model(model, str(path))


def require_weights_of(path: Path, model: nn.Module) -> None:
    """UserError unless the header of a weights file has the names, shapes and types of a model's; reads no weights.

    Names that share one parameter (tied embeddings) may stand once.
    """
    with _readable(path), safe_open(str(path), framework="np") as file:
        slices = {name: file.get_slice(name) for name in file.keys()}
        header = {name: (slice.get_shape(), slice.get_dtype()) for name, slice in slices.items()}
    tied: dict[int, list[str]] = {}
    for name, tensor in (*model.named_parameters(remove_duplicate=False), *model.named_buffers()):
        tied.setdefault(id(tensor), []).append(name)
    shapes = {name: list(tensor.shape) for name, tensor in model.state_dict().items()}
    missing = [names[0] for names in tied.values() if not set(names) & set(header)]
    extra = sorted(set(header) - set(shapes))
    if missing or extra:
        what = f"{missing[0]} is missing" if missing else f"{printable(extra[0])} is not of this model"
        raise UserError(f"{path} holds the weights of another model: {what}")
    for name, (shape, dtype) in header.items():
        if shape != shapes[name]:
            raise UserError(f"{path}: {name} has the shape {shape}, not {shapes[name]}: the weights of another model")
        if dtype not in WEIGHT_TYPES:
            raise UserError(f"{path}: {name} is stored as {dtype}, not F32, BF16 or F16")


def update_of(path: Path) -> int | None:
    """The update at which the weights were saved; None where there are none, or they cannot be read."""
    try:
        with safe_open(str(path), framework="np") as file:
            update = (file.metadata() or {}).get("update", "0")
    except (OSError, SafetensorError):
        return None
    return int(update) if update.isdecimal() and len(update) < 16 else 0


def averaged_file(run_dir: Path, update: int) -> Path:
    """The weights of one of the last validations, of which averaged.safetensors is the mean."""
    return run_dir / AVERAGED_FOLDER / f"{update}{SUFFIX}"


def average(paths: Sequence[Path], to: Path) -> None:
    """The mean of several weights files (arXiv:1706.03762, section 6.1)."""
    import torch
    from safetensors.torch import load_file, save_file

    try:
        states = [load_file(str(path)) for path in paths]
        mean = {name: torch.stack([s[name].float() for s in states]).mean(0).to(states[0][name]) for name in states[0]}
    except (OSError, SafetensorError, KeyError, RuntimeError) as error:
        names = ", ".join(path.name for path in paths)
        raise UserError(f"{paths[0].parent} cannot be averaged ({names}): {' '.join(str(error).split())}") from None
    metadata = {"update": str(update_of(paths[-1]))}
    write_whole(to, lambda temporary: save_file(mean, str(temporary), metadata=metadata))


def save_resume(run_dir: Path, state: dict[str, Any]) -> None:
    """Everything that the next update depends on, in one file; the one before is kept until this one is whole."""
    import torch

    path = run_dir / RESUME

    def replace_previous(temporary: Path) -> None:
        torch.save(state, temporary)
        if path.exists():
            os.replace(path, run_dir / PREVIOUS)

    write_whole(path, replace_previous)


def load_resume(run_dir: Path) -> dict[str, Any] | None:
    """The saved state, or the one before it where that is damaged; None where nothing was saved yet."""
    import torch

    reasons = []
    for path in (path for path in (run_dir / RESUME, run_dir / PREVIOUS) if path.exists()):
        try:
            with ZipFile(path) as archive:  # what torch.save writes is not compressed, and as large as it will be
                if sum(entry.file_size for entry in archive.infolist()) > path.stat().st_size:
                    raise UserError("compressed")
            state = torch.load(path, map_location="cpu", weights_only=True)
            update = state["progress"]["update"]  # it is of this program
        except Exception as error:  # torch raises several unrelated kinds for a damaged file
            reasons.append(f"{path.name}: {type(error).__name__}")
            continue
        if reasons:
            say(f"note: {', '.join(reasons)}: resuming from {path.name}, update {update}")
        return state
    if reasons:
        raise UserError(f"cannot read {run_dir / RESUME} ({', '.join(reasons)}); remove it to start this run again")
    return None


def kept_file(run_dir: Path, update: int) -> Path:
    """The file of the weights that training.keep_every keeps of an update."""
    return run_dir / KEPT_FOLDER / f"{KEPT_PREFIX}{update:07}{SUFFIX}"


def kept_files(run_dir: Path) -> dict[int, Path]:
    """All kept weights by their update, in order."""
    files = (run_dir / KEPT_FOLDER).glob(f"{KEPT_PREFIX}*{SUFFIX}")
    updates = {file.stem.removeprefix(KEPT_PREFIX): file for file in files}
    return dict(sorted((int(update), file) for update, file in updates.items() if update.isdecimal()))
