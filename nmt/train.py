"""Train one system: python -m nmt.train experiment=bahdanau (--help for the rest)."""

import math
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from hydra.utils import instantiate

from nmt.cli import Composed, program, say
from nmt.data.batching import Batches, validation_batches
from nmt.data.preparation.prepared_corpus import PreparedCorpus, data_identity, prepare_from_config
from nmt.data.tokenizer import PAD, load_tokenizers
from nmt.decoding.translator import Translator
from nmt.errors import ConfigError, Interrupted, UserError
from nmt.evaluation.metrics import corpus_bleu
from nmt.files import read_json, remove_temporaries, require_self_contained, write_bytes
from nmt.loading import (
    Run,
    build_model,
    choose_device,
    choose_precision,
    count_parameters,
    load_run,
    model_shape,
    require_memory,
)
from nmt.progress import format_duration
from nmt.provenance import provenance
from nmt.run import (
    CONFIG,
    SMALL_FILES,
    STATUS,
    UNFINISHED,
    changed_settings,
    check_resume,
    create_run,
    is_whole,
    read_config,
    read_data_facts,
    read_status,
    run_lock,
    sections_in,
    write_config,
)
from nmt.schema import check, shown
from nmt.settings import SearchSettings
from nmt.training import checkpoints, loss
from nmt.training.callbacks import RunCallbacks, StopRequest, restore, write_status
from nmt.training.loop import (
    INTERRUPTED,
    Metrics,
    Progress,
    TrainState,
    autocast,
    end_reason,
    estimate_cost,
    fit,
    planned_budget,
    precision_dtype,
)
from nmt.training.trackers import JsonLines, Tracker
from nmt.training_settings import TrainingSettings

TRIAL_VOCAB_SIZES = (300, 300)  # pieces


@program("train")
def main(composed: Composed) -> None:
    settings, config = composed.settings, composed.config
    tracker = instantiate(config["tracker"])  # first: a missing package is reported before any work
    config["name"] = composed.choices["experiment"]
    device = choose_device(settings.device)
    config["precision"] = choose_precision(settings.precision, device)
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)

    run_dir = _run_dir(composed)
    if run_dir.is_dir():
        require_self_contained(run_dir)
    _restore_damaged(run_dir)
    parent = _parent(composed, run_dir) if settings.init_from else None
    resumes = check_resume(run_dir, config)
    attention_kernel = _require_buildable(config, settings.training, device)
    prepared = _prepare(config, run_dir if resumes else None, parent)
    batches = Batches(prepared.train, settings.batching)
    budget = planned_budget(settings.training, len(batches.plan(1)) / settings.training.accumulate)
    schedule = instantiate(config["schedule"])(total_updates=budget.last_update)
    torch.manual_seed(settings.seed)
    model = build_model(config["model"], prepared.source.vocab_size, prepared.target.vocab_size).to(device)
    optimizer = instantiate(config["optimizer"])(model.parameters())
    if parent is not None:
        checkpoints.load_weights(parent.weights, model)
        say(f"weights and pieces are those of {parent.path}, update {parent.updates:,}")
    state = TrainState(model, optimizer, schedule, batches, budget, device, config["precision"])
    with run_lock(run_dir):  # from here on something is written
        if check_resume(run_dir, config) != resumes:
            raise UserError(f"another process has just started a run in {run_dir}; start this one again")
        if not resumes:
            create_run(
                run_dir,
                config,
                {
                    **prepared.facts,
                    "prepared": prepared.folder.name,
                    "longest_source": int(prepared.train.src.lengths.max()),
                },
                prepared.source,
                prepared.target,
            )
        TrainingRun(run_dir, config, settings.training, prepared, state, attention_kernel).run(tracker)


def _run_dir(composed: Composed) -> Path:
    """outputs/<data>/<experiment>[-seed<N>]; in a sweep with what else differs between its jobs in the name."""
    if composed.settings.run_dir:
        return Path(composed.settings.run_dir).expanduser()
    experiment, data = composed.choices["experiment"], composed.choices["data"]
    differing = [one for one in composed.swept if one.split("=")[0] not in ("experiment", "seed", "data")]
    parts = [re.sub(r"[^\w.=+-]+", "_", re.sub(r"^[\w@]+\.(?:\w+\.)*", "", one)) for one in differing]
    seed = [f"seed{composed.settings.seed}"] if composed.settings.seed != 1 else []
    return Path("outputs", data, "-".join([experiment, *parts, *seed]))


