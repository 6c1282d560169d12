"""Trackers of metrics: JSON lines always; Weights & Biases or TensorBoard on request."""

import json
import math
import os
import re
import secrets
import sys
from pathlib import Path
from typing import Any

from nmt.errors import UserError
from nmt.files import LONGEST_LINE, read_bounded, strict_json, write_text


class Tracker:
    """Opened once the run directory exists, also when a run is resumed. Does nothing by itself."""

    def open(self, run_dir: Path, name: str, config: dict[str, Any]) -> None: ...
    def log(self, update: int, metrics: dict[str, float]) -> None: ...
    def close(self, exit_code: int) -> None: ...


class NoTracker(Tracker):
    """Only metrics.jsonl."""


class WandbTracker(Tracker):
    """Weights & Biases; offline where there is no account, so that it never prompts and never blocks."""

    def __init__(self, project: str = "nmt") -> None:
        self._project = project
        if not os.environ.get("WANDB_MODE"):
            os.environ.pop("WANDB_MODE", None)  # empty means unset, but wandb takes it for a mode
        try:
            import wandb
        except ImportError as error:
            raise UserError(
                f"tracker=wandb: wandb cannot be imported ({error}); pip install wandb, or leave tracker=wandb away"
            ) from None
        self._wandb: Any = wandb
        if not os.environ.get("WANDB_MODE") and not wandb.login(prompt=False, verify=False):
            os.environ["WANDB_MODE"] = "offline"
            print(
                "wandb: no account found, so the run is kept offline (wandb login puts later runs online; "
                "wandb sync sends this one)",
                file=sys.stderr,
            )

    def open(self, run_dir: Path, name: str, config: dict[str, Any]) -> None:
        id_file = run_dir / "wandb-id.txt"  # the same id at a resume, so that both parts are one run
        run_id = read_bounded(id_file, errors="replace").strip() if id_file.exists() else ""
        if not re.fullmatch(r"[\w-]{1,64}", run_id):
            run_id = secrets.token_hex(4)
            write_text(id_file, run_id)
        self._run = self._wandb.init(
            project=self._project,
            name=name,
            id=run_id,
            resume="allow",
            dir=str(run_dir),
            mode=os.environ.get("WANDB_MODE"),  # wandb itself has read it before it was set here
            config=config,
            reinit="finish_previous",
            settings=self._wandb.Settings(silent=True, console="off"),
        )

    def log(self, update: int, metrics: dict[str, float]) -> None:
        self._run.log(metrics, step=update)

    def close(self, exit_code: int) -> None:
        self._run.finish(exit_code=exit_code)


class TensorboardTracker(Tracker):
    """Event files in RUN/tensorboard."""

    def __init__(self) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise UserError("tracker=tensorboard needs the package: pip install tensorboard") from None
        self._make = SummaryWriter

    def open(self, run_dir: Path, name: str, config: dict[str, Any]) -> None:
        self._writer = self._make(str(run_dir / "tensorboard"))

    def log(self, update: int, metrics: dict[str, float]) -> None:
        for key, value in metrics.items():
            self._writer.add_scalar(key, value, update)

    def close(self, exit_code: int) -> None:
        self._writer.close()


class JsonLines:
    """metrics.jsonl, strict JSON, one object a line. Lines after a resumed update are dropped first.

    So are damaged lines, and the validation of that update unless it was `validated`.
    """

    def __init__(self, path: Path, resumed_at: int, validated: bool = True) -> None:
        kept, self.damaged = [], 0
        for line in read_bounded(path, errors="replace").split("\n") if path.exists() else []:
            try:
                values = strict_json(line, LONGEST_LINE)
                update, repeated = int(values["update"]), "valid/nll" in values and not validated
            except (ValueError, KeyError, TypeError, RecursionError):
                self.damaged += bool(line)
                continue
            if update < resumed_at or (update == resumed_at and not repeated):
                kept.append(line + "\n")
        write_text(path, "".join(kept))
        self._file = path.open("a", encoding="utf-8")

    def log(self, update: int, metrics: dict[str, float]) -> None:
        finite = {key: value if math.isfinite(value) else None for key, value in metrics.items()}
        self._file.write(json.dumps({"update": update, **finite}, allow_nan=False) + "\n")
        self._file.flush()

    def sync(self) -> None:
        """Wait until all lines are on the disk."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()
