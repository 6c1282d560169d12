"""The tables as text, Markdown, LaTeX and CSV. All translations are invented."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from nmt.evaluation.metrics import METRICS
from nmt.settings import MeasuredSettings
from nmt.study.fairness import fairness
from nmt.study.report import remarks
from nmt.study.report_files import ReportTexts, terminal_report, write_report
from nmt.study.results import System
from nmt.study.tables import (
    SYSTEM_COLUMNS,
    Grid,
    as_csv,
    as_latex,
    as_markdown,
    as_text,
    grids,
    length_grid,
    significance_grid,
    systems_grid,
)
from tests.study.fakes import FAULTS, report_of, systems_in


@pytest.fixture
def systems(tmp_path):
    return systems_in(tmp_path)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return report_of(systems_in(tmp_path_factory.mktemp("runs")))


def test_each_system_has_one_row_in_each_block(report):
    for grid in (systems_grid("", report.systems), length_grid(report.views[0], report.views[0].scores)):
        assert [row[0] for row in grid.rows] == list(FAULTS)
        assert all(len(row) == len(grid.header) for row in grid.rows)


def test_a_metric_is_one_line_of_metrics_py() -> None:
    """From which come the choices of the setting and the columns of the tables."""
    (choices,) = get_args(MeasuredSettings.model_fields["metrics"].annotation)
    assert {*get_args(choices), "chrf", "ter"} == set(METRICS)
    assert {metric.label for metric in METRICS.values()} <= set(SYSTEM_COLUMNS)


def test_no_two_tables_have_one_title(tmp_path):
    rnn, luong = systems_in(tmp_path, ("rnn", "luong"))
    titles = [grid.title for grid in grids(report_of([rnn], variants=[System("rnn, beam=1", luong.results)]))]
    assert len(set(titles)) == len(titles)


def test_every_table_is_rectangular(report):
    for grid in grids(report):
        assert {len(row) for row in grid.rows} == {len(grid.header)}, grid.title


def test_the_header_of_a_bin_holds_its_n_and_a_mark_under_a_hundred(report):
    header = length_grid(report.views[0], report.views[0].scores).header
    assert (header[1], header[-1]) == ("1–9\nn=130", "60+\nn=7*")


def test_the_numbers_that_reach_the_decoder_are_shown_where_known(report):
    grid = systems_grid("", report.systems)
    assert [row[grid.header.index("state")] for row in grid.rows] == ["128", "128 n", "–", "–"]


def test_a_bin_without_bleu_is_a_dash(report):
    view = report.views[0]
    scores = {"rnn": [replace(view.scores["rnn"][0], bleu=None, interval=None), *view.scores["rnn"][1:]]}
    assert length_grid(view, scores).rows[0][1] == "–"


def test_stars_stand_where_both_tests_say_so(report):
    grid = significance_grid(report.significance)
    assert grid.header[:2] == ["difference", "all"]
    assert grid.rows[0][0] == "bahdanau - rnn"
    assert "*" in grid.rows[0][grid.header.index("40–49")]
    assert not any("*" in row[grid.header.index("60+")] for row in grid.rows)  # 7 sentences: no claim


def test_columns_of_the_text_stand_under_each_other(report):
    lines = as_text(systems_grid("", report.systems)).split("\n")
    assert len({line.index("]") for line in lines[2:]}) == 1
    assert len(lines[1]) == max(map(len, lines))


def test_the_terminal_shows_the_result_first(report):
    text = terminal_report(replace(report, notes=remarks(report, [], [])))
    assert text.startswith("* bahdanau leads rnn by ")
    for fact in ("613 sentences", "0123abc", "2001-02-03", "a machine", "nrefs:1", "beam 5", "13a tokens", "one seed"):
        assert fact in text


def test_warnings_that_all_share_are_said_once(systems):
    for system in systems:
        system.results[0].warnings.append("odd references")
    systems[0].results[0].warnings.append("only mine")
    found = remarks(report_of(systems), ["x: broke"], ["said"])
    assert [line for line in found if "odd references" in line] == ["Warning (all): odd references"]
    assert "Warning (rnn): only mine" in found
    assert {"said", "Missing: x: broke"} <= set(found)


def test_markdown_rows_have_as_many_cells_as_their_header(report):
    for grid in grids(report):
        rows = as_markdown(grid).split("\n")
        assert {row.replace("\\|", "").count("|") for row in rows} == {len(grid.header) + 1}


def test_markdown_and_latex_show_the_interval_below_the_score():
    grid = Grid("", ["a", "b\nn=3"], [["x_1", "41.0\n[39.6, 42.4]"]])
    assert "41.0<br>\\[39.6, 42.4\\]" in as_markdown(grid)
    assert [" ".join(line.split()) for line in as_latex(grid).split("\n")[3:8]] == [
        r"a & b \\", r"& n=3 \\", r"\midrule", r"x\_1 & 41.0 \\", r"& [39.6, 42.4] \\",
    ]  # fmt: skip


def test_names_cannot_break_the_markdown_or_latex():
    grid = Grid("", ["a"], [["a|b*c%&$"]])
    assert "| a\\|b\\*c%&$ |" in as_markdown(grid)
    assert r"a|b*c\%\&\$" in as_latex(grid)


def test_csv_spreads_lists_over_columns_and_reads_back():
    rows = [{"system": 'a "b", c', "bleu": 1.25, "interval": [0.5, 2.0]}, {"system": "d", "interval": None}]
    read = list(csv.DictReader(io.StringIO(as_csv(rows))))
    assert read[0] | {"interval": ""} == {
        "system": 'a "b", c', "bleu": "1.25", "interval_1": "0.5", "interval_2": "2.0", "interval": "",
    }  # fmt: skip


def test_a_list_that_is_missing_makes_no_column_of_its_own_in_the_csv():
    rows = list(csv.DictReader(io.StringIO(as_csv([{"a": [1, 2], "b": None}, {"a": None, "b": None}]))))
    assert rows == [{"a_1": "1", "a_2": "2", "b": ""}, {"a_1": "", "a_2": "", "b": ""}]


def test_the_json_is_strict_and_has_every_number(tmp_path: Path, report):
    write_report(report, ReportTexts(None, None), [], tmp_path / "out")
    read = json.loads((tmp_path / "out" / "comparison.json").read_text(encoding="utf-8"))
    assert read["views"][0]["bins"][-1]["descriptive"] is True
    assert read["parameter_ratio"] == pytest.approx(409_000 / 397_000)
    bins = list(csv.DictReader((tmp_path / "out" / "tables" / "bins.csv").open(encoding="utf-8")))
    assert float(bins[0]["bleu"]) == read["views"][0]["scores"]["rnn"][0]["bleu"]
    html = (tmp_path / "out" / "comparison.html").read_text(encoding="utf-8")
    assert "bahdanau leads rnn" in html


def test_a_later_comparison_in_the_folder_leaves_no_table_of_systems_that_are_gone(tmp_path: Path, report):
    write_report(report, ReportTexts(None, None), [], tmp_path)
    (tmp_path / "tables" / "mine.tex").touch()
    rnn = report_of(systems_in(tmp_path / "runs", ("rnn",)))
    write_report(rnn, ReportTexts(None, None), [], tmp_path)
    names = {path.name for path in (tmp_path / "tables").glob("*.tex")}
    assert {"rnn-by-source-words.tex", "mine.tex"} <= names
    assert not any("luong" in name for name in names)


def test_without_text_no_sentence_is_in_any_file(tmp_path: Path, report):
    write_report(report, ReportTexts(None, None), [], tmp_path / "out")
    for file in (tmp_path / "out").rglob("*"):
        if file.is_file():
            assert b"the old dog" not in file.read_bytes().lower(), file


@pytest.mark.slow
def test_seeds_are_shown_as_mean_and_range(tmp_path):
    grid = systems_grid("", report_of(systems_in(tmp_path, seeds=2)).systems)
    row = dict(zip(grid.header, grid.rows[0], strict=True))
    assert (row["seeds"], row["updates"]) == ("2", "1,500")
    low, high = map(float, row["seeds' BLEU"].split("–"))
    assert low <= float(row["BLEU"].split()[0]) <= high


@pytest.mark.slow
def test_it_is_said_where_differences_are_not_of_all_runs(tmp_path):
    both = [*systems_in(tmp_path / "a", ("rnn",), seeds=2), *systems_in(tmp_path / "b", ("luong",))]
    (said,) = [line for line in remarks(report_of(both), [], []) if line.startswith("NUMBERS OF RUNS")]
    assert "rnn 2, luong 1" in said
    assert not any("NUMBERS OF RUNS" in line for line in remarks(report_of(both[:1]), [], []))


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
        settings={"batching": {"tokens": 801, "pool": 1_000_000}},
        data={"train_sha256": "00" * 32, "train": {"kept": 19}},
    )
    object.__setattr__(systems[1].results[0], "parameters", 800_000)
    object.__setattr__(systems[1].results[0], "training", changed)
    data, updates, batches, parameters = fairness(systems)
    assert data.startswith("TRAINING DATA DIFFER")
    assert "bahdanau 700" in updates
    assert batches == "BATCHES DIFFER in tokens, max_pieces."
    assert parameters.startswith("PARAMETERS DIFFER by 101.5%")


def test_seeds_in_the_batching_are_no_difference(systems):
    for number, system in enumerate(systems):
        system.results[0].training.settings["batching"]["seed"] = number
    assert fairness(systems)[2].startswith("Same batches")


def test_other_settings_that_differ_are_shouted(systems):
    for number, system in enumerate(systems):
        settings = system.results[0].training.settings
        settings["precision"] = "fp32" if number == 2 else "bf16"
        settings["training"] = {"patience": number // 2, "log_every": number}
        settings["cleaning"] = {"max_words": None}
    systems[0].results[0].training.settings["training"]["monitor"] = "nll"  # a setting that older runs lack
    assert fairness(systems)[4] == (
        "OTHER SETTINGS DIFFER: precision (rnn bf16, bahdanau bf16, luong fp32, transformer bf16); "
        "training.patience (rnn 0, bahdanau 0, luong 1, transformer 1)."
    )


def test_other_pairs_kept_of_one_text_are_other_data(systems):
    data = systems[0].results[0].training.data
    object.__setattr__(systems[0].results[0], "training", systems[0].results[0].training._replace(
        data={**data, "train": {"kept": 5}}))  # fmt: skip
    assert fairness(systems)[0].startswith("TRAINING DATA DIFFER: rnn 5 pairs, bahdanau 20,000 pairs")


def test_weights_that_are_not_the_last_are_named(systems):
    for system, update in zip(systems, (1000, 1500, 1450, 1500), strict=True):
        object.__setattr__(system.results[0], "evaluated_at", update)
    assert fairness(systems)[1] == (
        "Same updates for all: 1,500; the best weights in validation, which are evaluated, are of update: "
        "rnn 1,000, luong 1,450."
    )


def test_a_system_alone_has_tables_and_nothing_to_test(tmp_path):
    (system,) = systems_in(tmp_path, ("rnn",))
    report = report_of([System("alone", system.results)])
    assert report.significance is None
    assert report.headlines == []
    assert [grid.title for grid in grids(report)][:2] == ["Systems", "BLEU by source words"]
