"""A trained model loaded from a run. torch takes seconds to import, so only the functions that need it import it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.utils import get_class, instantiate

from nmt.data.corpus import Corpus
from nmt.data.tokenizer import PAD, Tokenizer, load_tokenizers
from nmt.errors import ConfigError, ModelError, UserError
from nmt.files import printable
from nmt.model_settings import ATTENTIONS, MODELS
from nmt.progress import say
from nmt.provenance import command_of
from nmt.run import CONFIG, UNFINISHED, read_config, read_data_facts, read_status, sections_in
from nmt.schema import about, check_arguments
from nmt.training_settings import section_of_corpus

if TYPE_CHECKING:
    from torch import nn

    from nmt.decoding.translator import Translator
    from nmt.models.seq2seq import BottleneckSize, Seq2Seq


@dataclass(frozen=True)
class Run:
    """A trained system, ready to use."""

    path: Path
    name: str
    seed: int
    config: dict[str, Any]
    model: "Seq2Seq"
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    updates: int
    weights: Path

    @property
    def parameters(self) -> int:
        return count_parameters(self.model)

    def translator(self, device: str = "cpu", max_src_pieces: int | None = None) -> "Translator":
        """Ready to translate; sources longer than `max_src_pieces` (by default the longest trained on) are split."""
        from nmt.decoding.translator import Translator

        limit = max_src_pieces or longest_source(self.path, self.config)
        return Translator(self.model.to(device).eval(), self.source_tokenizer, self.target_tokenizer, limit, device)

    def corpus(self, data_dir: Path = Path("data")) -> Corpus:
        return stored_corpus(self.path, self.config, data_dir)


def longest_source(run_dir: Path, config: Mapping[str, Any]) -> int:
    """Pieces of the longest source that a run was trained on, or may have been where it was not stored."""
    limit = int(config["batching"]["max_pieces"])
    longest = read_data_facts(run_dir).get("longest_source")
    return longest if isinstance(longest, int) and 0 < longest <= limit else limit


def load_run(path: str | Path, trust: Collection[str] = ()) -> Run:
    """The run at `path`: a run directory (its best weights, else the last) or a weights file in one.

    UserError where it is not a run that this program has made, before anything is imported or allocated. `trust` names
    classes of the user's own, or their modules.
    """
    from nmt.training import checkpoints

    path = Path(path).expanduser()
    if not path.exists():
        raise UserError(
            f"there is no checkpoint at {path}; train one, for example: {command_of('train')} experiment=bahdanau"
        )
    weights = path if path.is_file() else weights_file(path)
    folder = weights.parent if (weights.parent / CONFIG).exists() else weights.parent.parent
    config = read_config(folder, trust)
    source, target = load_tokenizers(folder)
    sizes = (source.vocab_size, target.vocab_size)
    checkpoints.require_weights_of(weights, model_shape(config["model"], *sizes))
    model = build_model(config["model"], *sizes)
    checkpoints.load_weights(weights, model)
    name, updates = printable(str(config.get("name") or folder.name)), checkpoints.update_of(weights) or 0
    return Run(folder, name, int(config["seed"]), config, model.eval(), source, target, updates, weights)


def weights_file(folder: Path) -> Path:
    """The weights in a run directory that are used: the best in validation, else the last. UserError if none."""
    from nmt.training import checkpoints

    for name in (checkpoints.BEST, checkpoints.LAST):
        if (folder / name).exists():
            return folder / name
    if not (folder / CONFIG).exists():
        raise UserError(f"{folder} is not a run directory: it has no {CONFIG}")
    if read_status(folder).get("state", "") not in ("", *UNFINISHED):
        raise UserError(f"{folder} is kept without its weights, so only the evaluations in it can be used")
    raise UserError(f"{folder} has no weights yet; the training has not reached its first checkpoint")


def load(path: str | Path, device: str = "auto", trust: Collection[str] = ()) -> "Translator":
    """`nmt.load("outputs/grammar/bahdanau").translate("the old dog sleeps")`."""
    return load_run(path, trust).translator(choose_device(device))


def stored_corpus(folder: Path, config: dict[str, Any], data_dir: Path) -> Corpus:
    """The corpus that a run was trained on; file names are taken from the current directory.

    UserError for files outside the current folder, `data_dir` and the run: a stranger's run reads nothing else.
    """
    allowed = [place.resolve() for place in (Path.cwd(), data_dir, folder)]
    for data in (config["data"], *(config["data"].get("parts") or {}).values()):
        declared = section_of_corpus(data)
        fields = declared.model_fields if declared else {}
        for key in (name for name, field in fields.items() if about(field).path and data.get(name)):
            for name in [data[key]] if isinstance(data[key], str) else data[key]:
                place = Path(name).expanduser()
                is_hub_name = key == "path" and not place.exists() and not place.is_absolute() and ".." not in name
                if not is_hub_name and not any(place.resolve().is_relative_to(parent) for parent in allowed):
                    raise UserError(
                        f"{folder} reads {printable(name)}, outside the current folder and data_dir; "
                        "start there, or give the text: test.src=FILE test.ref=FILE"
                    )
    return instantiate(config["data"])


def build_model(config: dict[str, Any], src_vocab_size: int, tgt_vocab_size: int) -> "Seq2Seq":
    """The model of a config; ConfigError where a `_target_` is no model part, or its settings do not fit it."""
    from torch import nn

    for section in sections_in(config):
        name = section["_target_"]
        try:
            target = get_class(name)
        except Exception as error:  # an import of the user's own module may raise anything
            why = " ".join(str(error).split())
            raise ConfigError(f"cannot find {name} ({why}); is its folder on PYTHONPATH or the current one?") from None
        if not issubclass(target, nn.Module):
            raise ConfigError(f"{name} is not a torch.nn.Module; only those can be part of a model")
        if name not in MODELS | ATTENTIONS:
            check_arguments(target, section, "model.")
    partial_model = instantiate(config)
    try:
        return partial_model(src_vocab_size=src_vocab_size, tgt_vocab_size=tgt_vocab_size, pad_id=PAD)
    except TypeError as error:  # a setting too many or too few for this class
        raise ConfigError(f"the model cannot be built: {error}; do model= and attention= go together?") from None


def model_shape(config: dict[str, Any], src_vocab_size: int = 300, tgt_vocab_size: int = 300) -> "Seq2Seq":
    """The model of a config without memory for its weights."""
    import torch

    with torch.device("meta"):
        return build_model(config, src_vocab_size, tgt_vocab_size)


def bottleneck_size(config: dict[str, Any]) -> "BottleneckSize | None":
    """How many numbers of a source reach the decoder of a run with these settings, whatever its vocabulary."""
    return model_shape(config["model"]).bottleneck_size()


def count_parameters(model: "nn.Module") -> int:
    """Trainable numbers, tied ones once."""
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def require_memory(model: "nn.Module", device: str) -> None:
    """ModelError where a device cannot hold the weights of a model and their gradients, whatever else it needs."""
    import psutil
    import torch

    on_cuda = torch.device(device).type == "cuda"
    total = torch.cuda.mem_get_info(device)[1] if on_cuda else psutil.virtual_memory().total
    needed = 2 * sum(parameter.numel() * parameter.element_size() for parameter in model.parameters())
    if needed > total:
        raise ModelError(
            f"the model has {count_parameters(model):,} parameters and needs {needed / 2**30:,.0f} GiB or more "
            f"to be trained; {device} has {total / 2**30:,.0f} GiB: choose smaller sizes, such as size=d64"
        )


def choose_device(name: str) -> str:
    """'auto' is the first available of CUDA, MPS and CPU; ConfigError where a named one is absent."""
    import torch

    backends = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    available = [kind for kind, present in backends.items() if present]
    if name != "auto" and name.split(":")[0] not in available:
        raise ConfigError(f"device={name}: there is no such device here; there is: {', '.join(available)}")
    return available[0] if name == "auto" else name


def choose_precision(name: str, device: str) -> str:
    """The type of matrix products; fp32, and a note, where the device has no fast bf16.

    On x86 without AVX-512, PyTorch multiplies bfloat16 matrices one number at a time, and its LSTM refuses them.
    """
    import torch

    if name == "bf16" and torch.device(device).type == "cpu" and torch.backends.cpu.get_cpu_capability() == "AVX2":
        say("note: this processor has no AVX-512, so bf16 would be many times slower than fp32; precision=fp32 is used")
        return "fp32"
    return name
