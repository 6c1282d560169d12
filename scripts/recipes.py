"""Writes docs/recipes.md, the papers' recipes in a table: python -m scripts.recipes (tests/test_recipes.py checks).

What a paper states is in the head of each file of conf/experiment/paper; parameters are counted from the built model.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate

from nmt.cli import conf_dir
from nmt.loading import count_parameters
from nmt.models.rnn import Cell
from nmt.models.seq2seq import Seq2Seq
from nmt.training.loss import CHUNK

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "recipes.md"
ORDER = [
    "rnnencdec50", "rnnsearch50", "sutskever", "luong_base", "luong_reverse", "luong_dropout", "luong_global",
    "luong_feed", "luong_local_p", "transformer_base", "transformer_big",
]  # fmt: skip
KEYS = ("paper", "published", "vocabulary", "parameters", "state", "not exact", "command", "then")
# Parameters of each recipe in the symbols of SYMBOLS; GRU and LSTM count a cell with inputs of size i and n units.
LUONG = "2*V*n + 8*LSTM(n,n) + n*n + (n+1)*V"
TRANSFORMER = "P*(d+1) + 6*(12*d*d + 2*(2*d*f+f+d) + 10*d)"
FORMULAS = {
    "rnnencdec50": "2*V*m + (l+1)*V + GRU(m,n) + GRU(m+n,n) + n*n + 2*l*(2*n+m+1)",
    "rnnsearch50": "2*V*m + (l+1)*V + 2*GRU(m,n) + GRU(m+2*n,n) + n*n + (3*n+1)*n + 2*l*(3*n+m+1)",
    "sutskever": "160_000*n + 80_000*n + 8*LSTM(n,n) + (n+1)*80_000",
    **dict.fromkeys(("luong_base", "luong_reverse", "luong_dropout"), LUONG),
    "luong_global": f"{LUONG} + n*n + 201*n",
    "luong_feed": f"{LUONG} + n*n + 201*n + 4*n*n",
    "luong_local_p": f"{LUONG} + n*n + 2*n*n + n + 4*n*n",
    **dict.fromkeys(("transformer_base", "transformer_big"), TRANSFORMER),
}
SYMBOLS: dict[str, dict[str, Any]] = {
    "rnn": {"V": 30_000, "m": 620, "n": 1000, "l": 500},
    "sutskever": {"n": 1000},
    "luong": {"V": 50_000, "n": 1000},
    "transformer_base": {"P": 37_000, "d": 512, "f": 2048},
    "transformer_big": {"P": 37_000, "d": 1024, "f": 4096},
}
CELLS = {"GRU": lambda i, n: 3 * (i * n + n * n + n), "LSTM": lambda i, n: 4 * (i * n + n * n + n)}
OPTIMIZER_STATE = {"Adam": 2, "AdamW": 2, "Adadelta": 2, "SGD": 0}  # numbers kept for each parameter
BYTES = 4  # weights, gradients and optimizer state are fp32, under precision=bf16 too
HEAD = """\
# The papers' recipes

Settings of published systems, as `experiment=paper/NAME`. BLEU is the paper's own, of tokenised text and with unknown
words in it: it cannot be compared with numbers of this program. None of these has been trained to its end here.
`python -m scripts.recipes` writes this page.

"""
BY_FORMULA = """
## Parameters by formula

A GRU with inputs of size i and n units has GRU(i,n) = 3 (i n + n² + n) parameters, an LSTM LSTM(i,n) = 4 (i n + n² +
n). V is the vocabulary of each side and P a joint one, m the size of the embeddings, n of the cells, l of the
readout; d is the width of a Transformer and f the inner size of its feed-forward layers. The counts are those of the
model as it is built; a test holds that the formulas give the same within 1%. State is the number of values in the
decoder's cells (layers × (h + c)).

"""
MEMORY = """
## Memory by formula

Weights and gradients take 4 bytes per parameter each, and the optimizer 4 bytes for each value that it keeps per
parameter: two for Adam and Adadelta, none for SGD without momentum. So the fixed part of a training is 4 (2 + k)
bytes per parameter, with k = 2 or 0. The logits of at most 1,024 positions exist at one time, in fp32 and with their
gradient: about 8 × 1,024 × V bytes. Activations come on top; they grow with `batching.tokens`. `nmt train` measures
the total on the largest batch and prints it before it starts.

