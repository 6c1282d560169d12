"""Train one system: python -m nmt.train experiment=bahdanau (--help for the rest)."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from hydra.core.hydra_config import HydraConfig
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

from nmt import run_directory
from nmt.cli import program, say
from nmt.corpora import prepared_corpus
from nmt.data.batching import Batches, BatchingSettings
from nmt.data.prepared import Prepared, identity
from nmt.data.tokenizer import load_tokenizers
from nmt.errors import ConfigError, UserError, require_whole
from nmt.record import record
from nmt.run import build_model, choose_device, choose_precision, count_parameters, load_run
from nmt.training import checkpoint
from nmt.training.loop import INTERRUPTED, Job, Metrics, Progress, TrainingSettings, fit, product_type
from nmt.training.observer import Interrupt, RunObserver, restore, write_status
from nmt.training.probe import probe
from nmt.training.tracking import JsonLines, Tracker
from nmt.validation import measure

TRIAL_VOCABULARIES = (300, 300)  # pieces


@program("train")
def main(cfg: DictConfig) -> None:
    tracker = instantiate(cfg.tracker)  # first: what is missing for it is said before any work
    config: dict[str, Any] = OmegaConf.to_container(cfg, resolve=True)  # type: ignore[assignment]
    choices = dict(HydraConfig.get().runtime.choices)
    config["name"] = choices["experiment"]
    settings = TrainingSettings(**config["training"])
    require_whole("seed", config["seed"], least=0)
    device = choose_device(config["device"])
    config["precision"] = choose_precision(config["precision"], device)
    if config["threads"] is not None:
        require_whole("threads", config["threads"])
        torch.set_num_threads(config["threads"])

    run_dir = _run_dir(config, choices)
    resumes = run_directory.check_resume(run_dir, config)
    batching = BatchingSettings(**config["batching"])
    attention = _require_buildable(config, settings, device)
    prepared = _prepare(config, run_dir if resumes else None)
    batches = Batches(prepared.train, batching)
    last = settings.last_update(len(batches.plan(1)) / settings.accumulate)
    schedule = instantiate(config["schedule"])(total_updates=last)
    torch.manual_seed(config["seed"])
    model = build_model(config["model"], prepared.source.vocab_size, prepared.target.vocab_size).to(device)
    optimizer = instantiate(config["optimizer"])(model.parameters())
    if config["init_from"] and not resumes:
        checkpoint.load_weights(load_run(config["init_from"]).weights, model)
    job = Job(model, optimizer, schedule, batches, last, device, config["precision"])
    with run_directory.locked(run_dir):  # from here on something is written
        if run_directory.check_resume(run_dir, config) != resumes:
            raise UserError(f"another process has just started a run in {run_dir}; start this one again")
        if not resumes:
            run_directory.create(
                run_dir, config, {**prepared.facts, "prepared": prepared.folder.name}, prepared.source, prepared.target
            )
        Training(run_dir, config, settings, prepared, job, attention).run(tracker)


def _run_dir(config: dict[str, Any], choices: dict[str, Any]) -> Path:
    if config["run_dir"]:
        return Path(str(config["run_dir"])).expanduser()
    seed = config["seed"]
    return Path("outputs", choices["data"], config["name"] + (f"-seed{seed}" if seed != 1 else ""))


def _require_buildable(config: dict[str, Any], settings: TrainingSettings, device: str) -> str:
    """What the settings alone decide is refused now, and not after a corpus has been prepared for hours.

    Gives what will compute the attention, in words.
    """
    instantiate(config["schedule"])(total_updates=settings.last_update(updates_per_epoch=1.0))
    model = build_model(config["model"], *TRIAL_VOCABULARIES)
    instantiate(config["optimizer"])(model.parameters())
    return model.attention_on(torch.device(device), product_type(config["precision"]))


def _prepare(config: dict[str, Any], run_dir: Path | None) -> Prepared:
    """The corpus as ids; at a resume with the run's pieces, and refused where the text is another."""
    pieces = None
    if config["init_from"]:
        parent = load_run(config["init_from"])
        pieces = (parent.source, parent.target)
    prepared = prepared_corpus(config, pieces)
    if run_dir is None:
        return prepared
    own = load_tokenizers(run_dir)
    if [tokenizer.model for tokenizer in own] != [prepared.source.model, prepared.target.model]:
        prepared = prepared_corpus(config, own)  # another version of SentencePiece has learned others
    if identity(run_directory.read_facts(run_dir)) != identity(prepared.facts):
        raise ConfigError(f"{run_dir} was trained on other text than this (checksums differ); give the same files")
    return prepared


