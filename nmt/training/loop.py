"""The training loop. Logging, validation and saving are callbacks; no branch on model, schedule or tracker."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn

from nmt.data.batching import Batch, Batches, prefetch
from nmt.data.tokenizer import PAD
from nmt.errors import UserError
from nmt.training import loss
from nmt.training.schedule import Schedule
from nmt.training_settings import TrainingSettings

if TYPE_CHECKING:
    from nmt.training.callbacks import RunCallbacks

Metrics = dict[str, float]
INTERRUPTED = "interrupted"
Natural = Annotated[int, Field(ge=0, lt=2**53)]
Seconds = Annotated[float, Field(ge=0, lt=1e12)]


class Budget(NamedTuple):
    """The first limit in updates that a training reaches."""

    last_update: int | None  # None where only time limits it
    limit: str  # the setting at fault: training.max_epochs=10


def planned_budget(settings: TrainingSettings, updates_per_epoch: float) -> Budget:
    """Which of max_updates and max_epochs comes first, and at which update."""
    limits = []
    if settings.max_updates is not None:
        limits.append(Budget(settings.max_updates, f"training.max_updates={settings.max_updates}"))
    if settings.max_epochs is not None:
        last_update = max(1, math.ceil(settings.max_epochs * updates_per_epoch))
        limits.append(Budget(last_update, f"training.max_epochs={settings.max_epochs:g}"))
    return min(limits, default=Budget(None, f"training.max_minutes={settings.max_minutes}"))


def end_reason(settings: TrainingSettings, budget: Budget, progress: Progress) -> str:
    """Why the training is over; empty while it is not."""
    if budget.last_update is not None and progress.update >= budget.last_update:
        return f"finished ({budget.last_update} updates, {budget.limit})"
    if settings.max_minutes is not None and progress.seconds >= 60 * settings.max_minutes:
        return f"finished ({settings.max_minutes:g} minutes, training.max_minutes)"
    if settings.patience is not None and progress.without_gain >= settings.patience:
        return f"stopped early ({settings.patience} validations without a gain, training.patience)"
    return ""


@dataclass
class Progress:
    """The state of a training run between updates; saved with every checkpoint."""

    update: Natural = 0
    epoch: Annotated[Natural, Field(ge=1)] = 1
    batch: Natural = 0  # batches of this epoch that are done
    target_pieces: Natural = 0
    seconds: Seconds = 0.0
    cpu_seconds: Seconds = 0.0
    best: float | None = None
    best_nll: float | None = None  # among equal BLEU the lower NLL is the better
    validated: Natural = 0  # the last update that was validated
    skipped: Natural = 0  # updates whose gradient was not finite
    skipped_in_a_row: Natural = 0
    best_update: Natural = 0
    without_gain: Natural = 0
    checkpoints: list[Natural] = field(default_factory=list)


class LossAverage:
    """NLL and pieces since the last log line.

    They travel with a checkpoint, so that the first line after a resume is that of a run never stopped.
    """

    def __init__(self, device: str, nll: float = 0.0, pieces: int = 0) -> None:
        self.nll, self.pieces = torch.tensor(nll, device=device), pieces
        self._started = time.perf_counter()

    def add(self, nll: Tensor, pieces: int) -> None:
        self.nll += nll
        self.pieces += pieces

    def metrics(self) -> Metrics:
        return {
            "train/nll": self.nll.item() / self.pieces if self.pieces else math.nan,
            "train/tokens_per_second": self.pieces / (time.perf_counter() - self._started),
        }


def precision_dtype(precision: str) -> torch.dtype:
    """The dtype of matrix products."""
    return torch.bfloat16 if precision == "bf16" else torch.float32


def autocast(device: str, precision: str) -> torch.autocast:
    """bf16 matrix products under precision=bf16; weights and optimizer stay fp32."""
    return torch.autocast(torch.device(device).type, dtype=torch.bfloat16, enabled=precision == "bf16")


@dataclass(frozen=True)
class TrainState:
    """Model, optimizer, schedule and batches of a training."""

    model: Any  # an nn.Module: model(src, tgt_in) gives features, model.project(features) gives logits
    optimizer: torch.optim.Optimizer
    schedule: Schedule
    batches: Batches
    budget: Budget
    device: str = "cpu"
    precision: str = "fp32"


def accumulate_gradients(state: TrainState, batches: list[Batch], settings: TrainingSettings) -> tuple[Tensor, int]:
    """Gradients of the mean loss over all of `batches`, per target piece or sentence; the NLL sum and the pieces."""
    pieces = int(sum(int(batch.tgt_lengths.sum()) for batch in batches))
    divisor = pieces if settings.mean_over == "pieces" else sum(len(batch.src) for batch in batches)
    nll = torch.zeros((), device=state.device)
    for batch in batches:
        batch = batch.to(state.device)
        with autocast(state.device, state.precision):
            features = state.model(batch.src, batch.tgt_in)
            nll += loss.backward_in_chunks(
                state.model.project, features, batch.tgt_out, PAD, settings.label_smoothing, divisor
            )
    return nll, pieces


def gradients_within_memory(state: TrainState, batches: list[Batch], settings: TrainingSettings) -> tuple[Tensor, int]:
    """`accumulate_gradients`; where memory does not suffice, once more with every batch in two halves."""
    for is_split in (False, True):
        try:
            parts = [half for batch in batches for half in batch.halves()] if is_split else batches
            return accumulate_gradients(state, parts, settings)
        except (RuntimeError, MemoryError) as error:  # torch.OutOfMemoryError is a RuntimeError, the CPU's a plain one
            reasons = ("out of memory", "not enough memory")
            if not (isinstance(error, MemoryError) or any(reason in str(error) for reason in reasons)):
                raise
        state.model.zero_grad(set_to_none=True)
    widest = max(batches, key=lambda batch: batch.src.numel() + batch.tgt_in.numel())
    raise UserError(
        f"memory does not suffice for half a batch of {len(widest.src)} sentences with up to {widest.src.size(1)} "
        f"source and {widest.tgt_in.size(1)} target pieces; lower batching.tokens or batching.max_pieces"
    )


def prefetched_batches(
    state: TrainState, progress: Progress, ahead: int
) -> Generator[tuple[int, int, Batch], None, None]:
    """(epoch, index of the next batch, batch) from the current position, collated in the background.

    The caller closes the stream.
    """
    stream = state.batches.from_position(progress.epoch, progress.batch)
    if torch.device(state.device).type == "cuda":
        return prefetch(((epoch, done, batch.pinned()) for epoch, done, batch in stream), ahead)
    return prefetch(stream, ahead)


def fit(
    state: TrainState,
    settings: TrainingSettings,
    progress: Progress,
    callbacks: RunCallbacks,
    resumed_average: tuple[float, int] = (0.0, 0),
) -> str:
    """Train until the budget is spent; returns why it ended. `resumed_average` is that of the checkpoint."""
    with contextlib.closing(prefetched_batches(state, progress, ahead=settings.accumulate + 1)) as stream:
        # the peak travels in the optimizer's saved state, where "lr" is the last update's rate
        peak = [group.setdefault("initial_lr", group["lr"]) for group in state.optimizer.param_groups]
        loss_average, saved = LossAverage(state.device, *resumed_average), time.perf_counter()
        callbacks.validate_if_due(progress, loss_average)  # what a kill has interrupted

        while not end_reason(settings, state.budget, progress):
            # forward, backward, optimizer step
            wall, cpu = time.perf_counter(), time.process_time()
            state.model.train()
            for group, rate in zip(state.optimizer.param_groups, peak, strict=True):
                group["lr"] = rate * state.schedule(progress.update + 1)
            micro_batches = [next(stream) for _ in range(settings.accumulate)]
            nll, pieces = gradients_within_memory(state, [batch for *_, batch in micro_batches], settings)
            norm = nn.utils.clip_grad_norm_(state.model.parameters(), settings.clip_norm or math.inf).item()
            if is_finite := math.isfinite(norm):
                state.optimizer.step()
                loss_average.add(nll, pieces)
            state.optimizer.zero_grad(set_to_none=True)
            progress.update += 1
            progress.epoch, progress.batch, _ = micro_batches[-1]
            progress.target_pieces += pieces
            progress.seconds += time.perf_counter() - wall  # without validation and saving
            progress.cpu_seconds += time.process_time() - cpu
            progress.skipped_in_a_row = 0 if is_finite else progress.skipped_in_a_row + 1
            if not is_finite:
                progress.skipped += 1
                callbacks.report_skipped(progress, [(epoch, done - 1) for epoch, done, _ in micro_batches])

            # log
            if progress.update % settings.log_every == 0 or progress.update == state.budget.last_update:
                rate = state.optimizer.param_groups[0]["lr"]
                callbacks.log(progress, {**loss_average.metrics(), "train/grad_norm": norm, "learning_rate": rate})
                loss_average = LossAverage(state.device)

            # keep weights, save, validate
            if settings.keep_every and progress.update % settings.keep_every == 0:
                callbacks.keep(progress)
            stop = callbacks.stop_requested()
            if stop or time.perf_counter() - saved > 60 * settings.save_minutes:
                callbacks.save(progress, loss_average)
                saved = time.perf_counter()
            if not stop and callbacks.validate_if_due(progress, loss_average):
                saved = time.perf_counter()
            if stop or callbacks.stop_requested():
                return INTERRUPTED
        return end_reason(settings, state.budget, progress)
