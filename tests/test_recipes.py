"""Recipes of papers: sizes counted by hand, settings as stated, and the page that lists them."""

from pathlib import Path

import pytest
import torch
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig

from nmt.cli import conf_dir
from nmt.loading import count_parameters
from scripts.recipes import ORDER, PAGE, build, by_formula, markdown, read, state_numbers, training_bytes

GRU, LSTM = 3, 4


def cell(gates: int, reads: int, size: int) -> int:
    """Matrices from the input and from the last state, and one bias."""
    return gates * (reads * size + size * size + size)


def deep(layers: int, reads: int, size: int) -> int:
    return cell(LSTM, reads, size) + (layers - 1) * cell(LSTM, size, size)


def luong(score: int, context: int, fed: int) -> int:
    embeddings, softmax = 2 * 50_000 * 1000, 1000 * 50_000 + 50_000
    attentional = (1000 + context) * 1000
    return embeddings + deep(4, 1000, 1000) + deep(4, 1000 + fed, 1000) + score + attentional + softmax


def transformer(width: int, inner: int, layers: int = 6) -> int:
    look, norm = 4 * width * width, 2 * width
    feed = 2 * width * inner + inner + width
    return 37_000 * width + layers * (look + feed + 2 * norm) + layers * (2 * look + feed + 3 * norm) + 37_000


WORDS = 2 * 30_000 * 620 + 500 * 30_000 + 30_000  # embeddings and softmax of the GroundHog systems
BY_HAND = {
    "rnnencdec50": WORDS
    + cell(GRU, 620, 1000)
    + cell(GRU, 620 + 1000, 1000)
    + 1000 * 1000  # the start
    + 2 * 500 * (1000 + 1000 + 620 + 1),
    "rnnsearch50": WORDS
    + 2 * cell(GRU, 620, 1000)
    + cell(GRU, 620 + 2000, 1000)
    + 1000 * 1000  # the start
    + (1000 + 2000 + 1) * 1000  # the alignment
    + 2 * 500 * (1000 + 2000 + 620 + 1),
    "sutskever": 160_000 * 1000 + 80_000 * 1000 + 2 * deep(4, 1000, 1000) + 1000 * 80_000 + 80_000,
    "luong_base": luong(score=0, context=0, fed=0),
    "luong_reverse": luong(score=0, context=0, fed=0),
    "luong_dropout": luong(score=0, context=0, fed=0),
    "luong_global": luong(score=1000 * 201, context=1000, fed=0),
    "luong_feed": luong(score=1000 * 201, context=1000, fed=1000),
    "luong_local_p": luong(score=1000 * 1000 + 1000 * 1000 + 1000, context=1000, fed=1000),
    "transformer_base": transformer(512, 2048),
    "transformer_big": transformer(1024, 4096),
}
STATED = {"sutskever": (384e6, 0.01), "transformer_base": (65e6, 0.03), "transformer_big": (213e6, 0.01)}


def composed(name: str) -> DictConfig:
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        return compose("train", [f"experiment=paper/{name}", "data=text"])


def test_every_recipe_is_listed_and_counted() -> None:
    files = {path.stem for path in Path(conf_dir(), "experiment", "paper").glob("*.yaml")}
    assert files == set(ORDER) == set(BY_HAND)


@pytest.mark.parametrize("name", ORDER)
def test_a_recipe_has_the_parameters_counted_by_hand(name: str) -> None:
    assert count_parameters(build(read(name))) == pytest.approx(BY_HAND[name], rel=0.01)


@pytest.mark.parametrize("name", ORDER)
def test_the_formula_on_the_page_gives_the_parameters_of_the_model(name: str) -> None:
    assert by_formula(name) == pytest.approx(count_parameters(build(read(name))), rel=0.01)


@pytest.mark.parametrize(("name", "optimizer"), [("rnnsearch50", "Adadelta"), ("luong_base", "SGD"),
                                                  ("transformer_base", "Adam")])  # fmt: skip
def test_a_training_keeps_the_bytes_of_its_optimizer(name: str, optimizer: str) -> None:
    weight = torch.nn.Parameter(torch.ones(10))
    made = getattr(torch.optim, optimizer)([weight], lr=0.1)
    weight.sum().backward()
    made.step()
    kept = sum(value.nbytes for value in made.state[weight].values() if torch.is_tensor(value) and value.dim())
    assert weight.grad is not None
    assert training_bytes(read(name), 10) == weight.nbytes + weight.grad.nbytes + kept


@pytest.mark.parametrize("name", STATED)
def test_a_recipe_has_about_the_parameters_that_its_paper_states(name: str) -> None:
    stated, within = STATED[name]
    assert count_parameters(build(read(name))) == pytest.approx(stated, rel=within)


def test_sutskevers_sentence_is_eight_thousand_numbers() -> None:
    assert state_numbers(build(read("sutskever"))) == 8000


def test_a_recipe_cites_its_paper_and_its_published_result() -> None:
    for name in ORDER:
        facts = read(name).facts
        assert {"paper", "published", "vocabulary", "parameters", "not exact", "command"} <= set(facts), name
        assert facts["paper"].startswith("arXiv:")
        assert f"experiment=paper/{name} " in facts["command"]


def test_groundhogs_training_is_as_stated() -> None:
    config = composed("rnnsearch50")
    assert (config.optimizer._target_, config.optimizer.lr) == ("torch.optim.Adadelta", 1.0)
    assert (config.optimizer.rho, config.optimizer.eps) == (0.95, 1e-6)
    assert (config.training.clip_norm, config.cleaning.max_words, config.training.label_smoothing) == (1.0, 50, 0.0)
    assert config.schedule._target_.endswith("constant")
    assert config.schedule.warmup_updates == 0


@pytest.mark.parametrize(
    ("name", "epochs", "steady", "halvings", "rate"),
    [("sutskever", 7.5, 5, 5, 0.7), ("luong_base", 10, 5, 5, 1.0), ("luong_local_p", 12, 8, 4, 1.0)],
)
def test_the_rate_is_halved_when_the_paper_halves_it(
    name: str, epochs: float, steady: float, halvings: int, rate: float
) -> None:
    config = composed(name)
    assert (config.optimizer.lr, config.training.max_epochs, config.schedule.halvings) == (rate, epochs, halvings)
    assert config.schedule.steady * epochs == pytest.approx(steady, abs=1e-3)


@pytest.mark.parametrize(("name", "width", "kept"), [("transformer_base", 512, 5), ("transformer_big", 1024, 20)])
def test_the_transformers_peak_rate_and_average_are_the_papers(name: str, width: int, kept: int) -> None:
    config = composed(name)
    assert config.optimizer.lr == pytest.approx(width**-0.5 * 4000**-0.5, rel=1e-3)
    assert (config.training.average_last, config.training.label_smoothing) == (kept, 0.1)
    assert (config.model.norm, config.model.tie_embeddings, config.tokenizer.joint) == ("post", "all", True)


def test_the_page_is_what_the_script_writes() -> None:
    assert PAGE.read_text(encoding="utf-8") == markdown()
