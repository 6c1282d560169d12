"""Writes docs/recipes.md, the papers' recipes in a table: python -m scripts.recipes (tests/test_recipes.py checks).

What a paper states is in the head of each file of conf/experiment/paper; parameters are counted from the built model.
"""

import re
from pathlib import Path
from typing import NamedTuple

import torch
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate

from nmt.cli import conf_dir
from nmt.loading import count_parameters
from nmt.models.rnn import Cell
from nmt.models.seq2seq import Seq2Seq

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "recipes.md"
ORDER = [
    "rnnencdec50", "rnnsearch50", "sutskever", "luong_base", "luong_reverse", "luong_dropout", "luong_global",
    "luong_feed", "luong_local_p", "transformer_base", "transformer_big",
]  # fmt: skip
KEYS = ("paper", "published", "vocabulary", "parameters", "state", "not exact", "command", "then")
HEAD = """\
# The papers' recipes

Settings of published systems, as `experiment=paper/NAME`. A row's parameters are counted from the model, built with
the paper's vocabulary; its state is the count of numbers in the decoder's cells (layers x (h + c)). BLEU is the
paper's own, of tokenised text and with unknown words in it: it compares with no number of this program's. None of these
has been trained to its end here. `python -m scripts.recipes` writes this page.

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


def row(recipe: Recipe) -> str:
    model = build(recipe)
    state = state_numbers(model)
    stated = f" ({recipe.facts['state']})" if "state" in recipe.facts else ""
    cells = [
        f"`{recipe.name}`",
        recipe.title,
        recipe.facts["paper"],
        recipe.facts["published"],
        recipe.facts["vocabulary"],
        f"{count_parameters(model):,} ({recipe.facts['parameters']})",
        f"{state:,}{stated}" if state else "–",
        recipe.facts["not exact"],
    ]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def markdown() -> str:
    recipes = [read(name) for name in ORDER]
    columns = [
        "recipe", "what it is", "paper", "published", "vocabulary", "parameters (paper's)", "state (paper's)",
        "not exact",
    ]  # fmt: skip
    table = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns), *map(row, recipes)]
    commands = "\n".join(
        command for recipe in recipes for command in (recipe.facts["command"], recipe.facts.get("then")) if command
    )
    return HEAD + "\n".join(table) + f"\n\n```\n{commands}\n```\n"


if __name__ == "__main__":
    PAGE.write_text(markdown(), encoding="utf-8")