def _require_buildable(config: dict[str, Any], settings: TrainingSettings, device: str) -> str:
    """Refuses what the settings alone rule out, before a corpus is prepared for hours; returns the attention kernel."""
    instantiate(config["schedule"])(total_updates=planned_budget(settings, updates_per_epoch=1.0).last_update)
    model = model_shape(config["model"], *TRIAL_VOCAB_SIZES)
    require_memory(model, device)
    instantiate(config["optimizer"])(model.parameters())
    return model.describe_attention(torch.device(device), precision_dtype(config["precision"]))


def _restore_damaged(run_dir: Path) -> None:
    """Small files of a run that a power cut has damaged, from its resume state, which holds them too."""
    if not (run_dir / checkpoints.RESUME).exists() and not (run_dir / checkpoints.PREVIOUS).exists():
        return
    damaged = [name for name in SMALL_FILES if not is_whole(run_dir / name)]
    if not damaged:
        return
    with run_lock(run_dir):
        files = (checkpoints.load_resume(run_dir) or {}).get("files", {})
        for name in damaged:
            if name in files:
                write_bytes(run_dir / name, files[name])
                say(f"note: {run_dir / name} was damaged; restored from the resume state")


def _parent(composed: Composed, run_dir: Path) -> Run | None:
    """The run of init_from; None where this training has its weights already. Its pieces decide `tokenizer`.

    ConfigError, before any text is read, for settings that its pieces or weights do not allow.
    """
    config, origin = composed.config, Path(composed.settings.init_from).expanduser()
    trust = [*composed.trust, *(section["_target_"] for section in sections_in(config))]
    is_started = (run_dir / CONFIG).exists()
    parent = None if is_started else load_run(origin, trust)
    tokenizer = (parent.config if parent else read_config(run_dir, trust))["tokenizer"]
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
            checkpoints.require_weights_of(parent.weights, model_shape(config["model"], *sizes))
        except UserError as error:
            changed = changed_settings({"model": parent.config["model"]}, {"model": config["model"]})
            raise ConfigError(f"init_from={origin} is another model ({'; '.join(changed) or error})") from None
    return parent


def _prepare(config: dict[str, Any], run_dir: Path | None, parent: Run | None) -> PreparedCorpus:
    """The corpus as ids; at a resume with the run's pieces, and refused where the text is another."""
    make_corpus = partial(instantiate, config["data"])
    tokenizers = (parent.source_tokenizer, parent.target_tokenizer) if parent else None
    run_tokenizers = load_tokenizers(run_dir) if run_dir is not None else None
    if config["init_from"] and parent is None:
        tokenizers = run_tokenizers
    prepared = prepare_from_config(config, make_corpus, tokenizers)
    if run_dir is None or run_tokenizers is None:
        return prepared
    if [tokenizer.model for tokenizer in run_tokenizers] != [prepared.source.model, prepared.target.model]:
        prepared = prepare_from_config(
            config, make_corpus, run_tokenizers
        )  # another version of SentencePiece has learned others
    if data_identity(read_data_facts(run_dir)) != data_identity(prepared.facts):
        raise ConfigError(f"{run_dir} was trained on other text than this (checksums differ); give the same files")
    return prepared


