"""The figure and the attention picture. All numbers are invented."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.data.corpus import TestSet
from nmt.study.figure import draw_bleu_by_length, spread_apart
from nmt.study.heatmap import draw_attention, layer_panels
from nmt.study.results import group, read_result
from nmt.study.sentence import choose_example, find_example
from nmt.study.words import merge_pieces, piece_text, word_groups
from tests.study.fakes import write_run


class Map(NamedTuple):
    source_pieces: list[str]
    target_pieces: list[str]
    weights: np.ndarray


def random_map(source: list[str], target: list[str], layers: int = 2, heads: int = 3) -> Map:
    weights = np.random.default_rng(5).random((layers, heads, len(target), len(source)))
    return Map(source, target, weights / weights.sum(axis=-1, keepdims=True))


def test_the_figure_is_drawn_in_three_formats_and_the_same_bytes_each_time(tmp_path):
    systems = group([read_result(write_run(tmp_path, system)) for system in ("rnn", "luong")])
    png = draw_bleu_by_length(systems, tmp_path / "a" / "curve")
    assert png.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    draw_bleu_by_length(systems, tmp_path / "b" / "curve")
    for suffix in (".png", ".svg", ".pdf"):
        first, second = (tmp_path / place / f"curve{suffix}" for place in "ab")
        assert first.read_bytes() == second.read_bytes()


def test_the_svg_names_every_system_and_n(tmp_path):
    systems = group([read_result(write_run(tmp_path, system)) for system in ("rnn", "luong")])
    draw_bleu_by_length(systems, tmp_path / "curve")
    svg = (tmp_path / "curve.svg").read_text(encoding="utf-8")
    for text in ("rnn", "luong", "n=500", "n=53", "BLEU by source length"):
        assert text in svg


def test_a_name_that_looks_like_mathematics_is_text(tmp_path):
    run = write_run(tmp_path)
    result = read_result(run)
    result.evaluation["system"] = "$x_{"
    draw_bleu_by_length(group([result]), tmp_path / "curve")
    assert "$x_{" in (tmp_path / "curve.svg").read_text(encoding="utf-8")


def test_systems_without_any_bleu_still_make_a_figure(tmp_path):
    result = read_result(write_run(tmp_path))
    for row in result.evaluation["by_length"]:
        row |= {"bleu": None, "interval": None}
    assert draw_bleu_by_length(group([result]), tmp_path / "curve").is_file()


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


def test_a_very_long_pair_makes_a_picture_of_bounded_size(tmp_path):
    from matplotlib.image import imread

    map = random_map(["▁a"] * 331, ["▁b"] * 7, layers=3, heads=1)
    height, width, _ = imread(draw_attention(map, tmp_path / "long.png")).shape
    assert max(height, width) <= 8_000


def sentences(*lengths: int) -> list[str]:
    return [" ".join(f"w{number}" for number in range(length)) for length in lengths]


def test_the_example_is_the_first_of_moderate_length_that_is_reordered():
    sources = sentences(3, 13, 14, 15)
    straight, far = ((0, 0), (1, 1)), ((0, 7),)
    test = TestSet("test", sources, [sentences(3, 13, 14, 15)], [straight, straight, far, far])
    example = choose_example(test)
    assert example == (sources[2], sources[2], far)


def test_without_alignments_it_is_the_first_of_moderate_length_or_the_nearest():
    assert choose_example(TestSet("test", sentences(3, 40, 12, 15), [sentences(1, 2, 3, 4)])).reference == "w0 w1 w2"
    assert choose_example(TestSet("test", sentences(3, 40, 0), [sentences(1, 2, 3)])).reference == "w0"
    assert choose_example(TestSet("test", [""], [[""]])) is None


def test_the_users_sentence_finds_its_reference_in_the_test_set():
    test = TestSet("test", ["a b", "c"], [["d e", "f"]], [((0, 0),), ()])
    assert find_example(test, "a b") == ("a b", "d e", ((0, 0),))
    assert find_example(test, "new") == ("new", None, ())
