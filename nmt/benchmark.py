"""Program: time and memory of attention and of training.      python -m nmt.benchmark suite=attention"""

from pathlib import Path
from typing import Any

import torch
from hydra.utils import instantiate

from nmt.benchmarks import BenchmarkReport, BenchmarkSetup
from nmt.cli import Composed, program
from nmt.data.batching import Batches
from nmt.data.preparation.prepared_corpus import PreparedCorpus, prepare_from_config
from nmt.evaluation.stored import require_writable
from nmt.loading import build_model, choose_device, choose_precision
from nmt.training.loop import Budget, TrainState
from nmt.training.schedule import constant
from nmt.training_settings import TrainConfig


@program("benchmark")
def main(composed: Composed) -> None:
    suite = instantiate(composed.config["suite"])
    output = Path(composed.settings.output).expanduser() if composed.settings.output else None
    if output is not None:
        require_writable(output.parent)
    setup = benchmark_setup(composed.settings, composed.config)
    report: BenchmarkReport = suite.run(setup)
    print(report.markdown(), end="", flush=True)
    if output is not None:
        groups = {name: composed.choices[name] for name in ("suite", "experiment", "size", "data")}
        report.write(output, {**groups, "device": setup.device, "precision": setup.precision})


def benchmark_setup(settings: TrainConfig, config: dict[str, Any]) -> BenchmarkSetup:
    """What to measure, from the settings of nmt.train."""
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
    device = choose_device(settings.device)
    precision = choose_precision(settings.precision, device)

    def make_state(prepared: PreparedCorpus, batches: Batches) -> TrainState:
        torch.manual_seed(settings.seed)
        model = build_model(config["model"], prepared.source.vocab_size, prepared.target.vocab_size).to(device)
        optimizer = instantiate(config["optimizer"])(model.parameters())
        return TrainState(model, optimizer, constant(), batches, Budget(None, ""), device, precision)

    def prepare() -> PreparedCorpus:
        return prepare_from_config(config, lambda: instantiate(config["data"]))

    return BenchmarkSetup(prepare, make_state, settings.batching, settings.training, device, precision)


if __name__ == "__main__":
    main()
