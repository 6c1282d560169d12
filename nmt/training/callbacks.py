"""Callbacks of the training loop: logging, validation, best and last weights, early stopping, Ctrl-C."""

import json
import math
import signal
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from pydantic import TypeAdapter
from torch import nn

from nmt.errors import UserError
from nmt.files import write_text
from nmt.progress import format_duration, say
from nmt.training import checkpoints
from nmt.training.loop import LossAverage, Metrics, Progress, TrainState, end_reason
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
    validation_metrics: Callable[[], Metrics]  # {} where there is no validation text
    metrics: JsonLines
    tracker: Tracker
    stop_request: StopRequest
    small_files: dict[str, bytes]  # of the run directory, kept in the resume state too

    def log(self, progress: Progress, metrics: Metrics) -> None:
        """One line to metrics.jsonl, the tracker and the terminal."""
        of_progress = {"epoch": progress.epoch, "target_pieces": progress.target_pieces}
        times = {"seconds": round(progress.seconds, 2), "cpu_seconds": round(progress.cpu_seconds, 2)}
        self.metrics.log(progress.update, {**metrics, **of_progress, **times})
        self.tracker.log(progress.update, metrics)
        if "valid/nll" in metrics:
            bleu = f"  BLEU {metrics['valid/bleu']:.1f}" if "valid/bleu" in metrics else ""
            say(f"  validation at update {progress.update}: nll {metrics['valid/nll']:.3f}{bleu}")
            return
        last, minutes = self.state.budget.last_update, self.settings.max_minutes
        left = 60 * minutes - progress.seconds if minutes else math.inf
        if last is not None:
            left = min(left, (last - progress.update) * progress.seconds / progress.update)
        say(
            f"  update {progress.update}{'' if last is None else f'/{last}'}  epoch {progress.epoch}  "
            f"nll {metrics['train/nll']:.3f}  lr {metrics['learning_rate']:.2e}  "
            f"{metrics['train/tokens_per_second']:,.0f} pieces/s  {format_duration(left)} left"
        )

    def validate_if_due(self, progress: Progress, loss_average: LossAverage) -> bool:
        """Saves, then validates: a run that is killed while it validates repeats the validation and no training."""
        is_due = progress.update % self.settings.validate_every == 0 or self._is_over(progress)
        if not is_due or progress.validated == progress.update or progress.skipped_in_a_row:
            return False
        self.save(progress, loss_average)
        self._validate(progress)
        progress.validated = progress.update
        if self._is_over(progress) or self.stop_requested():
            self.save(progress, loss_average)
        return True

    def _is_over(self, progress: Progress) -> bool:
        return bool(end_reason(self.settings, self.state.budget, progress))

    def _validate(self, progress: Progress) -> None:
        """Keeps the best weights, and counts the validations without a gain."""
        if self.settings.average_last:
            if progress.update not in progress.checkpoints:  # it is there where a kill has interrupted the validation
                progress.checkpoints.append(progress.update)
            self._save_weights(checkpoints.averaged_file(self.run_dir, progress.update), progress)
            while len(progress.checkpoints) > self.settings.average_last:
                checkpoints.averaged_file(self.run_dir, progress.checkpoints.pop(0)).unlink(missing_ok=True)
        self.state.model.eval()
        with torch.inference_mode(), torch.random.fork_rng():  # validation draws no random number of the training
            metrics = self.validation_metrics()
        if not metrics:
            return
        self.log(progress, metrics)
        nll = metrics["valid/nll"]
        by_bleu = self.settings.monitor == "bleu" and "valid/bleu" in metrics  # bleu_sentences=0 gives none
        score = metrics["valid/bleu"] if by_bleu else -nll
        best_nll = math.inf if progress.best_nll is None else progress.best_nll
        if progress.best is None or (score, -nll) > (progress.best, -best_nll):
            progress.best, progress.best_nll, progress.best_update = score, nll, progress.update
            progress.without_gain = 0
            self._save_weights(self.run_dir / checkpoints.BEST, progress)
        else:
            progress.without_gain += 1

    def keep(self, progress: Progress) -> None:
        """Saves the weights of this update permanently, for rows of equal training time."""
        self._save_weights(checkpoints.kept_file(self.run_dir, progress.update), progress)

    def save(self, progress: Progress, loss_average: LossAverage) -> None:
        """The resume state and the last weights; the metrics first, so that no line of theirs is missing."""
        self.metrics.sync()
        cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
        state = {
            "progress": asdict(progress),
            "loss_average": (loss_average.nll.item(), loss_average.pieces),
            "model": self.state.model.state_dict(),
            "optimizer": self.state.optimizer.state_dict(),
            "random": {"cpu": torch.get_rng_state(), "cuda": cuda},
            "files": self.small_files,
        }
        checkpoints.save_resume(self.run_dir, state)
        self._save_weights(self.run_dir / checkpoints.LAST, progress)

    def _save_weights(self, path: Path, progress: Progress) -> None:
        checkpoints.save_weights(path, self.state.model, progress.update)

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


def complete(run_dir: Path, model: nn.Module, progress: Progress) -> None:
    """Writes the last and the averaged weights, unless they are there: a kill or a full disk may have prevented it."""
    last, averaged = run_dir / checkpoints.LAST, run_dir / checkpoints.AVERAGED
    if checkpoints.update_of(last) != progress.update:
        checkpoints.save_weights(last, model, progress.update)
    kept = [checkpoints.averaged_file(run_dir, update) for update in progress.checkpoints]
    if kept and checkpoints.update_of(averaged) != progress.checkpoints[-1]:
        checkpoints.average(kept, averaged)


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
    """status.json: the state of the run, `finished (1500 updates)` as `finished`."""
    status = {
        "state": state.split(" (")[0],
        "updates": progress.update,
        "target_pieces": progress.target_pieces,
        "seconds": round(progress.seconds, 1),
        "cpu_seconds": round(progress.cpu_seconds, 1),
        "best_update": progress.best_update,
        **facts,
    }
    write_text(run_dir / "status.json", json.dumps(status, indent=1, allow_nan=False) + "\n")
