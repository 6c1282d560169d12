"""What works here: environment, devices and a short training of each system, as text for a report."""

import os
import platform
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from nmt import __version__
from nmt.data.batching import collate
from nmt.data.encoded_pairs import EncodedPairs, Sequences
from nmt.decoding.beam_search import search
from nmt.loading import build_model, choose_device, choose_precision
from nmt.models.backends import choose_backend
from nmt.provenance import git_commit, machine_description, package_version
from nmt.schema import conf_dir
from nmt.settings import SearchSettings
from nmt.training.loop import Budget, TrainState, accumulate_gradients
from nmt.training.schedule import constant
from nmt.training_settings import TrainingSettings

PACKAGES = ("torch", "sentencepiece", "sacrebleu", "hydra-core", "pydantic", "datasets", "numpy", "safetensors")
SYSTEMS = ("rnn", "bahdanau", "luong", "transformer")
UPDATES, PAIRS, LENGTH, VOCABULARY = 60, 16, 6, 24


def print_report() -> int:
    """The environment, then the self-test of the four systems, a line as soon as it is known; 1 where one failed."""
    print("\nFor a bug report:")
    failed = False
    for facts in (environment(), systems()):
        for name, fact in facts:
            failed |= fact.startswith("FAILED")
            print(f"  {name:<12}{fact}", flush=True)
    return int(failed)


def environment() -> Iterator[tuple[str, str]]:
    """Versions, devices and folders, one fact a line."""
    device = choose_device("auto")
    kernel = choose_backend("auto", window=128, head_size=64, positions="sinusoidal", dropout=0.0)
    blas = re.search(r"BLAS_INFO=(\w+)", torch.__config__.show())
    yield "nmt", f"{__version__} {git_commit()}".strip()
    yield "python", f"{platform.python_version()}, {platform.platform()}"
    yield "packages", ", ".join(f"{name} {package_version(name) or 'missing'}" for name in PACKAGES)
    yield "machine", f"{machine_description()}, {torch.backends.cpu.get_cpu_capability()}"
    yield "device", f"{device}, {torch.get_num_threads()} threads"
    bf16 = " and bf16" if choose_precision("bf16", device) == "bf16" else ""
    yield "precision", f"fp32{bf16}; products by {blas[1] if blas else 'torch itself'}"
    yield "attention", kernel.describe(torch.device(device), torch.float32, 0.0)
    for place, folder in (("here", Path.cwd()), ("temporary", Path(tempfile.gettempdir()))):
        writable = "writable" if os.access(folder, os.W_OK) else "NOT writable"
        yield "folder", f"{place}: {writable}, {shutil.disk_usage(folder).free / 2**30:.1f} GiB free"


def systems() -> Iterator[tuple[str, str]]:
    """Each system learns a few pairs by heart and translates them: about ten seconds together, on one thread."""
    torch.set_num_threads(1)  # several would wait for each other longer than they compute
    for name in SYSTEMS:
        started = time.perf_counter()
        try:
            first, last, right = _learn(name)
            outcome = "ok" if last < first / 4 and right >= PAIRS // 2 else "FAILED"
            facts = f"nll {first:.2f} -> {last:.2f}, {right} of {PAIRS} pairs translated back"
        except Exception as error:  # a broken installation may raise anything; the report shall say so
            outcome, facts = "FAILED", f"{type(error).__name__}: {error}"
        yield name, f"{outcome}: {facts}, {time.perf_counter() - started:.1f} s"


def _learn(experiment: str) -> tuple[float, float, int]:
    """NLL of the first and of the last update, and how many of the pairs greedy search reproduces."""
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        config: Any = OmegaConf.to_container(compose("train", [f"experiment={experiment}"]).model, resolve=True)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model = build_model(config, VOCABULARY, VOCABULARY)
        sources = torch.randint(4, VOCABULARY, (PAIRS, LENGTH)).tolist()
    targets = [source[::-1] for source in sources]
    batch = collate(EncodedPairs(Sequences.of(sources), Sequences.of(targets)), range(PAIRS))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    state = TrainState(model, optimizer, constant(), None, Budget(UPDATES, ""))  # type: ignore[arg-type]
    settings, losses = TrainingSettings.defaults(max_updates=UPDATES, label_smoothing=0.0), []
    for _ in range(UPDATES):
        nll, pieces = accumulate_gradients(state, [batch], settings)
        losses.append(nll.item() / pieces)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    outputs = search(model.eval(), batch.src, SearchSettings.defaults(beam=1))
    right = sum(best[0].ids == target for best, target in zip(outputs, targets, strict=True))
    return losses[0], losses[-1], right
