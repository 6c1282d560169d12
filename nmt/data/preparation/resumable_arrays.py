"""Append-only arrays in files, with saved state: a killed process resumes from the last save."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from nmt.files import write_text


class ResumableArrays:
    """Append-only arrays in a folder. What was appended after the last `save` is cut off when it is opened again.

    `state` belongs to the caller: plain JSON values, saved together with the sizes of the arrays.
    """

    def __init__(self, folder: Path, arrays: Mapping[str, Any], state_file: str) -> None:
        self.folder = folder
        self._types = {name: np.dtype(kind) for name, kind in arrays.items()}
        self._files: dict[str, BinaryIO] = {}
        self._state_file = folder / state_file
        saved = _read_state(self._state_file)
        self.state: dict[str, Any] = saved.get("state", {})
        self._sizes: dict[str, int] = dict.fromkeys(arrays, 0) | saved.get("sizes", {})

    def append(self, **arrays: np.ndarray) -> None:
        """Each array to the end of the file of its name."""
        for name, values in arrays.items():
            self._file(name).write(np.ascontiguousarray(values, dtype=self._types[name]).data)

    def save(self) -> None:
        """After this a crash loses nothing of what was appended so far."""
        for name, file in self._files.items():
            file.flush()
            os.fsync(file.fileno())
            self._sizes[name] = file.tell()
        write_text(self._state_file, json.dumps({"state": self.state, "sizes": self._sizes}))

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        self._files = {}

    def array(self, name: str, mode: str = "r") -> np.ndarray:
        """The saved part of an array, mapped from its file."""
        return map_array(self.folder / name, self._types[name], mode, self._sizes[name])

    def _file(self, name: str) -> BinaryIO:
        if name not in self._files:
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
            file = path.open("r+b")
            file.truncate(self._sizes[name])
            file.seek(0, os.SEEK_END)
            self._files[name] = file
        return self._files[name]


def map_array(path: Path, kind: np.dtype, mode: str = "r", size: int | None = None) -> np.ndarray:
    """A file's numbers without reading them; an empty file, which cannot be mapped, as an empty array."""
    size = path.stat().st_size if size is None else size
    if size == 0:
        return np.zeros(0, dtype=kind)
    return np.memmap(path, dtype=kind, mode=mode, shape=(size // kind.itemsize,))  # type: ignore[call-overload]


def _read_state(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
