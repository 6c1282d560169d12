"""A trained run, loaded anywhere: config, pieces, weights, and the translator made of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from hydra.utils import get_class, instantiate
from torch import nn

from nmt.data.corpus import Corpus
from nmt.data.tokenizer import PAD, Tokenizer, load_tokenizers
from nmt.decoding.translator import Translator
from nmt.errors import ConfigError, UserError
from nmt.models.seq2seq import Carried, Seq2Seq
from nmt.progress import say
from nmt.run_directory import CONFIG, UNFINISHED, read_config, read_status
from nmt.training import checkpoint

PRECISIONS = ("fp32", "bf16")
UNIFORM_VOCABULARY = 8  # pieces, where only a model's shape is asked for


@dataclass(frozen=True)
class Run:
    """A trained system, ready to use."""

    path: Path
    name: str
    seed: int
    config: dict[str, Any]
    model: Seq2Seq
    source: Tokenizer
    target: Tokenizer
    updates: int
    weights: Path

    @property
    def parameters(self) -> int:
        return count_parameters(self.model)

    def translator(self, device: str = "cpu", max_src_pieces: int | None = None) -> Translator:
        """Ready to translate; longer sources than `max_src_pieces` (the training's bound) are split."""
        bound = max_src_pieces or self.config["batching"]["max_pieces"]
        return Translator(self.model.to(device).eval(), self.source, self.target, bound, device)

    def corpus(self) -> Corpus:
        """The corpus the run was trained on; file names are taken from the current directory."""
        return instantiate(self.config["data"])


def load_run(path: str | Path) -> Run:
    """The run at `path`: a run directory (its best weights, else the last) or a weights file in one."""
    path = Path(path).expanduser()
    if not path.exists():
        raise UserError(
            f"there is no checkpoint at {path}; train one, for example: python -m nmt.train experiment=bahdanau"
        )
    weights = path if path.is_file() else _weights_of(path)
    folder = weights.parent if (weights.parent / CONFIG).exists() else weights.parent.parent
    config = read_config(folder)
    source, target = load_tokenizers(folder)
    model = build_model(config["model"], source.vocab_size, target.vocab_size)
    checkpoint.load_weights(weights, model)
    name = str(config.get("name") or folder.name)
    return Run(
        folder, name, int(config["seed"]), config, model.eval(), source, target, checkpoint.update_of(weights), weights
    )


def load(path: str | Path, device: str = "cpu") -> Translator:
    """`nmt.load("outputs/grammar/bahdanau").translate(["the old dog sleeps"])`."""
    return load_run(path).translator(device)


def build_model(config: dict[str, Any], src_vocab_size: int, tgt_vocab_size: int) -> Seq2Seq:
    """The model of a config; ConfigError where a `_target_` is no model part."""
    for name in _targets(config):
        _check_target(name)
    make = instantiate(config)
    try:
        return make(src_vocab_size=src_vocab_size, tgt_vocab_size=tgt_vocab_size, pad_id=PAD)
    except TypeError as error:  # a setting too many or too few for this class
        raise ConfigError(f"the model cannot be built: {error}; do model= and attention= go together?") from None


def carried(config: dict[str, Any]) -> Carried | None:
    """How many numbers of a source reach the decoder of a run with these settings; its vocabulary does not matter."""
    return build_model(config["model"], UNIFORM_VOCABULARY, UNIFORM_VOCABULARY).carried()


def count_parameters(model: nn.Module) -> int:
    """Trainable numbers, tied ones once."""
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def choose_device(name: str) -> str:
    """'auto' is the first there is of CUDA, MPS and CPU; ConfigError where a named one is absent."""
    there_is = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if name == "auto":
        return next(kind for kind, present in there_is.items() if present)
    kind = name.split(":")[0]
    if not there_is.get(kind, False):
        present = ", ".join(kind for kind, available in there_is.items() if available)
        raise ConfigError(f"device={name}: there is no such device here; there is: {present}")
    return name


def choose_precision(name: str, device: str) -> str:
    """What products are made in; fp32, and a remark, where the device has no fast bf16. ConfigError for another name.

    On x86 without AVX-512, PyTorch multiplies bfloat16 matrices one number at a time, and its LSTM refuses them.
    """
    if name not in PRECISIONS:
        raise ConfigError(f"precision={name} is unknown: use {' or '.join(PRECISIONS)}")
    if name == "bf16" and torch.device(device).type == "cpu" and torch.backends.cpu.get_cpu_capability() == "AVX2":
        say("note: this processor has no AVX-512, so bf16 would be many times slower than fp32; precision=fp32 is used")
        return "fp32"
    return name


def _weights_of(folder: Path) -> Path:
    for name in (checkpoint.BEST, checkpoint.LAST):
        if (folder / name).exists():
            return folder / name
    if (folder / CONFIG).exists():
        if read_status(folder) not in ("", *UNFINISHED):
            raise UserError(f"{folder} is kept without its weights, so only the evaluations in it can be used")
        raise UserError(f"{folder} has no weights yet; the training has not reached its first checkpoint")
    raise UserError(f"{folder} is not a run directory: it has no {CONFIG}")


def _targets(config: Any) -> Iterator[str]:
    if isinstance(config, dict):
        if "_target_" in config:
            yield config["_target_"]
        config = list(config.values())
    if isinstance(config, list):
        for value in config:
            yield from _targets(value)


def _check_target(name: str) -> None:
    """A run directory may come from anywhere: nothing but model classes is ever built from its config."""
    try:
        found = get_class(name)
    except Exception as error:  # an import of the user's own module may raise anything
        reason = " ".join(str(error).split())
        raise ConfigError(f"cannot find {name} ({reason}); is its folder on PYTHONPATH or the current one?") from None
    if not issubclass(found, nn.Module):
        raise ConfigError(f"{name} is not a torch.nn.Module; only those can be part of a model")
