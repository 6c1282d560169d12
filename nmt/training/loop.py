"""The training loop. Logging, validation and saving are callbacks; no branch on model, schedule or tracker."""

import contextlib
import math
import time
from collections.abc import Generator, Iterator
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, NamedTuple, Protocol

import numpy as np
import psutil
import torch
from pydantic import Field
from torch import Tensor, nn

from nmt.data.batching import Batch, Batches, collate, prefetch
from nmt.data.encoded_pairs import EncodedPairs
from nmt.data.tokenizer import PAD
from nmt.errors import UserError
from nmt.training import loss
from nmt.training.schedule import Schedule
from nmt.training_settings import TrainingSettings

Metrics = dict[str, float]
Stream = Generator[tuple[int, int, Batch], None, None]  # epoch, index of the next batch, batch
INTERRUPTED = "interrupted"
Natural = Annotated[int, Field(ge=0, lt=2**53)]
Seconds = Annotated[float, Field(ge=0, lt=1e12)]


class TeacherForced(Protocol):
    """What the loop needs of a model."""

    def __call__(self, src: Tensor, tgt_in: Tensor) -> Tensor: ...
    def project(self, features: Tensor) -> Tensor: ...


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


def end_reason(settings: TrainingSettings, budget: Budget, progress: "Progress") -> str:
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

    def advance(self, epoch: int, batch: int, pieces: int, seconds: float, cpu_seconds: float) -> None:
        """One update done."""
        self.update += 1
        self.epoch, self.batch = epoch, batch
        self.target_pieces += pieces
        self.seconds += seconds
        self.cpu_seconds += cpu_seconds

    def count_skipped(self, is_skipped: bool) -> None:
        self.skipped += is_skipped
        self.skipped_in_a_row = self.skipped_in_a_row + 1 if is_skipped else 0

    def state(self) -> dict[str, Any]:
        return asdict(self)


