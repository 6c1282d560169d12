"""The only training loop. What to do with a result is handed in; no branch on model, schedule or tracker."""

import contextlib
import math
import time
from collections.abc import Generator, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from nmt.data.batching import Batch, Batches
from nmt.data.prefetch import prefetch
from nmt.data.tokenizer import PAD
from nmt.errors import ConfigError, UserError, require_whole
from nmt.training import loss
from nmt.training.schedule import Schedule

Metrics = dict[str, float]
Stream = Generator[tuple[int, int, Batch], None, None]  # epoch, index of the next batch, batch
INTERRUPTED = "interrupted"


class TeacherForced(Protocol):
    """What the loop needs of a model."""

    def __call__(self, src: Tensor, tgt_in: Tensor) -> Tensor: ...
    def project(self, features: Tensor) -> Tensor: ...


@dataclass(frozen=True)
class TrainingSettings:
    """Budgets (whichever comes first), the gradient, and how often to log, validate and save, in updates."""

    max_updates: int | None = None
    max_epochs: float | None = None
    max_minutes: float | None = None
    label_smoothing: float = 0.0
    mean_over: str = "pieces"
    clip_norm: float = 1.0
    accumulate: int = 1
    log_every: int = 50
    validate_every: int = 500
    save_minutes: float = 5.0
    patience: int | None = None
    monitor: str = "bleu"
    bleu_sentences: int = 500
    average_last: int = 0
    keep_every: int | None = None

    def __post_init__(self) -> None:
        for name in ("accumulate", "log_every", "validate_every"):
            require_whole(f"training.{name}", getattr(self, name))
        for name in ("bleu_sentences", "average_last"):
            require_whole(f"training.{name}", getattr(self, name), least=0)
        if self.keep_every is not None:
            require_whole("training.keep_every", self.keep_every)
        for name in ("max_updates", "max_epochs", "max_minutes", "patience"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ConfigError(f"training.{name}={value}: it must be above 0, or null for no limit")
        if self.max_updates is None and self.max_epochs is None and self.max_minutes is None:
            raise ConfigError("give a budget: training.max_updates, training.max_epochs or training.max_minutes")
        if not 0 <= self.label_smoothing < 1:
            raise ConfigError(f"training.label_smoothing={self.label_smoothing}: it must be from 0 to below 1")
        if self.mean_over not in ("pieces", "sentences"):
            raise ConfigError(f"training.mean_over={self.mean_over}: write pieces or sentences")
        if self.monitor not in ("bleu", "nll"):
            raise ConfigError(f"training.monitor={self.monitor}: write bleu or nll")

    def last_update(self, updates_per_epoch: float) -> int | None:
        """The update at which the budget in updates or epochs ends; None where only time limits it."""
        ends = [self.max_updates] if self.max_updates else []
        if self.max_epochs:
            ends.append(max(1, math.ceil(self.max_epochs * updates_per_epoch)))
        return min(ends) if ends else None

    def ending(self, progress: "Progress", last: int | None) -> str:
        """Why the training is over; empty while it is not."""
        if last is not None and progress.update >= last:
            return f"finished ({last} updates)"
        if self.max_minutes is not None and progress.seconds >= 60 * self.max_minutes:
            return f"finished ({self.max_minutes:g} minutes)"
        if self.patience is not None and progress.without_gain >= self.patience:
            return f"stopped early ({self.patience} validations without a gain)"
        return ""


@dataclass
class Progress:
    """Where a training stands; saved with every checkpoint."""

    update: int = 0
    epoch: int = 1
    batch: int = 0  # batches of this epoch already used
    target_pieces: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    best: float | None = None
    best_update: int = 0
    without_gain: int = 0
    checkpoints: list[int] = field(default_factory=list)

    def advance(self, epoch: int, batch: int, pieces: int, seconds: float, cpu_seconds: float) -> None:
        """One update done."""
        self.update += 1
        self.epoch, self.batch = epoch, batch
        self.target_pieces += pieces
        self.seconds += seconds
        self.cpu_seconds += cpu_seconds

    def state(self) -> dict[str, Any]:
        return asdict(self)


class Window:
    """Sums since the last log line."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._open()

    def _open(self) -> None:
        self.nll, self.pieces = torch.zeros((), device=self._device), 0
        self.started = time.perf_counter()

    def add(self, nll: Tensor, pieces: int) -> None:
        self.nll += nll
        self.pieces += pieces

    def close(self) -> Metrics:
        """The means of the window that ends here; the next one begins."""
        metrics = {
            "train/nll": self.nll.item() / self.pieces,
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


class Observer(Protocol):
    """What happens around the updates: logs, validation, checkpoints."""

    def log(self, progress: Progress, metrics: Metrics) -> None: ...
    def validate(self, progress: Progress) -> None: ...
    def keep(self, progress: Progress) -> None: ...
    def save(self, progress: Progress) -> None: ...
    def stop_requested(self) -> bool: ...


def product_type(precision: str) -> torch.dtype:
    """The type of matrix products."""
    return torch.bfloat16 if precision == "bf16" else torch.float32


@contextlib.contextmanager
def autocast(device: str, precision: str) -> Iterator[None]:
    """bf16 matrix products where asked for; weights and optimizer stay fp32."""
    with torch.autocast(torch.device(device).type, dtype=torch.bfloat16, enabled=precision == "bf16"):
        yield


@dataclass(frozen=True)
class Job:
    """What is trained, and with what."""

    model: nn.Module  # called as TeacherForced
    optimizer: torch.optim.Optimizer
    schedule: Schedule
    batches: Batches
    last: int | None  # the update at which the budget ends; None where only time limits it
    device: str = "cpu"
    precision: str = "fp32"

    @property
    def teacher_forced(self) -> TeacherForced:
        return self.model  # type: ignore[return-value]


def one_update(job: Job, batches: list[Batch], settings: TrainingSettings) -> tuple[Tensor, int]:
    """Gradients of the mean loss over all of `batches`, per target piece or sentence; the NLL sum and the pieces."""
    model = job.teacher_forced
    pieces = int(sum(int(batch.tgt_lengths.sum()) for batch in batches))
    divisor = pieces if settings.mean_over == "pieces" else sum(len(batch.src) for batch in batches)
    nll = torch.zeros((), device=job.device)
    for batch in batches:
        batch = batch.to(job.device)
        with autocast(job.device, job.precision):
            features = model(batch.src, batch.tgt_in)
            nll += loss.backward(model.project, features, batch.tgt_out, PAD, settings.label_smoothing, divisor)
    return nll, pieces


def ready_batches(job: Job, progress: Progress, ahead: int) -> Stream:
    """Batches from where the training stands, made while the updates before them run. To be closed."""
    stream = job.batches.from_position(progress.epoch, progress.batch)
    if torch.device(job.device).type == "cuda":
        return prefetch(((epoch, done, batch.pinned()) for epoch, done, batch in stream), ahead)
    return prefetch(stream, ahead)


def fit(job: Job, settings: TrainingSettings, progress: Progress, observer: Observer) -> str:
    """Train until the budget is spent; returns why it ended."""
    with contextlib.closing(ready_batches(job, progress, ahead=settings.accumulate + 1)) as stream:
        return _fit(job, settings, progress, observer, stream)


def _fit(job: Job, settings: TrainingSettings, progress: Progress, observer: Observer, stream: Stream) -> str:
    # the peak travels in the optimizer's saved state, where "lr" is the last update's rate
    peak = [group.setdefault("initial_lr", group["lr"]) for group in job.optimizer.param_groups]
    window, watch, saved = Window(job.device), Stopwatch(), time.perf_counter()

    while not settings.ending(progress, job.last):
        # one update
        job.model.train()
        for group, rate in zip(job.optimizer.param_groups, peak, strict=True):
            group["lr"] = rate * job.schedule(progress.update + 1)
        *_, (epoch, batch, _) = taken = [next(stream) for _ in range(settings.accumulate)]
        nll, pieces = one_update(job, [batch for *_, batch in taken], settings)
        norm = nn.utils.clip_grad_norm_(job.model.parameters(), settings.clip_norm or math.inf)
        job.optimizer.step()
        job.optimizer.zero_grad(set_to_none=True)
        progress.advance(epoch, batch, pieces, *watch.lap())
        window.add(nll, pieces)

        # now and then: say how it goes (.item() waits for the device)
        if progress.update % settings.log_every == 0 or progress.update == job.last:
            _check(norm, progress)
            rate = job.optimizer.param_groups[0]["lr"]
            observer.log(progress, {**window.close(), "train/grad_norm": norm.item(), "learning_rate": rate})

        # more rarely: keep these weights; measure, and keep the result
        if settings.keep_every and progress.update % settings.keep_every == 0:
            _check(norm, progress)
            observer.keep(progress)
            watch.lap()
        due = progress.update % settings.validate_every == 0 or bool(settings.ending(progress, job.last))
        stop = observer.stop_requested()
        if due or stop or time.perf_counter() - saved > 60 * settings.save_minutes:
            _check(norm, progress)
            if due:
                observer.validate(progress)
            observer.save(progress)
            saved = time.perf_counter()
            watch.lap()  # what is no training is not counted as such
        if stop:
            return INTERRUPTED
    return settings.ending(progress, job.last)


def _check(norm: Tensor, progress: Progress) -> None:
    """UserError where the gradient is no number any more, so that no such weights are ever saved."""
    if not math.isfinite(norm.item()):
        raise UserError(
            f"the gradient norm is {norm.item()} at update {progress.update}: the training has diverged; "
            f"lower optimizer.lr or raise schedule.warmup_updates (the last checkpoint is kept)"
        )
