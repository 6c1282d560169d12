"""Callbacks of the training loop: logging, validation, best and last weights, early stopping, Ctrl-C."""

import json
import math
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import nn

from nmt.errors import UserError
from nmt.files import write_text
from nmt.training import checkpoints
from nmt.training.checkpoints import kept_file
from nmt.training.loop import Metrics, Progress, TrainState
from nmt.training.trackers import JsonLines, Tracker
from nmt.training_settings import TrainingSettings


class Interrupt:
    """Ctrl-C and SIGTERM request a stop after the current update; a second one stops at once."""

    def __init__(self) -> None:
        self.requested = False
        for name in (signal.SIGINT, signal.SIGTERM):
            signal.signal(name, self._request_stop)

    def _request_stop(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True


@dataclass
class RunCallbacks:
    """Callbacks that write to a run directory."""

    run_dir: Path
    state: TrainState
    settings: TrainingSettings
    validation_metrics: Callable[[], Metrics]  # validation: {} where there is no validation text
    metrics: JsonLines
    tracker: Tracker
    show: Callable[[Progress, Metrics], None]
    interrupt: Interrupt

    def log(self, progress: Progress, metrics: Metrics) -> None:
        """One line to metrics.jsonl, the tracker and the terminal."""
        progress_metrics = {
            "epoch": progress.epoch,
            "target_pieces": progress.target_pieces,
            "seconds": round(progress.seconds, 2),
            "cpu_seconds": round(progress.cpu_seconds, 2),
        }
        self.metrics.log(progress.update, {**metrics, **progress_metrics})
        self.tracker.log(progress.update, metrics)
        self.show(progress, metrics)

    def validate(self, progress: Progress) -> None:
        """Validates, keeps the best weights, and counts the validations without a gain."""
        if self.settings.average_last:
            self._save_for_average(progress)
        self.state.model.eval()
        with torch.inference_mode(), torch.random.fork_rng():  # validation draws no random number of the training
            metrics = self.validation_metrics()
        if not metrics:
            return
        self.log(progress, metrics)
        by_bleu = self.settings.monitor == "bleu" and "valid/bleu" in metrics  # bleu_sentences=0 gives none
        score = metrics["valid/bleu"] if by_bleu else -metrics["valid/nll"]
        nll = metrics["valid/nll"]
        best_nll = math.inf if progress.best_nll is None else progress.best_nll
        if progress.best is None or (score, -nll) > (progress.best, -best_nll):
            progress.best, progress.best_nll, progress.best_update = score, nll, progress.update
            progress.without_gain = 0
            checkpoints.save_weights(self.run_dir / checkpoints.BEST, self.state.model, progress.update)
        else:
            progress.without_gain += 1

    def keep(self, progress: Progress) -> None:
        """Saves the weights of this update permanently, for rows of equal training time."""
        file = kept_file(self.run_dir, progress.update)
        file.parent.mkdir(exist_ok=True)
        checkpoints.save_weights(file, self.state.model, progress.update)

    def save(self, progress: Progress) -> None:
        """The resume state and the last weights."""
        checkpoints.save_resume(
            self.run_dir,
            {
                "progress": progress.state(),
                "model": self.state.model.state_dict(),
                "optimizer": self.state.optimizer.state_dict(),
                "random": _random_state(),
            },
        )
        checkpoints.save_weights(self.run_dir / checkpoints.LAST, self.state.model, progress.update)

    def stop_requested(self) -> bool:
        return self.interrupt.requested

    def _save_for_average(self, progress: Progress) -> None:
        folder = self.run_dir / "checkpoints"
        folder.mkdir(exist_ok=True)
        if progress.update not in progress.checkpoints:
            progress.checkpoints.append(progress.update)
        checkpoints.save_weights(folder / f"{progress.update}.safetensors", self.state.model, progress.update)
        while len(progress.checkpoints) > self.settings.average_last:
            (folder / f"{progress.checkpoints.pop(0)}.safetensors").unlink(missing_ok=True)

    def average(self, progress: Progress) -> None:
        """Writes the mean of the last checkpoints beside the best and the last weights."""
        paths = [self.run_dir / "checkpoints" / f"{update}.safetensors" for update in progress.checkpoints]
        if paths:
            checkpoints.average(paths, self.run_dir / checkpoints.AVERAGED)


def restore(state: dict[str, Any], model: nn.Module, optimizer: torch.optim.Optimizer) -> Progress:
    """Restores a saved state; returns its progress. UserError where it is not of this training."""
    try:
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["random"]["cpu"])
        if state["random"]["cuda"] and torch.cuda.is_available():
            torch.cuda.set_rng_state_all(state["random"]["cuda"])
        return Progress(**state["progress"])
    except Exception as error:  # torch raises several unrelated kinds for a state of another shape
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"the saved state cannot be resumed ({type(error).__name__}: {reason})") from None


def write_status(run_dir: Path, state: str, progress: Progress, **facts: Any) -> None:
    """status.json: the state of the run."""
    status = {
        "state": state,
        "updates": progress.update,
        "target_pieces": progress.target_pieces,
        "seconds": round(progress.seconds, 1),
        "cpu_seconds": round(progress.cpu_seconds, 1),
        "best_update": progress.best_update,
        **facts,
    }
    text = json.dumps(status, indent=1, allow_nan=False) + "\n"
    write_text(run_dir / "status.json", text)


def _random_state() -> dict[str, Any]:
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return {"cpu": torch.get_rng_state(), "cuda": cuda}