class LossAverage:
    """Sums since the last log line."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._open()

    def _open(self) -> None:
        self.nll, self.pieces = torch.zeros((), device=self._device), 0
        self.started = time.perf_counter()

    def state(self) -> tuple[float, int]:
        """The sums, so that the first log line after a resume is that of a run never stopped."""
        return self.nll.item(), self.pieces

    def restore(self, nll: float, pieces: int) -> None:
        self.nll += nll
        self.pieces += pieces

    def add(self, nll: Tensor, pieces: int) -> None:
        self.nll += nll
        self.pieces += pieces

    def mean_and_reset(self) -> Metrics:
        """The means since the last log line; starts the next average."""
        metrics = {
            "train/nll": self.nll.item() / self.pieces if self.pieces else math.nan,
            "train/tokens_per_second": self.pieces / (time.perf_counter() - self.started),
        }
        self._open()
        return metrics


class Stopwatch:
    """Wall and CPU seconds from lap to lap."""

    def __init__(self) -> None:
        self._last = (time.perf_counter(), time.process_time())

    def lap(self) -> tuple[float, float]:
        now = (time.perf_counter(), time.process_time())
        wall, cpu = now[0] - self._last[0], now[1] - self._last[1]
        self._last = now
        return wall, cpu


class Callbacks(Protocol):
    """Called by the loop: logging, validation, checkpoints."""

    def log(self, progress: Progress, metrics: Metrics) -> None: ...
    def validate(self, progress: Progress) -> None: ...
    def keep(self, progress: Progress) -> None: ...
    def save(self, progress: Progress, loss_average: LossAverage) -> None: ...
    def report_skipped(self, progress: Progress, positions: list[tuple[int, int]]) -> None: ...
    def stop_requested(self) -> bool: ...


def precision_dtype(precision: str) -> torch.dtype:
    """The dtype of matrix products."""
    return torch.bfloat16 if precision == "bf16" else torch.float32


@contextlib.contextmanager
def autocast(device: str, precision: str) -> Iterator[None]:
    """bf16 matrix products under precision=bf16; weights and optimizer stay fp32."""
    with torch.autocast(torch.device(device).type, dtype=torch.bfloat16, enabled=precision == "bf16"):
        yield


@dataclass(frozen=True)
class TrainState:
    """Model, optimizer, schedule and batches of a training."""

    model: nn.Module  # called as TeacherForced
    optimizer: torch.optim.Optimizer
    schedule: Schedule
    batches: Batches
    budget: Budget
    device: str = "cpu"
    precision: str = "fp32"

    @property
    def teacher_forced(self) -> TeacherForced:
        return self.model  # type: ignore[return-value]


def accumulate_gradients(state: TrainState, batches: list[Batch], settings: TrainingSettings) -> tuple[Tensor, int]:
    """Gradients of the mean loss over all of `batches`, per target piece or sentence; the NLL sum and the pieces."""
    model = state.teacher_forced
    pieces = int(sum(int(batch.tgt_lengths.sum()) for batch in batches))
    divisor = pieces if settings.mean_over == "pieces" else sum(len(batch.src) for batch in batches)
    nll = torch.zeros((), device=state.device)
    for batch in batches:
        batch = batch.to(state.device)
        with autocast(state.device, state.precision):
            features = model(batch.src, batch.tgt_in)
            nll += loss.backward_in_chunks(
                model.project, features, batch.tgt_out, PAD, settings.label_smoothing, divisor
            )
    return nll, pieces


def prefetched_batches(state: TrainState, progress: Progress, ahead: int) -> Stream:
    """Batches from the current position, collated in the background. The caller closes the stream."""
    stream = state.batches.from_position(progress.epoch, progress.batch)
    if torch.device(state.device).type == "cuda":
        return prefetch(((epoch, done, batch.pinned()) for epoch, done, batch in stream), ahead)
    return prefetch(stream, ahead)


def fit(
    state: TrainState,
    settings: TrainingSettings,
    progress: Progress,
    callbacks: Callbacks,
    loss_average: tuple[float, int] = (0.0, 0),
) -> str:
    """Train until the budget is spent; returns why it ended. `loss_average` is that of the checkpoint resumed from."""
    with contextlib.closing(prefetched_batches(state, progress, ahead=settings.accumulate + 1)) as stream:
        return _fit(state, settings, progress, callbacks, loss_average, stream)


def _fit(
    state: TrainState,
    settings: TrainingSettings,
    progress: Progress,
    callbacks: Callbacks,
    resumed_average: tuple[float, int],
    stream: Stream,
) -> str:
    # the peak travels in the optimizer's saved state, where "lr" is the last update's rate
    peak = [group.setdefault("initial_lr", group["lr"]) for group in state.optimizer.param_groups]
    loss_average, stopwatch, saved = LossAverage(state.device), Stopwatch(), time.perf_counter()
    loss_average.restore(*resumed_average)
    _validate_if_due(state, settings, progress, callbacks, loss_average)  # what a kill has interrupted

    while not end_reason(settings, state.budget, progress):
        # forward, backward, optimizer step
        state.model.train()
        for group, rate in zip(state.optimizer.param_groups, peak, strict=True):
            group["lr"] = rate * state.schedule(progress.update + 1)
        *_, (epoch, batch, _) = micro_batches = [next(stream) for _ in range(settings.accumulate)]
        nll, pieces = gradients_within_memory(state, [batch for *_, batch in micro_batches], settings)
        norm = nn.utils.clip_grad_norm_(state.model.parameters(), settings.clip_norm or math.inf)
        is_finite = math.isfinite(norm.item())
        if is_finite:
            state.optimizer.step()
            loss_average.add(nll, pieces)
        state.optimizer.zero_grad(set_to_none=True)
        progress.advance(epoch, batch, pieces, *stopwatch.lap())
        progress.count_skipped(not is_finite)
        if not is_finite:
            callbacks.report_skipped(progress, [(epoch, done - 1) for epoch, done, _ in micro_batches])

        # log
        if progress.update % settings.log_every == 0 or progress.update == state.budget.last_update:
            rate = state.optimizer.param_groups[0]["lr"]
            callbacks.log(
                progress, {**loss_average.mean_and_reset(), "train/grad_norm": norm.item(), "learning_rate": rate}
            )

        # keep weights, save, validate
        if settings.keep_every and progress.update % settings.keep_every == 0:
            callbacks.keep(progress)
            stopwatch.lap()
        stop = callbacks.stop_requested()
        if stop or time.perf_counter() - saved > 60 * settings.save_minutes:
            callbacks.save(progress, loss_average)
            saved = time.perf_counter()
        if not stop and _validate_if_due(state, settings, progress, callbacks, loss_average):
            saved = time.perf_counter()
        stopwatch.lap()  # validation and saving do not count as training time
        if stop or callbacks.stop_requested():
            return INTERRUPTED
    return end_reason(settings, state.budget, progress)


def _validate_if_due(
    state: TrainState, settings: TrainingSettings, progress: Progress, callbacks: Callbacks, loss_average: LossAverage
) -> bool:
    """Saves, then validates: a run that is killed while it validates repeats the validation and no training."""
    is_due = progress.update % settings.validate_every == 0 or bool(end_reason(settings, state.budget, progress))
    if not is_due or progress.validated == progress.update or progress.skipped_in_a_row:
        return False
    callbacks.save(progress, loss_average)
    callbacks.validate(progress)
    progress.validated = progress.update
    if end_reason(settings, state.budget, progress) or callbacks.stop_requested():
        callbacks.save(progress, loss_average)
    return True


def gradients_within_memory(state: TrainState, batches: list[Batch], settings: TrainingSettings) -> tuple[Tensor, int]:
    """`accumulate_gradients`; where memory does not suffice, once more with every batch in two halves."""
    try:
        return accumulate_gradients(state, batches, settings)
    except (RuntimeError, MemoryError) as error:  # torch.OutOfMemoryError is a RuntimeError, the CPU's a plain one
        if not _is_out_of_memory(error):
            raise
    state.model.zero_grad(set_to_none=True)
    halves = [half for batch in batches for half in batch.halves()]
    try:
        return accumulate_gradients(state, halves, settings)
    except (RuntimeError, MemoryError) as error:
        if not _is_out_of_memory(error):
            raise
        widest = max(batches, key=lambda batch: batch.src.numel() + batch.tgt_in.numel())
        sentences, source, target = len(widest.src), widest.src.size(1), widest.tgt_in.size(1)
        raise UserError(
            f"memory does not suffice for half a batch of {sentences} sentences with up to {source} source and "
            f"{target} target pieces; lower batching.tokens or batching.max_pieces"
        ) from None


def _is_out_of_memory(error: BaseException) -> bool:
    text = str(error)
    return isinstance(error, MemoryError) or "out of memory" in text or "not enough memory" in text


class CostEstimate(NamedTuple):
    """Time of an update of average size; memory at the largest batch."""

    seconds_per_update: float
    peak_bytes: int


def estimate_cost(state: TrainState, pairs: EncodedPairs, epoch: int, settings: TrainingSettings) -> CostEstimate:
    """Forward and backward on the largest and on a median batch; weights and random state are left unchanged."""
    plan = state.batches.plan(epoch)
    order = np.argsort(plan.sizes)
    with torch.random.fork_rng():
        state.model.train()
        for index in (order[-1], order[len(order) // 2]):
            start = time.perf_counter()
            accumulate_gradients(state, [collate(pairs, plan[index])], settings)
            seconds = time.perf_counter() - start
    state.model.zero_grad(set_to_none=True)
    optimizer_bytes = 2 * sum(p.numel() * p.element_size() for p in state.model.parameters())
    if state.device.startswith("cuda"):
        return CostEstimate(seconds * settings.accumulate, torch.cuda.max_memory_allocated() + optimizer_bytes)
    return CostEstimate(seconds * settings.accumulate, psutil.Process().memory_info().rss + optimizer_bytes)
