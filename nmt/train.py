"""Train one system: python -m nmt.train experiment=bahdanau (--help for the rest)."""

import math
import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch
from hydra.utils import instantiate

from nmt import loading, run
from nmt.cli import Composed, program, say
from nmt.data.batching import Batches, collate, validation_batches
from nmt.data.preparation.prepared_corpus import PreparedCorpus, data_identity, prepare_from_config
from nmt.data.tokenizer import PAD, Tokenizer, load_tokenizers
from nmt.decoding.translator import Translator
from nmt.errors import ConfigError, Interrupted, UserError
from nmt.evaluation.metrics import corpus_bleu
from nmt.files import read_json, read_yaml, remove_temporaries, require_self_contained, write_bytes
from nmt.progress import format_duration
from nmt.provenance import command_of, provenance
from nmt.schema import check, shown
from nmt.settings import SearchSettings
from nmt.training import callbacks, checkpoints, loop, loss
from nmt.training.trackers import JsonLines, Tracker
from nmt.training_settings import TrainingSettings


@program("train")
def main(composed: Composed) -> None:
    settings, config = composed.settings, composed.config
    tracker = instantiate(config["tracker"])  # first: a missing package is reported before any work
    config["name"] = composed.choices["experiment"]
    device = loading.choose_device(settings.device)
    config["precision"] = loading.choose_precision(settings.precision, device)
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)

    run_dir = _run_dir(composed)
    if run_dir.is_dir():
        require_self_contained(run_dir)
    _restore_damaged(run_dir)
    parent = _parent(composed, run_dir) if settings.init_from else None
    stored = run.check_resume(run_dir, config)
    attention_kernel = _require_buildable(config, settings.training, device)
    prepared = _prepare(config, run_dir if stored else None, parent)
    batches = Batches(prepared.train, settings.batching)
    budget = loop.planned_budget(settings.training, len(batches.plan(1)) / settings.training.accumulate)
    schedule = instantiate(config["schedule"])(total_updates=budget.last_update)
    torch.manual_seed(settings.seed)
    model = loading.build_model(config["model"], prepared.source.vocab_size, prepared.target.vocab_size).to(device)
    optimizer = instantiate(config["optimizer"])(model.parameters())
    if parent is not None:
        checkpoints.load_weights(parent.weights, model)
        say(f"weights and pieces are those of {parent.path}, update {parent.updates:,}")
    state = loop.TrainState(model, optimizer, schedule, batches, budget, device, config["precision"])
    with run.run_lock(run_dir):  # from here on something is written
        if bool(run.check_resume(run_dir, config)) != bool(stored):
            raise UserError(f"another process has just started a run in {run_dir}; start this one again")
        if not stored:
            longest = int(prepared.train.src.lengths.max())
            facts = {**prepared.facts, "prepared": prepared.folder.name, "longest_source": longest}
            run.create_run(run_dir, config, facts, prepared.source, prepared.target)
        TrainingRun(run_dir, config, stored, settings.training, prepared, state, attention_kernel).run(tracker)


def _run_dir(composed: Composed) -> Path:
    """outputs/<data>/<experiment>[-seed<N>]; in a sweep with what else differs between its jobs in the name."""
    if composed.settings.run_dir:
        return Path(composed.settings.run_dir).expanduser()
    experiment, data = composed.choices["experiment"], composed.choices["data"]
    differing = [one for one in composed.swept if one.split("=")[0] not in ("experiment", "seed", "data")]
    parts = [re.sub(r"[^\w.=+-]+", "_", re.sub(r"^[\w@]+\.(?:\w+\.)*", "", one)) for one in differing]
    seed = [f"seed{composed.settings.seed}"] if composed.settings.seed != 1 else []
    return Path("outputs", data, "-".join([experiment, *parts, *seed]))


