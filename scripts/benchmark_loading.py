"""What batches cost a training: padding, the time to plan an epoch, and the time an update waits for its batch.

python -m scripts.benchmark_loading [any setting of nmt.train] --output outputs/reference/benchmarks/loading.json
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from nmt.benchmark import benchmark_setup
from nmt.benchmarks import BenchmarkReport, BenchmarkSetup, markdown_table
from nmt.benchmarks.training_speed import EPOCH, timed_updates
from nmt.cli import readable_override
from nmt.data.batch_plan import BatchPlan
from nmt.data.batching import Batches, collate
from nmt.data.encoded_pairs import EncodedPairs
from nmt.data.preparation.prepared_corpus import PreparedCorpus
from nmt.errors import ConfigError, UserError
from nmt.evaluation.stored import require_writable
from nmt.loading import count_parameters
from nmt.progress import say
from nmt.schema import check, conf_dir
from nmt.training.loop import TrainState
from nmt.training_settings import TrainConfig


@dataclass(frozen=True)
class LoadingRow:
    """One budget."""

    tokens: int
    pairs: int
    batches: int  # an epoch
    source_padding: float  # shares of the positions
    target_padding: float
    padding: float
    plan_seconds: float  # for an epoch
    plan_cpu_seconds: float
    update_seconds: float
    waiting_share: float  # of the time of an update: until its batches are there
    collating_share: float  # the CPU time of making them, in the time of an update; other threads run meanwhile

    def cells(self) -> list[str]:
        return [
            f"{self.tokens:,}",
            f"{self.pairs:,}",
            f"{self.batches:,}",
            *(f"{100 * share:.2f}%" for share in (self.source_padding, self.target_padding, self.padding)),
            f"{self.plan_cpu_seconds:.3f} s",
            f"{self.update_seconds:.3f} s",
            f"{100 * self.waiting_share:.3f}%",
            f"{100 * self.collating_share:.3f}%",
        ]


HEADER = ["tokens", "pairs", "batches", "padding: source", "target", "both", "plan", "update", "waiting", "collating"]


@dataclass(frozen=True)
class LoadingBenchmark:
    """Each budget of `tokens` in turn, over `updates` updates after a first one that is not counted."""

    tokens: Sequence[int]
    updates: int

    def __post_init__(self) -> None:
        for flag, number in (*(("--tokens", budget) for budget in self.tokens), ("--updates", self.updates)):
            if number < 1:
                raise ConfigError(f"{flag}={number}: give a whole number, 1 or more")

    def run(self, setup: BenchmarkSetup) -> BenchmarkReport:
        prepared = setup.prepare()
        rows, parameters = [], 0
        for tokens in self.tokens:
            say(f"loading: {tokens:,} tokens a batch")
            state = setup.make_state(
                prepared, Batches(prepared.train, setup.batching.model_copy(update={"tokens": tokens}))
            )
            parameters = count_parameters(state.model)
            rows.append(self._measure(state, prepared, setup))
            say(f"loading: {self.updates} updates of {rows[-1].update_seconds:.3f} s")
        results = {
            "parameters": parameters,
            "updates": self.updates,
            "threads": torch.get_num_threads(),
            "rows": [asdict(row) for row in rows],
        }
        notes = [
            "plan: CPU time for an epoch; waiting, collating (CPU time, in a thread beside): shares of an update",
            f"update: {'bf16' if state.precision == 'bf16' else 'fp32'}, {parameters:,} parameters, "
            f"{torch.get_num_threads()} threads, {state.device}",
        ]
        return BenchmarkReport(markdown_table(HEADER, [row.cells() for row in rows]), notes, results)

    def _measure(self, state: TrainState, prepared: PreparedCorpus, setup: BenchmarkSetup) -> LoadingRow:
        plan, seconds, cpu_seconds = timed_plan(lambda: state.batches.plan(EPOCH))
        updates = timed_updates(state, setup.training, self.updates)
        collating = collating_seconds(state.batches, prepared.train, self.updates)
        return LoadingRow(
            tokens=state.batches.settings.tokens,
            pairs=len(prepared.train),
            batches=len(plan),
            source_padding=plan.padding.source,
            target_padding=plan.padding.target,
            padding=plan.padding.both,
            plan_seconds=seconds,
            plan_cpu_seconds=cpu_seconds,
            update_seconds=updates.seconds,
            waiting_share=updates.waiting / updates.seconds,
            collating_share=setup.training.accumulate * collating / updates.seconds,
        )


def timed_plan(make: Callable[[], BatchPlan]) -> tuple[BatchPlan, float, float]:
    """The plan; seconds; CPU seconds of this thread."""
    wall, cpu = time.perf_counter(), time.thread_time()
    plan = make()
    return plan, time.perf_counter() - wall, time.thread_time() - cpu


def collating_seconds(batches: Batches, pairs: EncodedPairs, count: int) -> float:
    """CPU seconds to make a batch of the plan, over the first `count`."""
    plan = batches.plan(EPOCH)
    chosen = [plan[number] for number in range(min(count, len(plan)))]
    started = time.thread_time()
    for indices in chosen:
        collate(pairs, indices)
    return (time.thread_time() - started) / len(chosen)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("settings", nargs="*", help="settings of nmt.train, for example data=text threads=2")
    parser.add_argument("--tokens", type=int, nargs="+", default=[4096, 25000], help="batching.tokens, in turn")
    parser.add_argument("--updates", type=int, default=8, help="timed, after a first one that is not")
    parser.add_argument("--output", type=Path, help="a file for the numbers, as JSON; Markdown beside it")
    options = parser.parse_args()
    overrides = ["experiment=transformer", *map(readable_override, options.settings)]
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        cfg = compose("train", overrides, return_hydra_config=True)
    choices = cfg.hydra.runtime.choices
    settings = OmegaConf.masked_copy(cfg, [str(key) for key in cfg if key != "hydra"])
    config: Any = OmegaConf.to_container(settings, resolve=True)
    if options.output:
        require_writable(options.output.parent)
    benchmark = LoadingBenchmark(options.tokens, options.updates)
    setup = benchmark_setup(check(TrainConfig, config), config)
    report = benchmark.run(setup)
    print(report.markdown(), end="", flush=True)
    if options.output:
        groups = {name: choices[name] for name in ("experiment", "size", "data")}
        report.write(
            options.output, {"suite": "loading", **groups, "device": setup.device, "precision": setup.precision}
        )


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        say(f"error: {error}")
        sys.exit(error.code)
