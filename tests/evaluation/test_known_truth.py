"""Intervals and p values against the truth, on an invented population; and what the reference results say of it."""

import json

import pytest

from scripts.known_truth import (
    OUTPUT,
    Population,
    interval_in_blocks,
    interval_of_bleu,
    interval_of_interaction,
    interval_with_seeds,
    markdown,
    no_difference,
)

FOUND = json.loads((OUTPUT / "known_truth.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def population() -> Population:
    return Population()


def test_the_page_shows_what_was_measured() -> None:
    assert (OUTPUT / "known_truth.md").read_text(encoding="utf-8") == markdown(FOUND)


@pytest.mark.parametrize("row", FOUND["bleu"] + FOUND["interaction"], ids=lambda row: f"{row['n']} sentences")
def test_93_to_97_per_cent_of_the_intervals_measured_hold_the_truth(row: dict[str, float]) -> None:
    assert row["test_sets"] >= 2_000
    assert 0.93 <= row["held"] <= 0.97


@pytest.mark.slow
@pytest.mark.parametrize("n", [100, 200, 400])
def test_the_interval_of_bleu_holds_the_populations_bleu(population: Population, n: int) -> None:
    """93-97%, give or take two standard errors of 1,500 test sets."""
    assert 0.918 <= interval_of_bleu(population, n, 1_500)["held"] <= 0.982


@pytest.mark.slow
def test_the_interval_of_the_difference_of_differences_holds_the_true_one(population: Population) -> None:
    found = interval_of_interaction(population, 200, 1_000)
    assert found["truth"] > 1
    assert 0.915 <= found["held"] <= 0.985


@pytest.mark.slow
@pytest.mark.parametrize("n", [100, 200])
def test_p_values_are_uniform_where_there_is_no_difference_and_sacrebleus_are_not(
    population: Population, n: int
) -> None:
    """The distance from uniform that one sample in a hundred exceeds is 1.63 / sqrt(sets) (Kolmogorov)."""
    sets = 1_500
    found = no_difference(population, n, sets)
    for name in ("p_bootstrap", "p_randomisation"):
        assert 0.035 <= found[name]["under_0.05"] <= 0.065
        assert found[name]["farthest"] < 1.63 / sets**0.5
    assert 0.09 <= found["p_sacrebleu"]["under_0.05"] <= 0.14
    assert found["p_sacrebleu"]["farthest"] > 0.3
    assert 0.93 <= found["intervals_with_0"] <= 0.97


@pytest.mark.parametrize("row", FOUND["no_difference"], ids=lambda row: f"{row['n']} sentences")
def test_5_per_cent_of_the_p_values_measured_are_under_5_per_cent(row: dict[str, dict[str, float]]) -> None:
    for name in ("p_bootstrap", "p_randomisation"):
        assert 0.04 <= row[name]["under_0.05"] <= 0.06
        assert row[name]["farthest"] < 1.63 / row["test_sets"] ** 0.5  # type: ignore[operator]
    assert 0.09 <= row["p_sacrebleu"]["under_0.05"] <= 0.14


@pytest.mark.slow
def test_where_neighbours_are_alike_only_blocks_hold_the_truth(population: Population) -> None:
    found = interval_in_blocks(population, 2_000, 20, 500)
    assert 0.92 <= found["by_block"] <= 0.975
    assert found["by_sentence"] < 0.7


@pytest.mark.slow
@pytest.mark.parametrize(("seeds", "least"), [(3, 0.86), (5, 0.90)])
def test_with_seeds_nested_the_interval_holds_the_mean_of_all_trainings(
    population: Population, seeds: int, least: float
) -> None:
    """Their luck is larger here than that of the sentences, which alone hold the truth half the time."""
    found = interval_with_seeds(population, 400, seeds, 400)
    assert least <= found["nested"] <= 0.975
    assert found["one_seed"] < 0.65