def _restore_damaged(run_dir: Path) -> None:
    """Small files of a run that a power cut has damaged, from its resume state, which holds them too."""
    if not any((run_dir / name).exists() for name in (checkpoints.RESUME, checkpoints.PREVIOUS)):
        return
    damaged = [run_dir / name for name in run.SMALL_FILES if not _is_whole(run_dir / name)]
    if not damaged:
        return
    with run.run_lock(run_dir):
        files = (checkpoints.load_resume(run_dir) or {}).get("files", {})
        for path in damaged:
            if path.name in files:
                write_bytes(path, files[path.name])
                say(f"note: {path} was damaged; restored from the resume state")


def _is_whole(path: Path) -> bool:
    """Whether one of the small files can be read; what it says is checked elsewhere."""
    readers: dict[str, Callable[[Path], Any]] = {run.CONFIG: read_yaml, run.DATA: read_json}
    try:
        return bool(readers.get(path.name, partial(Tokenizer.from_file, normalises=False))(path))
    except (UserError, OSError):
        return False


def _parent(composed: Composed, run_dir: Path) -> loading.Run | None:
    """The run of init_from; None where this training has its weights already. Its pieces decide `tokenizer`.

    ConfigError, before any text is read, for settings that its pieces or weights do not allow.
    """
    config, origin = composed.config, Path(composed.settings.init_from).expanduser()
    trust = [*composed.trust, *(section["_target_"] for section in run.sections_in(config))]
    parent = None if (run_dir / run.CONFIG).exists() else loading.load_run(origin, trust)
    tokenizer = (parent.config if parent else run.read_config(run_dir, trust))["tokenizer"]
    for key, value in tokenizer.items():
        if f"tokenizer.{key}" in composed.typed and config["tokenizer"][key] != value:
            raise ConfigError(
                f"tokenizer.{key}={shown(config['tokenizer'][key])}: the pieces are those of init_from={origin}, "
                f"learned with tokenizer.{key}={shown(value)}; leave it out"
            )
    config["tokenizer"] = dict(tokenizer)
    if parent is not None:
        sizes = (parent.source_tokenizer.vocab_size, parent.target_tokenizer.vocab_size)
        try:
            checkpoints.require_weights_of(parent.weights, loading.model_shape(config["model"], *sizes))
        except UserError as error:
            changed = run.changed_settings({"model": parent.config["model"]}, {"model": config["model"]})
            raise ConfigError(f"init_from={origin} is another model ({'; '.join(changed) or error})") from None
    return parent


def _require_buildable(config: dict[str, Any], settings: TrainingSettings, device: str) -> str:
    """Refuses what the settings alone rule out, before a corpus is prepared for hours; returns the attention kernel."""
    instantiate(config["schedule"])(total_updates=loop.planned_budget(settings, updates_per_epoch=1.0).last_update)
    model = loading.model_shape(config["model"])  # whatever its vocabulary
    loading.require_memory(model, device)
    instantiate(config["optimizer"])(model.parameters())
    return model.describe_attention(torch.device(device), loop.precision_dtype(config["precision"]))


def _prepare(config: dict[str, Any], run_dir: Path | None, parent: loading.Run | None) -> PreparedCorpus:
    """The corpus as ids; at a resume with the run's pieces, and refused where the text is another."""
    prepare = partial(prepare_from_config, config, partial(instantiate, config["data"]))
    if run_dir is None:
        return prepare((parent.source_tokenizer, parent.target_tokenizer) if parent else None)
    tokenizers = load_tokenizers(run_dir)
    prepared = prepare(tokenizers if config["init_from"] else None)
    if [tokenizer.model for tokenizer in tokenizers] != [prepared.source.model, prepared.target.model]:
        prepared = prepare(tokenizers)  # another version of SentencePiece has learned others
    if data_identity(run.read_data_facts(run_dir)) != data_identity(prepared.facts):
        raise ConfigError(f"{run_dir} was trained on other text than this (checksums differ); give the same files")
    return prepared