"""


class Recipe(NamedTuple):
    """A file of conf/experiment/paper."""

    name: str
    title: str
    facts: dict[str, str]  # by the KEYS above, as the file's head states them

    @property
    def vocabulary(self) -> tuple[int, int]:
        """Source and target entries."""
        sizes = [int(number.replace(",", "")) for number in re.findall(r"[\d,]+", self.facts["vocabulary"])]
        return sizes[0], sizes[-1]


def read(name: str) -> Recipe:
    lines = (Path(conf_dir()) / "experiment" / "paper" / f"{name}.yaml").read_text(encoding="utf-8").split("\n")
    head = "\n".join(line.removeprefix("# ") for line in lines if line.startswith("# "))
    _, title, *rest = re.sub(r"\n +", " ", head).split("\n")  # an indented line continues the one above
    facts = dict(line.split(": ", 1) for line in rest if line.split(": ", 1)[0] in KEYS)
    return Recipe(name, title, facts)


def build(recipe: Recipe) -> Seq2Seq:
    """The model without memory for its weights."""
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        config = compose("train", [f"experiment=paper/{recipe.name}"])
    source, target = recipe.vocabulary
    with torch.device("meta"):
        return instantiate(config.model)(src_vocab_size=source, tgt_vocab_size=target, pad_id=0)


def state_numbers(model: Seq2Seq) -> int | None:
    """layers x (h + c) of a recurrent decoder."""
    return sum(cell.state_tensors * cell.size for cell in model.modules() if isinstance(cell, Cell)) or None


def by_formula(name: str) -> int:
    """The parameters that the formula gives."""
    symbols = next(values for prefix, values in SYMBOLS.items() if name.startswith(prefix))
    return eval(FORMULAS[name], {"__builtins__": {}}, {**symbols, **CELLS})


def training_bytes(recipe: Recipe, parameters: int) -> int:
    """Weights, gradients and optimizer state of a training."""
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        optimizer = compose("train", [f"experiment=paper/{recipe.name}"]).optimizer._target_
    return BYTES * (2 + OPTIMIZER_STATE[optimizer.rsplit(".", 1)[-1]]) * parameters


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [" | ".join(cell.replace("|", "\\|") for cell in row) for row in (header, *rows)]
    return "\n".join(f"| {line} |" for line in (lines[0], " | ".join(["---"] * len(header)), *lines[1:])) + "\n"


def size_rows(recipes: Sequence[Recipe]) -> Iterator[tuple[list[str], list[str]]]:
    """For each recipe its row of parameters, and that of memory."""
    for recipe in recipes:
        model = build(recipe)
        count, state = count_parameters(model), state_numbers(model)
        stated = f" ({recipe.facts['state']})" if "state" in recipe.facts else ""
        logits = 2 * BYTES * CHUNK * recipe.vocabulary[1]
        yield (
            [f"`{recipe.name}`", f"`{FORMULAS[recipe.name]}`", f"{count:,} ({recipe.facts['parameters']})",
             f"{state:,}{stated}" if state else "–"],
            [f"`{recipe.name}`", f"{training_bytes(recipe, count) / 1e9:.1f} GB", f"{logits / 1e9:.1f} GB"],
        )  # fmt: skip


def markdown() -> str:
    recipes = [read(name) for name in ORDER]
    papers = [
        [f"`{one.name}`", one.title, one.facts["paper"], one.facts["published"], one.facts["vocabulary"],
         one.facts["not exact"]]
        for one in recipes
    ]  # fmt: skip
    sizes, memory = zip(*size_rows(recipes), strict=True)
    commands = "\n".join(
        command for recipe in recipes for command in (recipe.facts["command"], recipe.facts.get("then")) if command
    )
    return (
        HEAD + table(["recipe", "what it is", "paper", "published", "vocabulary", "not exact"], papers)
        + f"\n## Commands\n\n```\n{commands}\n```\n"
        + BY_FORMULA + table(["recipe", "formula", "parameters (paper's)", "state (paper's)"], sizes)
        + MEMORY + table(["recipe", "weights, gradients, optimizer", "logits"], memory)
    )  # fmt: skip


if __name__ == "__main__":
    PAGE.write_text(markdown(), encoding="utf-8")
