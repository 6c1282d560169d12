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
from pydantic import TypeAdapter
from torch import nn

from nmt.errors import UserError
from nmt.files import write_text
from nmt.training import checkpoints
from nmt.training.checkpoints import kept_file
from nmt.training.loop import LossAverage, Metrics, Progress, TrainState
from nmt.training.trackers import JsonLines, Tracker
from nmt.training_settings import TrainingSettings

SKIPPED = "skipped.jsonl"
STOP_SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2") if hasattr(signal, name)
]
MAX_SKIPPED = 10  # updates in a row without a finite gradient


class StopRequest:
    """Signals that ask a training to save and stop after the current update; a second Ctrl-C stops at once.

    A signal that was ignored when the program started stays ignored (nohup).
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        for number in STOP_SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._request_stop)

    @property
    def exit_code(self) -> int:
        return 128 + (self.signal or signal.SIGINT)

    def _request_stop(self, number: int, frame: FrameType | None) -> None:
        if self.signal is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.signal = self.signal or number


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
    stop_request: StopRequest
    small_files: dict[str, bytes]  # of the run directory, kept in the resume state too

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

    def save(self, progress: Progress, loss_average: LossAverage) -> None:
        """The resume state and the last weights; the metrics first, so that no line of theirs is missing."""
        self.metrics.sync()
        checkpoints.save_resume(
            self.run_dir,
            {
                "progress": progress.state(),
                "loss_average": loss_average.state(),
                "model": self.state.model.state_dict(),
                "optimizer": self.state.optimizer.state_dict(),
                "random": _random_state(),
                "files": self.small_files,
            },
        )
        checkpoints.save_weights(self.run_dir / checkpoints.LAST, self.state.model, progress.update)

    def report_skipped(self, progress: Progress, positions: list[tuple[int, int]]) -> None:
        """Names the sentences of a skipped update in skipped.jsonl; UserError after too many in a row."""
        pairs = [int(pair) for epoch, batch in positions for pair in self.state.batches.plan(epoch)[batch]]
        with (self.run_dir / SKIPPED).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"update": progress.update, "pairs": pairs}) + "\n")
        if progress.skipped_in_a_row >= MAX_SKIPPED:
            raise UserError(
                f"the gradient was not finite in the last {MAX_SKIPPED} updates, up to {progress.update}: the training "
                f"has diverged; lower optimizer.lr or raise schedule.warmup_updates (the pairs are in {SKIPPED}, the "
                "last checkpoint is kept)"
            )

    def stop_requested(self) -> bool:
        return self.stop_request.signal is not None

    def _save_for_average(self, progress: Progress) -> None:
        (self.run_dir / checkpoints.AVERAGED_FOLDER).mkdir(exist_ok=True)
        if progress.update not in progress.checkpoints:
            progress.checkpoints.append(progress.update)
        paths = checkpoints.averaged_files(self.run_dir, progress.checkpoints)
        checkpoints.save_weights(paths[-1], self.state.model, progress.update)
        while len(progress.checkpoints) > self.settings.average_last:
            progress.checkpoints.pop(0)
            paths.pop(0).unlink(missing_ok=True)

    def average(self, progress: Progress) -> None:
        """Writes the mean of the last checkpoints beside the best and the last weights."""
        paths = checkpoints.averaged_files(self.run_dir, progress.checkpoints)
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
        TypeAdapter(tuple[float, int]).validate_python(state["loss_average"])
        return TypeAdapter(Progress).validate_python(state["progress"])
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
