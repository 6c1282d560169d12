"""The figures, learning curves and attention pictures. All numbers are invented."""

import json
import re
import struct
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.data.corpus import TestSet
from nmt.evaluation.by_length import Bin
from nmt.files import file_names
from nmt.study.attention_maps import draw_attention, layer_panels, merge_pieces, piece_text, word_groups
from nmt.study.figures import (
    DARK_MODE,
    as_svg,
    curves_chart,
    length_chart,
    percent,
    position_on_bins,
    save_chart,
    spread_apart,
    write_chart,
)
from nmt.study.length_views import MaxLength
from nmt.study.report import BinInfo
from nmt.study.results import System, read_validation_curve
from nmt.study.samples import example_of, spread_over_lengths
from tests.study.fakes import report_of, systems_in


class Map(NamedTuple):
    source_pieces: list[str]
    target_pieces: list[str]
    weights: np.ndarray


def random_map(source: list[str], target: list[str], layers: int = 2, heads: int = 3) -> Map:
    weights = np.random.default_rng(5).random((layers, heads, len(target), len(source)))
    return Map(source, target, weights / weights.sum(axis=-1, keepdims=True))


@pytest.fixture
def report(tmp_path):
    return report_of(systems_in(tmp_path, ("rnn", "luong"), seeds=2))


def drawn(report, view):
    """The specification of a figure, with the data of every layer beside its mark."""
    specification = length_chart(report, view).to_dict()
    layers = [
        (layer["mark"]["type"], specification["datasets"][layer["data"]["name"]])
        for part in specification.get("vconcat", [specification])
        for layer in ({"data": part.get("data"), **layer} for layer in part["layer"])
        if layer["data"]
    ]
    return specification, layers


def test_the_figure_is_drawn_in_four_formats_and_the_pictures_have_the_same_bytes_each_time(tmp_path, report):
    chart = length_chart(report, report.views[0])
    for folder in "ab":
        (tmp_path / folder).mkdir()
        png = write_chart(chart, tmp_path / folder / "curve")
    assert png.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    for suffix in (".png", ".svg", ".json"):
        first, second = (tmp_path / place / f"curve{suffix}" for place in "ab")
        assert first.read_bytes() == second.read_bytes()
    sizes = [(tmp_path / place / "curve.pdf").stat().st_size for place in "ab"]
    assert abs(sizes[0] - sizes[1]) < 100  # vl-convert lists the resources of a page in any order


def test_the_svg_names_every_system_and_n_and_what_was_trained_on(tmp_path, report):
    view = replace(report.views[0], cap=MaxLength(37, "trained up to 37"), training=[0.5, 0.3, 0.2, 0, 0, 0, 0])
    write_chart(length_chart(report, view), tmp_path / "curve")
    svg = (tmp_path / "curve.svg").read_text(encoding="utf-8")
    for text in ("rnn", "luong", "n=130", "n=7", "source words", "trained up to 37", "50%", "mean of 2 seeds",
                 "invented en→de, 613 test sentences", "luong minus rnn"):  # fmt: skip
        assert text in svg


def test_points_say_what_is_behind_them_and_few_sentences_make_them_hollow(report):
    _, layers = drawn(report, report.views[0])
    points = next(rows for mark, rows in layers if mark == "line")
    last = next(point for point in points if point["system"] == "luong" and point["length"] == "60+ source words")
    score, length_bin = report.views[0].scores["luong"][-1], report.views[0].bins[-1]
    assert last["descriptive"] is length_bin.descriptive is True
    assert last["BLEU"].split()[0] == f"{score.bleu:.1f}"
    assert (last["n"], last["brevity penalty"]) == ("7, descriptive only", f"{score.brevity_penalty:.3f}")
    assert len(last["seed values"]) == 2


def test_no_mark_stands_inside_a_bin_without_an_end(report):
    view = report.views[0]
    for at, rules in ((37, 1), (60, 1), (83, 0)):
        specification, layers = drawn(report, replace(view, cap=MaxLength(at, "the longest")))
        assert sum(rows == [{"x": rows[0]["x"], "label": "the longest"}] for _, rows in layers) == 2 * rules
        assert ("the longest" in str(specification["title"])) is not rules


def test_percentages_are_short_and_never_a_false_zero():
    assert [percent(share) for share in (0.0, 0.0001, 0.003, 0.0096, 0.147, 1.0)] == [
        "0%", "<0.1%", "0.3%", "1%", "15%", "100%",
    ]  # fmt: skip


