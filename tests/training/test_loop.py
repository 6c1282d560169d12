"""The training loop: exact resumption, budgets, gradient accumulation, checkpoints."""

import contextlib
import json
import threading
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from nmt.data.batching import Batches
from nmt.data.encoded_pairs import EncodedPairs, Sequences
from nmt.errors import UserError
from nmt.training import checkpoints
from nmt.training.callbacks import SKIPPED, RunCallbacks, StopRequest, restore
from nmt.training.loop import (
    Budget,
    Metrics,
    Progress,
    TrainState,
    accumulate_gradients,
    fit,
    gradients_within_memory,
    planned_budget,
    prefetched_batches,
)
from nmt.training.schedule import inverse_sqrt
from nmt.training.trackers import JsonLines, NoTracker
from nmt.training_settings import BatchingSettings, TrainingSettings

V, D = 17, 5
NO_LIMIT = Budget(None, "")


class Toy(nn.Module):
    """A bag of source words and the previous target word, with dropout and tied weights."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(V, D)
        self.mix = nn.Linear(2 * D, D)
        self.dropout = nn.Dropout(0.2)
        self.out = nn.Linear(D, V, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        bag = self.embed(src).mean(dim=1, keepdim=True).expand(-1, tgt_in.shape[1], -1)
        return torch.tanh(self.mix(self.dropout(torch.cat([bag, self.embed(tgt_in)], dim=-1))))

    def project(self, features: Tensor) -> Tensor:
        return self.out(features)


def pairs(count: int = 43) -> EncodedPairs:
    rng = torch.Generator().manual_seed(3)
    rows = [
        torch.randint(4, V, (int(n),), generator=rng).tolist() for n in torch.randint(1, 7, (count,), generator=rng)
    ]
    return EncodedPairs(Sequences.of(rows), Sequences.of(rows))


BATCHES = Batches(pairs(), BatchingSettings.defaults(tokens=37))


class Stop(StopRequest):
    """Requests a stop at a given update; installs no signal handler."""

    def __init__(self, progress: Progress, at: int | None) -> None:
        self._progress, self._at = progress, at

    @property
    def signal(self) -> int | None:  # type: ignore[override]
        return 15 if self._progress.update == self._at else None


def toy_state(model: Toy, budget: Budget = NO_LIMIT, precision: str = "fp32") -> TrainState:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    return TrainState(model, optimizer, inverse_sqrt(warmup_updates=3), BATCHES, budget, precision=precision)


def train(run_dir: Path, stop_at: int | None = None, validations: list[Metrics] | None = None, **budget: object) -> Toy:
    run_dir.mkdir(exist_ok=True)
    settings = TrainingSettings.defaults(**{"log_every": 1, "validate_every": 4, **budget})  # type: ignore[arg-type]
    torch.manual_seed(11)
    model = Toy()
    state = toy_state(model, planned_budget(settings, len(BATCHES.plan(1))))
    saved = checkpoints.load_resume(run_dir)
    progress = restore(saved, model, state.optimizer) if saved else Progress()
    lines = JsonLines(run_dir / "metrics.jsonl", progress.update, progress.validated == progress.update)
    results = iter(validations or [])
    callbacks = RunCallbacks(
        run_dir,
        state,
        settings,
        lambda: next(results, {}),
        lines,
        NoTracker(),
        Stop(progress, stop_at),
        {},
    )
    fit(state, settings, progress, callbacks, saved["loss_average"] if saved else (0.0, 0))
    lines.close()
    return model


@pytest.mark.parametrize("stop_at", [1, 6, 12])
def test_a_resumed_training_equals_an_uninterrupted_one(tmp_path: Path, stop_at: int) -> None:
    whole = train(tmp_path / "whole", max_updates=15)
    train(tmp_path / "parts", stop_at=stop_at, max_updates=15)
    resumed = train(tmp_path / "parts", max_updates=15)
    for name, value in whole.state_dict().items():
        assert resumed.state_dict()[name].equal(value), name


def test_kept_weights_are_those_of_their_update(tmp_path: Path) -> None:
    train(tmp_path / "kept", max_updates=9, keep_every=3)
    for update in (3, 6, 9):
        kept = Toy()
        checkpoints.load_weights(tmp_path / "kept" / "kept" / f"update-{update:07}.safetensors", kept)
        alone = train(tmp_path / f"until-{update}", max_updates=update)
        assert all(value.equal(kept.state_dict()[name]) for name, value in alone.state_dict().items())
    assert len(list((tmp_path / "kept" / "kept").iterdir())) == 3


@pytest.mark.parametrize("ending", ["finished", "failed"])
def test_no_thread_is_left_running(tmp_path: Path, ending: str) -> None:
    before = set(threading.enumerate())
    failing = (1 // (n - 1) for n in range(2))  # the second validation divides by zero
    validations = ({"valid/nll": float(value)} for value in failing) if ending == "failed" else None
    with pytest.raises(ZeroDivisionError) if ending == "failed" else contextlib.nullcontext():
        train(tmp_path, validations=validations, max_updates=9)  # type: ignore[arg-type]
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("accumulate", [1, 3])
def test_prefetched_batches_are_those_of_the_plan(accumulate: int) -> None:
    stream = prefetched_batches(toy_state(Toy()), Progress(batch=2), ahead=accumulate + 1)
    plain = BATCHES.from_position(1, 2)
    for _ in range(2 * len(BATCHES.plan(1))):
        (epoch, done, batch), expected = next(stream), next(plain)
        assert (epoch, done) == expected[:2]
        assert all(a.equal(b) for a, b in zip(batch, expected[2], strict=True))


def test_each_update_is_logged_once_though_the_run_was_killed_after_its_last_checkpoint(tmp_path: Path) -> None:
    train(tmp_path, stop_at=6, max_updates=15)
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"update": 7}\n{"update": 8}\n{"upd')
    train(tmp_path, max_updates=15)
    assert [json.loads(line)["update"] for line in (tmp_path / "metrics.jsonl").open()] == list(range(1, 16))


def test_a_loss_averaged_over_sentences_weights_each_by_its_length() -> None:
    model = Toy().eval()
    *_, batch = next(BATCHES.from_position(1, 0))
    gradients = []
    for mean_over in ("pieces", "sentences"):
        model.zero_grad()
        accumulate_gradients(toy_state(model), [batch], TrainingSettings.defaults(max_updates=1, mean_over=mean_over))
        assert model.embed.weight.grad is not None
        gradients.append(model.embed.weight.grad)
    assert_close(gradients[1], gradients[0] * int(batch.tgt_lengths.sum()) / len(batch.src))


def test_accumulated_batches_give_the_gradient_of_one_large_batch() -> None:
    model = Toy().eval()
    batches = [batch for *_, batch in (next(BATCHES.from_position(1, i)) for i in range(3))]
    accumulate_gradients(toy_state(model), batches, TrainingSettings.defaults(max_updates=1))
    accumulated = model.embed.weight.grad
    model.zero_grad()
    pieces = [int(batch.tgt_lengths.sum()) for batch in batches]
    total = torch.zeros_like(model.embed.weight)
    for batch, count in zip(batches, pieces, strict=True):
        model.zero_grad()
        accumulate_gradients(toy_state(model), [batch], TrainingSettings.defaults(max_updates=1))
        assert model.embed.weight.grad is not None
        total += model.embed.weight.grad * count / sum(pieces)
    assert_close(accumulated, total)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_single_batch_is_overfitted(precision: str) -> None:
    model = Toy().eval()
    batch = next(BATCHES.from_position(1, 0))[2]
    state = toy_state(model, precision=precision)
    losses = []
    for _ in range(60):
        nll, count = accumulate_gradients(state, [batch], TrainingSettings.defaults(max_updates=1))
        losses.append(nll.item() / count)
        state.optimizer.step()
        state.optimizer.zero_grad()
    assert losses[-1] < 0.4 * losses[0]


def test_tied_weights_are_saved_once_and_loaded_as_one_tensor(tmp_path: Path) -> None:
    train(tmp_path, max_updates=8)
    model = Toy()
    checkpoints.load_weights(tmp_path / checkpoints.LAST, model)
    assert model.out.weight is model.embed.weight
    assert sum(p.numel() for p in model.parameters()) == V * D + 2 * D * D + D
    assert checkpoints.update_of(tmp_path / checkpoints.LAST) == 8


def test_the_average_is_the_mean_of_the_last_validations(tmp_path: Path) -> None:
    train(tmp_path, max_updates=12, average_last=2)
    kept = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert kept == ["12.safetensors", "8.safetensors"]
    checkpoints.average([tmp_path / "checkpoints" / name for name in kept], tmp_path / "mean.safetensors")
    models = [Toy() for _ in range(3)]
    for model, path in zip(models, [*kept, "../mean.safetensors"], strict=True):
        checkpoints.load_weights(tmp_path / "checkpoints" / path, model)
    assert_close(models[2].embed.weight, (models[0].embed.weight + models[1].embed.weight) / 2)


def test_the_best_weights_are_kept_and_patience_ends_the_training(tmp_path: Path) -> None:
    validations = [{"valid/nll": 1.0, "valid/bleu": bleu} for bleu in (1.0, 9.0, 3.0, 4.0, 20.0)]
    train(tmp_path, validations=validations, max_updates=100, patience=2)
    assert checkpoints.update_of(tmp_path / checkpoints.BEST) == 8
    assert checkpoints.update_of(tmp_path / checkpoints.LAST) == 16


def test_epochs_are_a_budget_too() -> None:
    per_epoch = len(BATCHES.plan(1))
    two_epochs = Budget(2 * per_epoch, "training.max_epochs=2")
    assert planned_budget(TrainingSettings.defaults(max_epochs=2), per_epoch) == two_epochs
    three_updates = Budget(3, "training.max_updates=3")
    assert planned_budget(TrainingSettings.defaults(max_epochs=2, max_updates=3), per_epoch) == three_updates
    assert planned_budget(TrainingSettings.defaults(max_minutes=1), per_epoch).last_update is None


def test_a_diverged_training_stops_and_keeps_the_last_good_checkpoint(tmp_path: Path) -> None:
    train(tmp_path, stop_at=5, max_updates=17)
    before = (tmp_path / checkpoints.LAST).read_bytes()
    state = checkpoints.load_resume(tmp_path)
    assert state is not None
    state["model"]["mix.weight"].fill_(float("nan"))
    checkpoints.save_resume(tmp_path, state)
    with pytest.raises(UserError, match="diverged"):
        train(tmp_path, max_updates=17)
    assert (tmp_path / checkpoints.LAST).read_bytes() == before


def test_a_damaged_resume_file_is_named(tmp_path: Path) -> None:
    (tmp_path / checkpoints.RESUME).write_bytes(b"not a checkpoint")
    with pytest.raises(UserError, match=r"resume\.pt"):
        checkpoints.load_resume(tmp_path)


def test_a_damaged_resume_file_gives_way_to_the_one_before(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = train(tmp_path / "whole", max_updates=15)
    train(tmp_path / "parts", max_updates=9)
    (tmp_path / "parts" / checkpoints.RESUME).write_bytes(b"")
    resumed = train(tmp_path / "parts", max_updates=15)
    assert "resume.previous.pt" in capsys.readouterr().err
    assert all(value.equal(resumed.state_dict()[name]) for name, value in whole.state_dict().items())


def test_among_equal_bleu_the_lower_nll_is_the_better(tmp_path: Path) -> None:
    validations = [{"valid/nll": nll, "valid/bleu": 0.0} for nll in (5.5, 5.1, 4.2, 4.0, 4.1)]
    train(tmp_path, validations=validations, max_updates=20, patience=2)
    assert checkpoints.update_of(tmp_path / checkpoints.BEST) == 16


def test_a_checkpoint_is_saved_before_each_validation_and_the_validation_is_repeated(tmp_path: Path) -> None:
    killed = (1 // (n - 1) * {"valid/nll": 1.0} for n in range(2))  # the second one fails, like a kill
    with pytest.raises((ZeroDivisionError, TypeError)):
        train(tmp_path, validations=killed, max_updates=9)  # type: ignore[arg-type]
    state = checkpoints.load_resume(tmp_path)
    assert state is not None
    assert (state["progress"]["update"], state["progress"]["validated"]) == (4, 0)
    train(tmp_path, validations=[{"valid/nll": 3.0}, {"valid/nll": 2.0}, {"valid/nll": 1.0}], max_updates=9)
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").open()]
    assert [line["update"] for line in lines if "valid/nll" in line] == [4, 8, 9]
    assert [line["update"] for line in lines if "train/nll" in line] == list(range(1, 10))


def test_the_first_line_after_a_resume_is_that_of_a_run_never_stopped(tmp_path: Path) -> None:
    train(tmp_path / "whole", max_updates=12, log_every=5)
    train(tmp_path / "parts", stop_at=7, max_updates=12, log_every=5)
    train(tmp_path / "parts", max_updates=12, log_every=5)
    losses = [
        [json.loads(line).get("train/nll") for line in (tmp_path / name / "metrics.jsonl").open()]
        for name in ("whole", "parts")
    ]
    assert losses[0] == losses[1]


def test_an_update_without_a_finite_gradient_is_skipped_and_its_sentences_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clip, calls = torch.nn.utils.clip_grad_norm_, []

    def sometimes_nan(*arguments: object) -> Tensor:
        calls.append(None)
        norm = clip(*arguments)  # type: ignore[arg-type]
        return norm * float("nan") if len(calls) in (3, 5) else norm

    monkeypatch.setattr("torch.nn.utils.clip_grad_norm_", sometimes_nan)
    train(tmp_path, max_updates=8)
    skipped = [json.loads(line) for line in (tmp_path / SKIPPED).open()]
    assert [line["update"] for line in skipped] == [3, 5]
    assert skipped[0]["pairs"] == BATCHES.plan(1)[2].tolist()
    state = checkpoints.load_resume(tmp_path)
    assert state is not None
    assert (state["progress"]["skipped"], state["progress"]["skipped_in_a_row"]) == (2, 0)


def test_a_batch_beyond_the_memory_is_split_once_and_then_named(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Toy().eval()
    *_, batch = next(BATCHES.from_position(1, 0))
    settings = TrainingSettings.defaults(max_updates=1)
    whole, _ = accumulate_gradients(toy_state(model), [batch], settings)
    gradient = model.embed.weight.grad
    assert gradient is not None
    forward, limit = Toy.forward, [len(batch.src) - 1]

    def limited(self: Toy, src: Tensor, tgt_in: Tensor) -> Tensor:
        if len(src) > limit[0]:
            raise RuntimeError("[enforce fail] DefaultCPUAllocator: not enough memory: you tried to allocate 8 bytes")
        return forward(self, src, tgt_in)

    monkeypatch.setattr(Toy, "forward", limited)
    model.zero_grad()
    halves, _ = gradients_within_memory(toy_state(model), [batch], settings)
    assert_close(halves, whole)
    assert_close(model.embed.weight.grad, gradient)
    limit[0] = 0
    with pytest.raises(UserError, match=rf"{len(batch.src)} sentences .* batching\.tokens"):
        gradients_within_memory(toy_state(model), [batch], settings)
