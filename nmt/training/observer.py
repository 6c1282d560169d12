"""What happens around the updates: logs, validation, the best and the last weights, early stopping, Ctrl-C."""

import json
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import nn

from nmt.files import write_text
from nmt.training import checkpoint
from nmt.training.kept import kept_file
from nmt.training.loop import Job, Metrics, Progress, TrainingSettings
from nmt.training.tracking import JsonLines, Tracker


class Interrupt:
    """Ctrl-C and SIGTERM ask for a stop after the current update; a second Ctrl-C stops at once."""

    def __init__(self) -> None:
        self.requested = False
        for name in (signal.SIGINT, signal.SIGTERM):
            signal.signal(name, self._ask)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True


@dataclass
class RunObserver:
    """The loop's view of a run directory."""

    run_dir: Path
    job: Job
    settings: TrainingSettings
    measure: Callable[[], Metrics]  # validation: {} where there is no validation text
    metrics: JsonLines
    tracker: Tracker
    show: Callable[[Progress, Metrics], None]
    interrupt: Interrupt

    def log(self, progress: Progress, metrics: Metrics) -> None:
        """One line to metrics.jsonl, the tracker and the terminal."""
        position = {
            "epoch": progress.epoch,
            "target_pieces": progress.target_pieces,
            "seconds": round(progress.seconds, 2),
            "cpu_seconds": round(progress.cpu_seconds, 2),
        }
        self.metrics.log(progress.update, {**metrics, **position})
        self.tracker.log(progress.update, metrics)
        self.show(progress, metrics)

    def validate(self, progress: Progress) -> None:
        """Measure; keep the best weights, and count the validations without a gain."""
        if self.settings.average_last:
            self._keep_one_of_the_last(progress)
        self.job.model.eval()
        with torch.inference_mode(), torch.random.fork_rng():  # a changed validate_every changes no update
            metrics = self.measure()
        if not metrics:
            return
        self.log(progress, metrics)
        by_bleu = self.settings.monitor == "bleu" and "valid/bleu" in metrics  # bleu_sentences=0 gives none
        gain = metrics["valid/bleu"] if by_bleu else -metrics["valid/nll"]
        if progress.best is None or gain > progress.best:
            progress.best, progress.best_update, progress.without_gain = gain, progress.update, 0
            checkpoint.save_weights(self.run_dir / checkpoint.BEST, self.job.model, progress.update)
        else:
            progress.without_gain += 1

    def keep(self, progress: Progress) -> None:
        """The weights of this update, for good: what a system could do after so much training."""
        file = kept_file(self.run_dir, progress.update)
        file.parent.mkdir(exist_ok=True)
        checkpoint.save_weights(file, self.job.model, progress.update)

    def save(self, progress: Progress) -> None:
        """The resume state and the last weights."""
        checkpoint.save_resume(
            self.run_dir,
            {
                "progress": progress.state(),
                "model": self.job.model.state_dict(),
                "optimizer": self.job.optimizer.state_dict(),
                "random": _random_state(),
            },
        )
        checkpoint.save_weights(self.run_dir / checkpoint.LAST, self.job.model, progress.update)

    def stop_requested(self) -> bool:
        return self.interrupt.requested

    def _keep_one_of_the_last(self, progress: Progress) -> None:
        folder = self.run_dir / "checkpoints"
        folder.mkdir(exist_ok=True)
        if progress.update not in progress.checkpoints:
            progress.checkpoints.append(progress.update)
        checkpoint.save_weights(folder / f"{progress.update}.safetensors", self.job.model, progress.update)
        while len(progress.checkpoints) > self.settings.average_last:
            (folder / f"{progress.checkpoints.pop(0)}.safetensors").unlink(missing_ok=True)

    def average(self, progress: Progress) -> None:
        """The mean of the kept checkpoints, beside the best and the last weights."""
        kept = [self.run_dir / "checkpoints" / f"{update}.safetensors" for update in progress.checkpoints]
        if kept:
            checkpoint.average(kept, self.run_dir / checkpoint.AVERAGED)


def restore(state: dict[str, Any], model: nn.Module, optimizer: torch.optim.Optimizer) -> Progress:
    """Put a saved state back; returns where the training stands."""
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    torch.set_rng_state(state["random"]["cpu"])
    if state["random"]["cuda"] and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(state["random"]["cuda"])
    return Progress(**state["progress"])


def write_status(run_dir: Path, state: str, progress: Progress, **facts: Any) -> None:
    """status.json: how the run stands, for other programs and for people."""
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