def test_every_colour_of_a_figure_has_one_for_dark_screens(report):
    text = json.dumps(length_chart(report, report.views[0]).to_dict()) + json.dumps(curves_chart(report).to_dict())
    assert set(re.findall(r"#[0-9A-Fa-f]{3,6}\b", text)) <= set(DARK_MODE)


@pytest.mark.parametrize(
    ("at", "place"), [(1, 0.0), (5.5, 0.5), (10, 1.0), (15, 1.5), (25, 2.0), (30, 2.0), (400, None), (0, 0.0)]
)
def test_a_length_stands_in_its_bin(at, place):
    bins = [BinInfo("", low, high, 1, 1, False) for low, high in ((1, 10), (10, 20), (30, None))]
    assert position_on_bins(bins, at) == (None if place is None else pytest.approx(place, abs=0.01))


def test_a_name_that_looks_like_mathematics_or_markup_is_text(tmp_path):
    (system,) = systems_in(tmp_path, ("rnn",))
    report = report_of([System("$x_{<b>", system.results)])
    write_chart(length_chart(report, report.views[0]), tmp_path / "curve")
    assert "$x_{&lt;b&gt;" in (tmp_path / "curve.svg").read_text(encoding="utf-8")


def test_long_names_that_begin_alike_are_told_apart_beside_the_lines(tmp_path):
    results = systems_in(tmp_path, ("rnn", "luong"))
    systems = [System(f"newstest2021.de-en.hyp.{system.label}", system.results) for system in results]
    report = report_of([*systems, System("newstest2021.de-en.hyp.third", results[0].results)])
    svg = as_svg(length_chart(report, report.views[0]))
    assert all(f">…{name}<" in svg for name in ("rnn", "luong", "third"))


def test_systems_without_any_bleu_still_make_a_figure(tmp_path, report):
    view = report.views[0]
    nothing = {
        label: [replace(row, bleu=None, interval=None, seeds=[None, None]) for row in rows]
        for label, rows in view.scores.items()
    }
    assert write_chart(length_chart(report, replace(view, scores=nothing)), tmp_path / "curve").is_file()


@given(st.lists(st.floats(0, 100), max_size=11), st.floats(0.1, 20))
def test_labels_keep_their_order_and_their_distance(heights, gap):
    apart = spread_apart(sorted(heights), gap)
    assert len(apart) == len(heights)
    assert all(later - earlier >= gap * (1 - 1e-6) for earlier, later in pairwise(apart))


def test_pieces_become_words_and_rows_still_sum_to_one():
    source, target = ["▁the", "▁do", "g", "</s>"], ["▁der", "▁H", "un", "d", "▁.", "</s>"]
    merged = merge_pieces(*random_map(source, target))
    assert (merged.source, merged.target) == (["the", "dog", "</s>"], ["der", "Hund", ".", "</s>"])
    assert merged.weights.shape == (2, 3, 4, 3)
    np.testing.assert_allclose(merged.weights.sum(axis=-1), 1.0)


def test_text_without_spaces_stays_in_pieces():
    assert len(word_groups(["▁我", "们", "今", "天", "去", "公", "园", "</s>"])) == 8


def test_byte_pieces_are_read_as_the_letter_they_spell():
    assert piece_text(["▁n", "<0xC3>", "<0xA4>", "h"]) == "näh"
    assert piece_text(["<0xC3>"]) == "�"
    assert piece_text(["▁"]) == "·"


@pytest.mark.parametrize(
    ("layers", "titles"),
    [
        (1, ["mean of 3 heads"]),
        (2, ["layer 1, mean of 3 heads", "layer 2, mean of 3 heads"]),
        (6, ["last of 6 layers, mean of 3 heads"]),
    ],
)
def test_layers_are_panels_and_many_layers_are_the_last(layers, titles):
    weights = random_map(["▁a"] * 5, ["▁b"] * 7, layers).weights
    panels = layer_panels(weights)
    assert [panel.title for panel in panels] == titles
    np.testing.assert_allclose(panels[-1].weights, weights[-1].mean(axis=0))


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_attention_is_drawn_with_gold_links_and_without(tmp_path, suffix):
    map = random_map(["▁a", "▁$x", "_2$", "</s>"], ["▁你", "▁b", "</s>"])
    assert draw_attention(map, tmp_path / f"gold{suffix}", "a title", gold=[(0, 1), (1, 0)]).is_file()
    assert draw_attention(map, tmp_path / "deep" / f"plain{suffix}").is_file()


