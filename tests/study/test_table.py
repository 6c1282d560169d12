"""The table as text, Markdown and JSON. All numbers are invented."""

import json

import pytest

from nmt.study.fairness import fairness
from nmt.study.results import group, read_result
from nmt.study.table import Comparison, as_json, length_grid, markdown_page, summary_grid, text_table
from tests.study.fakes import INVENTED, write_run

RECORD = {"command": "python -m nmt.compare", "commit": "0123abc", "date": "2001-02-03", "machine": "a machine"}


@pytest.fixture
def systems(tmp_path):
    return group([read_result(write_run(tmp_path, system)) for system in INVENTED])


def test_each_system_has_one_row_in_each_block(systems):
    for grid in (summary_grid(systems), length_grid(systems)):
        assert [row[0] for row in grid.rows] == list(INVENTED)
        assert all(len(row) == len(grid.header) for row in grid.rows)


def test_the_header_of_a_bin_holds_its_n_and_a_mark_under_a_hundred(systems):
    header = length_grid(systems).header
    assert header[1] == "1–9\nn=500"
    assert header[-1] == "60+\nn=53*"


def test_a_bin_without_bleu_is_a_dash(systems):
    assert length_grid(systems).rows[0][-1] == "–"


def test_an_empty_bin_is_no_column(systems):
    for system in systems:
        system.results[0].evaluation["by_length"][-1] |= {"n": 0, "bleu": None, "interval": None}
    assert length_grid(systems).header[-1] == "50–59\nn=150"


def test_columns_of_the_text_stand_under_each_other(systems):
    block = text_table(Comparison(systems, RECORD)).split("\n\n")[0].split("\n")
    ends = {line.index("]") for line in block[2:]}
    assert len(ends) == 1
    assert len(block[1]) == max(map(len, block))


def test_the_text_says_how_it_was_made(systems):
    text = text_table(Comparison(systems, RECORD))
    for fact in ("2,153 sentences", "ab12ab12ab12", "0123abc", "2001-02-03", "a machine", "nrefs:1", "beam 5"):
        assert fact in text


def test_warnings_that_all_share_are_said_once(systems):
    for system in systems:
        system.results[0].evaluation["warnings"].append("odd references")
    systems[0].results[0].evaluation["warnings"].append("only mine")
    text = text_table(Comparison(systems, RECORD))
    assert text.count("Warning (all): odd references") == text.count("Warning (rnn): only mine") == 1


def test_markdown_rows_have_as_many_cells_as_their_header(systems):
    rows = [line for line in markdown_page(Comparison(systems, RECORD)).split("\n") if line.startswith("|")]
    assert {row.replace("\\|", "").count("|") for row in rows} == {10, 9}


def test_markdown_shows_the_interval_of_each_bin(systems):
    assert "41.0<br>[39.6, 42.4]" in markdown_page(Comparison(systems, RECORD))


def test_names_cannot_break_the_markdown(systems):
    odd = [systems[0].__class__("a|b*c", systems[0].results)]
    assert "| a\\|b\\*c |" in markdown_page(Comparison(odd, RECORD))


def test_json_is_strict_and_round_trips(systems):
    text = json.dumps(as_json(Comparison(systems, RECORD)), allow_nan=False)
    again = json.loads(text)
    assert again["systems"][0]["by_length"][1]["bleu"] == 41.0
    assert again["systems"][0]["by_length"][-1]["descriptive"] is True
    assert again["parameter_ratio"] == pytest.approx(409_000 / 397_000)


def test_seeds_are_shown_as_mean_and_range(tmp_path):
    results = [read_result(write_run(tmp_path, "rnn", seed)) for seed in (1, 2)]
    results[0].evaluation["metrics"]["bleu"]["score"] = 20.0
    results[1].evaluation["metrics"]["bleu"]["score"] = 23.0
    grid = summary_grid(group(results))
    row = dict(zip(grid.header, grid.rows[0], strict=True))
    assert (row["seeds"], row["BLEU"], row["updates"]) == ("2", "21.5 (20.0–23.0)", "1,500")


def test_what_is_the_same_for_all_is_said(systems):
    data, updates, batches, parameters = fairness(systems)
    assert data.startswith("Same training data for all: 20,000 pairs")
    assert updates == "Same updates for all: 1,500."
    assert batches == "Same batches for all: 800 tokens, padding included."
    assert parameters.startswith("Parameters agree within 3.0%: largest / smallest = 1.030")


def test_what_differs_is_shouted(systems):
    training = systems[1].results[0].training
    changed = training._replace(
        updates=700,
        settings={"batching": {"max_tokens": 801}},
        data={"train_sha256": "00" * 32, "train": {"kept": 19}},
    )
    systems[1].results[0].evaluation["parameters"] = 800_000
    object.__setattr__(systems[1].results[0], "training", changed)
    data, updates, batches, parameters = fairness(systems)
    assert data.startswith("TRAINING DATA DIFFER")
    assert "bahdanau 700" in updates
    assert batches == "BATCHES DIFFER in max_tokens."
    assert parameters.startswith("PARAMETERS DIFFER by 101.5%")


def test_seeds_in_the_batching_are_no_difference(systems):
    for number, system in enumerate(systems):
        system.results[0].training.settings["batching"]["seed"] = number
    assert fairness(systems)[2].startswith("Same batches")