@dataclass(frozen=True)
class Training:
    """One run, from the directory's last checkpoint, or from nothing, to the end of the budget."""

    run_dir: Path
    config: dict[str, Any]
    settings: TrainingSettings
    prepared: Prepared
    job: Job
    attention: str  # what computes it, in words; empty where there is no choice

    def run(self, tracker: Tracker) -> None:
        saved = checkpoint.load_resume(self.run_dir)
        progress = restore(saved, self.job.model, self.job.optimizer) if saved else Progress()
        facts = {"parameters": count_parameters(self.job.model), "budget": _budget(self.config), "record": record()}
        if ending := self.settings.ending(progress, self.job.last):
            say(f"{self.run_dir}: {ending} already; {progress.update} updates are done")
            if (
                run_directory.read_status(self.run_dir) in run_directory.UNFINISHED
            ):  # stopped before, and the budget is smaller now
                write_status(self.run_dir, _state(ending), progress, **facts)
            return
        self.say_start(progress)
        self.say_estimate(progress)
        write_status(self.run_dir, "running", progress, **facts)
        run_directory.write_config(self.run_dir, self.config)
        lines = JsonLines(self.run_dir / "metrics.jsonl", resumed_at=progress.update)
        tracker.open(self.run_dir, self.run_dir.name, self.config)
        observer = RunObserver(
            self.run_dir, self.job, self.settings, self.measure, lines, tracker, self.show, Interrupt()
        )
        ending = "failed"
        try:
            ending = fit(self.job, self.settings, progress, observer)
            observer.average(progress)
        finally:
            write_status(self.run_dir, _state(ending), progress, **facts)
            lines.close()
            tracker.close(exit_code=int(ending == "failed"))
        if ending == INTERRUPTED:
            say(f"interrupted at update {progress.update}; saved; the same command goes on from there")
            raise KeyboardInterrupt
        say(f"{ending}: {self.run_dir}")
        say(f"next: python -m nmt.evaluate checkpoint={self.run_dir}")

    def measure(self) -> Metrics:
        """Validation, as the loop asks for it."""
        return measure(self.job, self.prepared, self.settings.bleu_sentences)

    def say_start(self, progress: Progress) -> None:
        """What is about to be trained, and what a user may not expect."""
        facts, train = self.prepared.facts, self.prepared.facts["train"]
        drops = ", ".join(f"{count:,} {reason}" for reason, count in train["dropped"].items())
        plan = self.job.batches.plan(progress.epoch)
        resumed = f", resumed at update {progress.update}" if progress.update else ""
        say(f"{self.config['name']} -> {self.run_dir}{resumed}")
        say(f"  data        {train['kept']:,} pairs" + (f" (left out: {drops})" if drops else ""))
        say(f"              {self.prepared.card}")
        say(f"  vocabulary  {facts['source_vocab']:,} source, {facts['target_vocab']:,} target pieces")
        say(f"  batches     {len(plan):,} an epoch, padding {plan.padding.both:.1%}")
        say(f"  parameters  {count_parameters(self.job.model):,}")
        if self.attention:
            say(f"  attention   {self.attention}")
        if len(plan) == 1:
            say("  note: the whole corpus fits one batch; lower batching.tokens for more updates an epoch")
        if not len(self.prepared.valid):
            say("  note: no validation text, so no BLEU and no early stopping; give data.valid_src and data.valid_tgt")
        warmup = self.config["schedule"].get("warmup_updates", 0)
        if self.job.last is not None and warmup >= self.job.last > 0:
            say(f"  note: warm-up ({warmup} updates) outlasts the training: the rate stays below optimizer.lr")

    def say_estimate(self, progress: Progress) -> None:
        """Time and memory, measured on two batches."""
        settings = self.settings
        seconds, peak_bytes = probe(self.job, self.prepared.train, progress.epoch, settings)
        minutes = settings.max_minutes or math.inf
        until = "until the time is up"
        if self.job.last is not None:
            minutes = min(minutes, (self.job.last - progress.update) * seconds / 60)
            until = f"{self.job.last - progress.update:,} updates to go"
        say(f"  expected    about {_clock(60 * minutes)} ({until}), {peak_bytes / 2**30:.1f} GiB of memory")

    def show(self, progress: Progress, metrics: Metrics) -> None:
        """One line: where the training is, how it does, how long it still takes."""
        if "valid/nll" in metrics:
            bleu = f"  BLEU {metrics['valid/bleu']:.1f}" if "valid/bleu" in metrics else ""
            say(f"  validation at update {progress.update}: nll {metrics['valid/nll']:.3f}{bleu}")
            return
        left = 60 * self.settings.max_minutes - progress.seconds if self.settings.max_minutes else math.inf
        if self.job.last is not None:
            left = min(left, (self.job.last - progress.update) * progress.seconds / progress.update)
        of = f"/{self.job.last}" if self.job.last is not None else ""
        speed = metrics["train/tokens_per_second"]
        say(
            f"  update {progress.update}{of}  epoch {progress.epoch}  nll {metrics['train/nll']:.3f}  "
            f"lr {metrics['learning_rate']:.2e}  {speed:,.0f} pieces/s  {_clock(left)} left"
        )


def _state(ending: str) -> str:
    """'finished (1500 updates)' -> 'finished'."""
    return ending.split(" (")[0]


def _budget(config: dict[str, Any]) -> dict[str, Any]:
    return {key: config["training"][key] for key in ("max_updates", "max_epochs", "max_minutes")}


def _clock(seconds: float) -> str:
    whole = max(0, round(seconds))
    return f"{whole // 3600}:{whole % 3600 // 60:02}:{whole % 60:02}"


if __name__ == "__main__":
    main()
