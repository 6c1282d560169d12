"""Where training.keep_every puts weights, and how they are found again. Nothing of torch, so that a study may ask."""

from pathlib import Path

FOLDER, PREFIX, SUFFIX = "kept", "update-", ".safetensors"


def kept_file(run_dir: Path, update: int) -> Path:
    """The weights of an update."""
    return run_dir / FOLDER / f"{PREFIX}{update:07}{SUFFIX}"


def kept_files(run_dir: Path) -> dict[int, Path]:
    """By their update all that are there, the first one first."""
    found = {int(file.stem.removeprefix(PREFIX)): file for file in (run_dir / FOLDER).glob(f"{PREFIX}*{SUFFIX}")}
    return dict(sorted(found.items()))