@dataclass(frozen=True)
class TrainingRun:
    """One run, from the directory's last checkpoint, or from nothing, to the end of the budget."""

    run_dir: Path
    config: dict[str, Any]
    settings: TrainingSettings
    prepared: PreparedCorpus
    state: TrainState
    attention_kernel: str  # what computes it, in words; empty where there is no choice

    def run(self, tracker: Tracker) -> None:
        remove_temporaries(self.run_dir)
        saved = checkpoints.load_resume(self.run_dir)
        progress = restore(saved, self.state.model, self.state.optimizer) if saved else Progress()
        facts: dict[str, Any] = {
            "parameters": count_parameters(self.state.model),
            "budget": _budget(self.config),
            "provenance": provenance(),
        }
        ending = end_reason(self.settings, self.state.budget, progress)
        if ending and progress.validated == progress.update:
            say(f"{self.run_dir}: {ending} already; {progress.update} updates are done")
            self.complete(progress)
            if read_status(self.run_dir) in ("", *UNFINISHED):  # killed before, or the budget is smaller now
                write_status(self.run_dir, _status_of(ending), progress, **facts)
            return
        self.report_start(progress)
        if progress.update and (change := self._rate_change(progress)):
            say(f"  note: {change}")
            with suppress(OSError, UserError, TypeError):  # a status that was lost
                facts["extended"] = list(read_json(self.run_dir / STATUS).get("extended") or [])
            facts["extended"] = [*facts.get("extended", []), [progress.update, change]]
        self.report_cost(progress)
        stop_request = StopRequest()
        write_status(self.run_dir, "running", progress, **facts)
        write_config(self.run_dir, self.config)
        lines = JsonLines(self.run_dir / "metrics.jsonl", progress.update, progress.validated == progress.update)
        if lines.damaged:
            say(f"  note: {lines.damaged} damaged lines of metrics.jsonl are left out")
        tracker.open(self.run_dir, self.run_dir.name, self.config)
        callbacks = RunCallbacks(
            self.run_dir,
            self.state,
            self.settings,
            partial(validation_metrics, self.state, self.prepared, self.settings.bleu_sentences),
            lines,
            tracker,
            self.report_progress,
            stop_request,
            {name: (self.run_dir / name).read_bytes() for name in SMALL_FILES},
        )
        ending = "failed"
        try:
            ending = fit(self.state, self.settings, progress, callbacks, saved["loss_average"] if saved else (0.0, 0))
            callbacks.average(progress)
        finally:
            with suppress(UserError):  # a full disk is reported once
                write_status(self.run_dir, _status_of(ending), progress, **facts)
            lines.close()
            tracker.close(exit_code=int(ending == "failed"))
        if ending == INTERRUPTED:
            say(f"interrupted at update {progress.update}; saved; the same command resumes from there")
            raise Interrupted(stop_request.exit_code)
        say(f"{ending}: {self.run_dir}")
        say(f"next: python -m nmt.evaluate checkpoint={self.run_dir}")

    def complete(self, progress: Progress) -> None:
        """Writes what a kill or a full disk has kept a finished training from writing."""
        last, averaged = self.run_dir / checkpoints.LAST, self.run_dir / checkpoints.AVERAGED
        if not last.exists() or checkpoints.update_of(last) != progress.update:
            checkpoints.save_weights(last, self.state.model, progress.update)
        kept = checkpoints.averaged_files(self.run_dir, progress.checkpoints)
        if kept and (not averaged.exists() or checkpoints.update_of(averaged) != progress.checkpoints[-1]):
            checkpoints.average(kept, averaged)

    def report_start(self, progress: Progress) -> None:
        """What is about to be trained, and what a user may not expect."""
        facts, train = self.prepared.facts, self.prepared.facts["train"]
        drops = ", ".join(f"{count:,} {reason}" for reason, count in train["dropped"].items())
        plan = self.state.batches.plan(progress.epoch)
        resumed = f", resumed at update {progress.update}" if progress.update else ""
        say(f"{self.config['name']} -> {self.run_dir}{resumed}")
        say(f"  data        {train['kept']:,} pairs" + (f" (left out: {drops})" if drops else ""))
        say(f"              {self.prepared.card}")
        say(f"  vocabulary  {facts['source_vocab']:,} source, {facts['target_vocab']:,} target pieces")
        say(f"  batches     {len(plan):,} an epoch, padding {plan.padding.both:.1%}")
        sizes = {key: size for key, size in self.config["model"].items() if key.endswith(("_size", "layers", "heads"))}
        shape = ", ".join(f"{key.replace('_', ' ')} {size}" for key, size in sizes.items() if size is not None)
        say(f"  model       {shape}; {count_parameters(self.state.model):,} parameters")
        if self.attention_kernel:
            say(f"  attention   {self.attention_kernel}")
        if len(plan) == 1:
            say("  note: the whole corpus fits one batch; lower batching.tokens for more updates an epoch")
        if not len(self.prepared.valid):
            say("  note: no validation text, so no BLEU and no early stopping; give data.valid_src and data.valid_tgt")
        warmup = self.config["schedule"].get("warmup_updates", 0)
        say(f"  ends        {self._limits()}")
        if self.state.budget.last_update is not None and warmup >= self.state.budget.last_update > 0:
            say(f"  note: warm-up ({warmup} updates) outlasts the training: the rate stays below optimizer.lr")

    def _rate_change(self, progress: Progress) -> str:
        """What another budget than the run was started with does to the learning rate; empty where nothing."""
        before = read_config(self.run_dir, [section["_target_"] for section in sections_in(self.config)])["training"]
        settings = check(TrainingSettings, before)
        budget = planned_budget(settings, len(self.state.batches.plan(1)) / settings.accumulate)
        if budget.last_update == self.state.budget.last_update:
            return ""
        schedule = instantiate(self.config["schedule"])(total_updates=budget.last_update)
        lr, update = self.config["optimizer"]["lr"], progress.update + 1
        old, new = lr * schedule(update), lr * self.state.schedule(update)
        if math.isclose(old, new):
            return ""
        return (
            f"with {budget.limit} the next learning rate was {old:.2e}; with {self.state.budget.limit} it is {new:.2e}"
        )

    def _limits(self) -> str:
        """Which settings may end the training, the first of updates and epochs alone."""
        settings, budget = self.settings, self.state.budget
        limits = [f"at update {budget.last_update:,} ({budget.limit})"] if budget.last_update is not None else []
        if settings.max_minutes is not None:
            limits.append(f"after {settings.max_minutes:g} minutes (training.max_minutes)")
        if settings.patience is not None:
            limits.append(f"after {settings.patience} validations without a gain (training.patience)")
        return ", or ".join(limits)

    def report_cost(self, progress: Progress) -> None:
        """Time and memory, measured on two batches."""
        settings = self.settings
        seconds, peak_bytes = estimate_cost(self.state, self.prepared.train, progress.epoch, settings)
        minutes = settings.max_minutes or math.inf
        until = "until the time is up"
        if self.state.budget.last_update is not None:
            minutes = min(minutes, (self.state.budget.last_update - progress.update) * seconds / 60)
            until = f"{self.state.budget.last_update - progress.update:,} updates to go"
        say(f"  expected    about {format_duration(60 * minutes)} ({until}), {peak_bytes / 2**30:.1f} GiB of memory")

    def report_progress(self, progress: Progress, metrics: Metrics) -> None:
        """One line: where the training is, how it does, how long it still takes."""
        if "valid/nll" in metrics:
            bleu = f"  BLEU {metrics['valid/bleu']:.1f}" if "valid/bleu" in metrics else ""
            say(f"  validation at update {progress.update}: nll {metrics['valid/nll']:.3f}{bleu}")
            return
        left = 60 * self.settings.max_minutes - progress.seconds if self.settings.max_minutes else math.inf
        if self.state.budget.last_update is not None:
            left = min(left, (self.state.budget.last_update - progress.update) * progress.seconds / progress.update)
        of = f"/{self.state.budget.last_update}" if self.state.budget.last_update is not None else ""
        speed = metrics["train/tokens_per_second"]
        say(
            f"  update {progress.update}{of}  epoch {progress.epoch}  nll {metrics['train/nll']:.3f}  "
            f"lr {metrics['learning_rate']:.2e}  {speed:,.0f} pieces/s  {format_duration(left)} left"
        )


