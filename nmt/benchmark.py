"""Program: how fast, and how well used, the parts are.      python -m nmt.benchmark suite=loading"""

from pathlib import Path
from typing import Any

import torch
from hydra.core.hydra_config import HydraConfig
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

from nmt.benchmarks.suite import Bench, Suite
from nmt.cli import program, say
from nmt.corpora import prepared_corpus
from nmt.data.batching import Batches, BatchingSettings
from nmt.data.prepared import Prepared
from nmt.errors import require_whole
from nmt.evaluation.store import require_writable, to_json
from nmt.files import write_text
from nmt.record import record
from nmt.run import build_model, choose_device, choose_precision
from nmt.training.loop import Job, TrainingSettings
from nmt.training.schedule import constant


@program("benchmark")
def main(cfg: DictConfig) -> None:
    config: dict[str, Any] = OmegaConf.to_container(cfg, resolve=True)  # type: ignore[assignment]
    choices = dict(HydraConfig.get().runtime.choices)
    suite: Suite = instantiate(config["suite"])
    output = Path(str(config["output"])).expanduser() if config["output"] else None
    if output is not None:
        require_writable(output.parent)
    if config["threads"] is not None:
        require_whole("threads", config["threads"])
        torch.set_num_threads(config["threads"])
    device = choose_device(config["device"])
    config["precision"] = choose_precision(config["precision"], device)
    bench = Bench(
        prepare=lambda: prepared_corpus(config),
        job=lambda prepared, batches: _job(config, prepared, batches, device),
        batching=BatchingSettings(**config["batching"]),
        training=TrainingSettings(**config["training"]),
        device=device,
        precision=config["precision"],
        say=say,
    )
    report = suite.run(bench)
    print(report.page(), end="", flush=True)
    if output is not None:
        made_with = {name: choices[name] for name in ("suite", "experiment", "size", "data")}
        made = record()
        facts = {**made_with, "device": device, "precision": config["precision"], **report.results, "record": made}
        write_text(output, to_json(facts) + "\n")
        origin = f"- Made {made['date']} at commit {str(made['commit'])[:18]} on {made['machine']}.\n"
        write_text(output.with_suffix(".md"), report.page() + origin)
        say(f"written: {output} and {output.with_suffix('.md')}")
        if report.draw is not None:
            report.draw(output.with_suffix(".png"))
            say(f"written: {output.with_suffix('.png')}")


def _job(config: dict[str, Any], prepared: Prepared, batches: Batches, device: str) -> Job:
    torch.manual_seed(config["seed"])
    model = build_model(config["model"], prepared.source.vocab_size, prepared.target.vocab_size).to(device)
    optimizer = instantiate(config["optimizer"])(model.parameters())
    return Job(model, optimizer, constant(), batches, None, device, config["precision"])


if __name__ == "__main__":
    main()