@dataclass(frozen=True)
class TrainingRun:
    """One run, from the directory's last checkpoint, or from nothing, to the end of the budget."""

    run_dir: Path
    config: dict[str, Any]
    stored: dict[str, Any] | None  # the configuration with which it was last started
    settings: TrainingSettings
    prepared: PreparedCorpus
    state: loop.TrainState
    attention_kernel: str  # what computes it, in words; empty where there is no choice

    def run(self, tracker: Tracker) -> None:
        run_dir, settings, state = self.run_dir, self.settings, self.state
        remove_temporaries(run_dir)
        saved = checkpoints.load_resume(run_dir)
        progress = callbacks.restore(saved, state.model, state.optimizer) if saved else loop.Progress()
        facts: dict[str, Any] = {
            "parameters": loading.count_parameters(state.model),
            "budget": {key: self.config["training"][key] for key in ("max_updates", "max_epochs", "max_minutes")},
            "provenance": provenance(),
        }
        status = run.read_status(run_dir)
        if isinstance(earlier := status.get("extended"), list):
            facts["extended"] = earlier
        ending = loop.end_reason(settings, state.budget, progress)
        if ending and progress.validated == progress.update:
            say(f"{run_dir}: {ending} already; {progress.update} updates are done")
            callbacks.complete(run_dir, state.model, progress)
            if status.get("state", "") in ("", *run.UNFINISHED):  # killed before, or the budget is smaller now
                callbacks.write_status(run_dir, ending, progress, **facts)
            return
        self.report_start(progress)
        if progress.update and self.stored and (change := self.rate_change(self.stored["training"], progress)):
            say(f"  note: {change}")
            facts["extended"] = [*facts.get("extended", []), [progress.update, change]]
        self.report_cost(progress)
        stop_request = callbacks.StopRequest()
        callbacks.write_status(run_dir, "running", progress, **facts)
        run.write_config(run_dir, self.config)
        lines = JsonLines(run_dir / "metrics.jsonl", progress.update, progress.validated == progress.update)
        if lines.damaged:
            say(f"  note: {lines.damaged} damaged lines of metrics.jsonl are left out")
        tracker.open(run_dir, run_dir.name, self.config)
        validate = partial(validation_metrics, state, self.prepared, settings.bleu_sentences)
        small_files = {name: (run_dir / name).read_bytes() for name in run.SMALL_FILES}
        run_callbacks = callbacks.RunCallbacks(
            run_dir, state, settings, validate, lines, tracker, stop_request, small_files
        )
        ending = "failed"
        try:
            ending = loop.fit(state, settings, progress, run_callbacks, saved["loss_average"] if saved else (0.0, 0))
            callbacks.complete(run_dir, state.model, progress)
        finally:
            with suppress(UserError):  # a full disk is reported once
                callbacks.write_status(run_dir, ending, progress, **facts)
            lines.close()
            tracker.close(exit_code=int(ending == "failed"))
        if ending == loop.INTERRUPTED:
            say(f"interrupted at update {progress.update}; saved; the same command resumes from there")
            raise Interrupted(stop_request.exit_code)
        say(f"{ending}: {run_dir}")
        say(f"next: {command_of('evaluate')} checkpoint={run_dir}")

    def report_start(self, progress: loop.Progress) -> None:
        """What is about to be trained, what ends it, and what a user may not expect."""
        facts, train, settings = self.prepared.facts, self.prepared.facts["train"], self.settings
        drops = ", ".join(f"{count:,} {reason}" for reason, count in train["dropped"].items())
        plan = self.state.batches.plan(progress.epoch)
        sizes = {key: size for key, size in self.config["model"].items() if key.endswith(("_size", "layers", "heads"))}
        shape = ", ".join(f"{key.replace('_', ' ')} {size}" for key, size in sizes.items() if size is not None)
        last, warmup = self.state.budget.last_update, self.config["schedule"].get("warmup_updates", 0)
        limits = [f"at update {last:,} ({self.state.budget.limit})"] * (last is not None)
        if settings.max_minutes is not None:
            limits.append(f"after {settings.max_minutes:g} minutes (training.max_minutes)")
        if settings.patience is not None:
            limits.append(f"after {settings.patience} validations without a gain (training.patience)")
        rows = {
            "data": f"{train['kept']:,} pairs" + (f" (left out: {drops})" if drops else ""),
            "": self.prepared.card,
            "vocabulary": f"{facts['source_vocab']:,} source, {facts['target_vocab']:,} target pieces",
            "batches": f"{len(plan):,} an epoch, padding {plan.padding.both:.1%}",
            "model": f"{shape}; {loading.count_parameters(self.state.model):,} parameters",
            "attention": self.attention_kernel,
            "ends": ", or ".join(limits),
        }
        resumed = f", resumed at update {progress.update}" if progress.update else ""
        say(f"{self.config['name']} -> {self.run_dir}{resumed}")
        for title, text in rows.items():
            if text:
                say(f"  {title:<12}{text}")
        if len(plan) == 1:
            say("  note: the whole corpus fits one batch; lower batching.tokens for more updates an epoch")
        if not len(self.prepared.valid):
            say("  note: no validation text, so no BLEU and no early stopping; give data.valid_src and data.valid_tgt")
        if last is not None and warmup >= last > 0:
            say(f"  note: warm-up ({warmup} updates) outlasts the training: the rate stays below optimizer.lr")

    def rate_change(self, before: dict[str, Any], progress: loop.Progress) -> str:
        """What another budget than the run was started with does to the learning rate; empty where nothing."""
        settings = check(TrainingSettings, before)
        budget = loop.planned_budget(settings, len(self.state.batches.plan(1)) / settings.accumulate)
        schedule = instantiate(self.config["schedule"])(total_updates=budget.last_update)
        lr, update = self.config["optimizer"]["lr"], progress.update + 1
        old, new = lr * schedule(update), lr * self.state.schedule(update)
        now = self.state.budget.limit
        change = f"with {budget.limit} the next learning rate was {old:.2e}; with {now} it is {new:.2e}"
        return "" if math.isclose(old, new) else change

    def report_cost(self, progress: loop.Progress) -> None:
        """Time and memory, measured on the largest and on a median batch; weights and random state stay as they are."""
        plan, state, last = self.state.batches.plan(progress.epoch), self.state, self.state.budget.last_update
        order = np.argsort(plan.sizes)
        with torch.random.fork_rng():
            state.model.train()
            for index in (order[-1], order[len(order) // 2]):
                start = time.perf_counter()
                loop.accumulate_gradients(state, [collate(self.prepared.train, plan[index])], self.settings)
                seconds = (time.perf_counter() - start) * self.settings.accumulate
        state.model.zero_grad(set_to_none=True)
        on_cuda = state.device.startswith("cuda")
        peak_bytes = torch.cuda.max_memory_allocated() if on_cuda else psutil.Process().memory_info().rss
        peak_bytes += 2 * sum(p.numel() * p.element_size() for p in state.model.parameters())  # of the optimizer
        minutes, until = self.settings.max_minutes or math.inf, "until the time is up"
        if last is not None:
            minutes = min(minutes, (last - progress.update) * seconds / 60)
            until = f"{last - progress.update:,} updates to go"
        say(f"  expected    about {format_duration(60 * minutes)} ({until}), {peak_bytes / 2**30:.1f} GiB of memory")


def validation_metrics(state: loop.TrainState, prepared: PreparedCorpus, bleu_sentences: int) -> loop.Metrics:
    """NLL per piece of the validation pairs, and BLEU of their greedy translations; {} where there is no such text."""
    if not len(prepared.valid):
        return {}
    device, batching = state.device, state.batches.settings
    nll, pieces = torch.zeros((), device=device), 0
    for batch in validation_batches(prepared.valid, batching):
        batch = batch.to(device)
        with loop.autocast(device, state.precision):
            features = state.model(batch.src, batch.tgt_in)
            nll += loss.summed_nll(state.model.project, features, batch.tgt_out, PAD)
        pieces += int(batch.tgt_lengths.sum())
    metrics = {"valid/nll": nll.item() / pieces}
    if pairs := prepared.valid_pairs[:bleu_sentences]:
        translator = Translator(state.model, prepared.source, prepared.target, batching.max_pieces, device)
        outputs = translator.translate([pair.source for pair in pairs], SearchSettings.defaults(beam=1))
        references = [[pair.target for pair in pairs]]
        metrics["valid/bleu"] = corpus_bleu(outputs, references, prepared.facts["target_language"]).score
    return metrics


if __name__ == "__main__":
    main()
