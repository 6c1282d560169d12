"""What works here: environment, devices and a short training of each system, as text for a report."""

import os
import platform
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nmt import __version__
from nmt.provenance import git_commit, machine_description, package_version

PACKAGES = ("torch", "sentencepiece", "sacrebleu", "hydra-core", "pydantic", "datasets", "numpy", "safetensors")
SYSTEMS = ("rnn", "bahdanau", "luong", "transformer")
UPDATES, PAIRS, LENGTH, VOCABULARY = 60, 16, 6, 24


def environment() -> Iterator[tuple[str, str]]:
    """Versions, devices and folders, one fact a line."""
    import torch

    from nmt.loading import choose_device, choose_precision
    from nmt.models.backends import choose_backend
    from nmt.training.loop import precision_dtype

    device = choose_device("auto")
    precision = choose_precision("bf16", device)
    kernel = choose_backend("auto", window=128, head_size=64, positions="sinusoidal", dropout=0.0)
    yield "nmt", f"{__version__} {git_commit()}".strip()
    yield "python", f"{platform.python_version()}, {platform.platform()}"
    yield "packages", ", ".join(f"{name} {package_version(name) or 'missing'}" for name in PACKAGES)
    yield "machine", f"{machine_description()}, {torch.backends.cpu.get_cpu_capability()}"
    yield "device", f"{device}, {torch.get_num_threads()} threads"
    yield "precision", f"fp32{', bf16' if precision == 'bf16' else ''}; products by {_products()}"
    yield "attention", kernel.describe(torch.device(device), precision_dtype("fp32"), 0.0)
    for folder in (Path.cwd(), Path(tempfile.gettempdir())):
        writable = "writable" if os.access(folder, os.W_OK) else "NOT writable"
        yield "folder", f"{folder.name or folder}: {writable}, {shutil.disk_usage(folder).free / 2**30:.1f} GiB free"


def _products() -> str:
    import torch

    return (
        "MKL" if torch.backends.mkl.is_available() else "OpenBLAS" if torch.backends.openmp.is_available() else "torch"
    )


def systems() -> Iterator[tuple[str, str]]:
    """Each system learns a few pairs by heart and translates them: about ten seconds together."""
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
    import torch
    from hydra import compose, initialize_config_dir
    from omegaconf import OmegaConf

    from nmt.data.batching import Batch
    from nmt.data.tokenizer import BOS, EOS
    from nmt.decoding.beam_search import search
    from nmt.loading import build_model
    from nmt.schema import conf_dir
    from nmt.settings import SearchSettings
    from nmt.training.loop import Budget, TrainState, accumulate_gradients
    from nmt.training.schedule import constant
    from nmt.training_settings import TrainingSettings

    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        config: Any = OmegaConf.to_container(compose("train", [f"experiment={experiment}"]).model, resolve=True)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model = build_model(config, VOCABULARY, VOCABULARY)
        words = torch.randint(4, VOCABULARY, (PAIRS, LENGTH))
    end, start = (torch.full((PAIRS, 1), piece) for piece in (EOS, BOS))
    lengths = torch.full((PAIRS,), LENGTH + 1)
    src, tgt_in = torch.cat([words, end], dim=1), torch.cat([start, words.flip(1)], dim=1)
    batch = Batch(src, tgt_in, torch.cat([words.flip(1), end], dim=1), lengths, lengths)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    state = TrainState(model, optimizer, constant(), None, Budget(UPDATES, ""))  # type: ignore[arg-type]
    settings, losses = TrainingSettings.defaults(max_updates=UPDATES, label_smoothing=0.0), []
    for _ in range(UPDATES):
        nll, pieces = accumulate_gradients(state, [batch], settings)
        losses.append(nll.item() / pieces)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    outputs = search(model.eval(), src, SearchSettings.defaults(beam=1))
    right = sum(best[0].ids == target for best, target in zip(outputs, words.flip(1).tolist(), strict=True))
    return losses[0], losses[-1], right