def test_links_beyond_the_words_of_the_picture_are_left_out(tmp_path):
    map = random_map(["▁a", "</s>"], ["▁b", "</s>"])
    links = [draw_attention(map, tmp_path / f"{n}.svg", gold=gold) for n, gold in enumerate([[], [(0, 7)], [(0, 0)]])]
    none, beyond, inside = (path.read_text(encoding="utf-8") for path in links)
    assert none == beyond != inside


@pytest.mark.slow
def test_a_very_long_pair_makes_a_picture_of_bounded_size(tmp_path):
    map = random_map(["▁a"] * 331, ["▁b"] * 7, layers=3, heads=1)
    width, height = struct.unpack(">II", draw_attention(map, tmp_path / "long.png").read_bytes()[16:24])
    assert max(height, width) <= 8_000


def sentences(*lengths: int) -> list[str]:
    return [" ".join(f"w{number}" for number in range(length)) for length in lengths]


def test_the_example_is_the_first_of_moderate_length_that_is_reordered():
    sources = sentences(3, 13, 14, 15)
    straight, far = ((0, 0), (1, 1)), ((0, 7),)
    test = TestSet("test", sources, [sentences(3, 13, 14, 15)], [straight, straight, far, far])
    example = example_of(test, None)
    assert example == (sources[2], sources[2], far)


def test_without_alignments_it_is_the_first_of_moderate_length_or_the_nearest():
    assert example_of(TestSet("test", sentences(3, 40, 12, 15), [sentences(1, 2, 3, 4)]), None).reference == "w0 w1 w2"
    assert example_of(TestSet("test", sentences(3, 40, 0), [sentences(1, 2, 3)]), None).reference == "w0"
    assert example_of(TestSet("test", [""], [[""]]), None) is None


def test_the_users_sentence_finds_its_reference_in_the_test_set():
    test = TestSet("test", ["a b", "c"], [["d e", "f"]], [((0, 0),), ()])
    assert example_of(test, "a b") == ("a b", "d e", ((0, 0),))
    assert example_of(test, "new") == ("new", None, ())


def test_sentences_to_look_at_are_spread_over_the_lengths():
    assert spread_over_lengths(range(40), 5) == [1, 11, 20, 29, 39]
    assert spread_over_lengths([7, 0, 5, 6], 5) == [2, 3, 0]
    assert spread_over_lengths([7, 0, 5, 6], 1, Bin(6, None)) == [3]


def test_a_figure_that_is_interrupted_leaves_the_one_before(tmp_path: Path) -> None:
    class Interrupted:
        def save(self, path: Path, **_: object) -> None:
            path.write_bytes(b"half")
            raise KeyboardInterrupt

    (tmp_path / "f.png").write_bytes(b"before")
    with pytest.raises(KeyboardInterrupt):
        save_chart(Interrupted(), tmp_path / "f.png")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == {"f.png": b"before"}


def test_systems_whose_names_differ_by_case_or_odd_signs_have_files_of_their_own() -> None:
    assert file_names(["A", "a", "x/y", "x-y", "x y"]) == ["A", "a-2", "x-y", "x-y-2", "x-y-3"]


def test_only_validations_with_bleu_are_points_and_a_cut_line_is_left_out(tmp_path: Path) -> None:
    lines = [
        '{"update": 1, "train/nll": 3.0, "target_pieces": 10}',
        '{"update": 2, "valid/nll": 2.0, "valid/bleu": 7.5, "target_pieces": 20}',
        '{"update": 3, "valid/nll": 2.0, "valid/bleu": null, "target_pieces": 30}',
        '{"update": 4, "valid/',
    ]
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines))
    assert read_validation_curve(tmp_path) == [(20, 7.5)]
    assert read_validation_curve(tmp_path / "absent") == read_validation_curve(None) == []


def test_a_curve_of_one_point_and_one_of_many_are_drawn_in_the_colours_of_their_systems(tmp_path, report) -> None:
    report = replace(report, curves={"luong": [(1, 0.0)], "rnn": [(1_000_000, 1.0), (2_000_000, 30.0)]})
    png = write_chart(curves_chart(report), tmp_path / "curves")
    assert png.stat().st_size > 1000
    assert {".pdf", ".png", ".svg", ".json"} <= {path.suffix for path in tmp_path.iterdir()}
    only = curves_chart(replace(report, curves={"luong": [(1, 0.0)]})).to_dict()
    assert only["layer"][0]["encoding"]["color"]["scale"]["domain"] == ["rnn", "luong"]