def _status_of(ending: str) -> str:
    """'finished (1500 updates)' -> 'finished'."""
    return ending.split(" (")[0]


def _budget(config: dict[str, Any]) -> dict[str, Any]:
    return {key: config["training"][key] for key in ("max_updates", "max_epochs", "max_minutes")}


def validation_metrics(state: TrainState, prepared: PreparedCorpus, bleu_sentences: int) -> Metrics:
    """NLL per piece of the validation pairs, and BLEU of their greedy translations; {} where there is no such text."""
    if not len(prepared.valid):
        return {}
    model, device, batching = state.teacher_forced, state.device, state.batches.settings
    nll = torch.zeros((), device=device)
    pieces = 0
    for batch in validation_batches(prepared.valid, batching):
        batch = batch.to(device)
        with autocast(device, state.precision):
            features = model(batch.src, batch.tgt_in)
            nll += loss.summed_nll(model.project, features, batch.tgt_out, PAD)
        pieces += int(batch.tgt_lengths.sum())
    metrics = {"valid/nll": nll.item() / pieces}
    pairs = prepared.valid_pairs[:bleu_sentences]
    if pairs:
        translator = Translator(state.model, prepared.source, prepared.target, batching.max_pieces, device)  # type: ignore[arg-type]
        outputs = translator.translate([pair.source for pair in pairs], SearchSettings.defaults(beam=1))
        references = [[pair.target for pair in pairs]]
        metrics["valid/bleu"] = corpus_bleu(outputs, references, prepared.facts["target_language"]).score
    return metrics


if __name__ == "__main__":
    main()
