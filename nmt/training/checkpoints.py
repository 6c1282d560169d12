"""Weights and resume state on disk. Importing this module does not import torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.errors import UserError
from nmt.files import write_whole

if TYPE_CHECKING:
    from torch import nn

RESUME = "resume.pt"
KEPT_FOLDER, KEPT_PREFIX, SUFFIX = "kept", "update-", ".safetensors"
LAST, BEST, AVERAGED = "last.safetensors", "best.safetensors", "averaged.safetensors"


def save_weights(path: Path, model: nn.Module, update: int) -> None:
    """Weights alone, tied ones once, with the update they are from."""
    from safetensors.torch import save_model

    write_whole(path, lambda to: save_model(model, str(to), metadata={"update": str(update)}))


def load_weights(path: Path, model: nn.Module) -> None:
    """UserError where the file is missing, damaged or of another model."""
    from safetensors import SafetensorError
    from safetensors.torch import load_model

    try:
        load_model(model, str(path))
    except FileNotFoundError:
        raise UserError(f"there are no weights at {path}; the training has not saved any yet") from None
    except (RuntimeError, SafetensorError, OSError) as error:
        raise UserError(f"cannot load {path}: {' '.join(str(error).split())[:300]}") from None


def update_of(path: Path) -> int:
    """The update at which the weights were saved."""
    from safetensors import safe_open

    with safe_open(str(path), framework="pt") as file:
        return int((file.metadata() or {}).get("update", "0"))


def average(paths: Sequence[Path], to: Path) -> None:
    """The mean of several weights files (arXiv:1706.03762, section 6.1)."""
    import torch
    from safetensors.torch import load_file, save_file

    states = [load_file(str(path)) for path in paths]
    mean = {name: torch.stack([s[name].float() for s in states]).mean(0).to(states[0][name]) for name in states[0]}
    update = str(update_of(paths[-1]))
    write_whole(to, lambda temporary: save_file(mean, str(temporary), metadata={"update": update, "format": "pt"}))


def save_resume(run_dir: Path, state: dict[str, Any]) -> None:
    """Everything that the next update depends on, in one file."""
    import torch

    write_whole(run_dir / RESUME, lambda to: torch.save(state, to))


def load_resume(run_dir: Path) -> dict[str, Any] | None:
    """The saved state, or None where nothing was saved yet."""
    import torch

    path = run_dir / RESUME
    if not path.exists():
        return None
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises several unrelated kinds for a damaged file
        raise UserError(
            f"cannot read {path} ({type(error).__name__}); remove the file to start this run again"
        ) from None


def kept_file(run_dir: Path, update: int) -> Path:
    """The file of the weights that training.keep_every keeps of an update."""
    return run_dir / KEPT_FOLDER / f"{KEPT_PREFIX}{update:07}{SUFFIX}"


def kept_files(run_dir: Path) -> dict[int, Path]:
    """All kept weights by their update, in order."""
    files = {
        int(file.stem.removeprefix(KEPT_PREFIX)): file
        for file in (run_dir / KEPT_FOLDER).glob(f"{KEPT_PREFIX}*{SUFFIX}")
    }
    return dict(sorted(files.items()))
