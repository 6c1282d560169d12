"""The report page as text. All reports are invented."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt.study.html import write_page
from nmt.study.html.charts import axis_ticks, position_on_bins, shift_into
from nmt.study.html.markup import Markup, cell, escape, format_interval, format_number, format_p, format_signed
from tests.study import report_fixture as invented

SECTIONS = [
    "findings",
    "systems",
    "length",
    "significance",
    "samples",
    "training",
    "alignment",
    "explorer",
    "record",
]
VOID = {"meta", "link", "br", "input"}
HOSTILE = '</script><script>boom()</script><img src="x" onerror=boom()>\'"&\u202e\u200b\x00'


class Reader(HTMLParser):
    """What a browser would make of the page: tags, attributes, text; complains where tags do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def sections(self) -> list[str | None]:
        return [attributes.get("id") for tag, attributes in self.tags if tag == "section"]


def written(
    folder: Path,
    report: dict[str, Any] | None = None,
    samples: list[dict[str, Any]] | None = None,
    explorer: dict[str, Any] | None = None,
) -> str:
    path = folder / "report.html"
    write_page(report or invented.report(), samples, explorer, path)
    return path.read_text(encoding="utf-8")


def data_of(page: str) -> Any:
    found = re.search(r'<script type="application/json" id="attention">(.*?)</script>', page, re.DOTALL)
    assert found
    return json.loads(found[1])


def test_a_whole_page_is_well_formed_in_order_and_under_8_megabytes(tmp_path: Path) -> None:
    page = written(tmp_path, samples=invented.samples(), explorer=invented.explorer())
    assert Reader(page).sections == SECTIONS
    assert len(page.encode()) < 8_000_000


def test_nothing_outside_the_file_is_named_and_the_policy_forbids_the_rest(tmp_path: Path) -> None:
    page = written(tmp_path, samples=invented.samples(), explorer=invented.explorer(3))
    named = [value or "" for _, attributes in Reader(page).tags for key, value in attributes.items() if key in LINKS]
    assert named == ["data:,"]
    assert "@import" not in page
    assert "url(" not in page
    assert "http:" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "https:" not in page
    assert "default-src 'none'" in page


LINKS = ("src", "href", "srcset", "action", "data", "poster", "xlink:href")


def test_hostile_names_and_texts_show_as_themselves(tmp_path: Path) -> None:
    systems = ["rnn", HOSTILE]
    report = invented.report(systems) | {
        "title": HOSTILE,
        "notes": [HOSTILE],
        "limits": [HOSTILE],
        "failures": [HOSTILE],
    }
    report["record"] = {"command": HOSTILE, "commit": None, "date": None, "machine": None, "versions": {}}
    samples = invented.samples(systems)
    samples[0] |= {"source": HOSTILE, "outputs": {HOSTILE: HOSTILE}}
    explorer = invented.explorer(2, systems)
    explorer["sentences"][0]["source"] = HOSTILE
    page = written(tmp_path, report, samples, explorer)
    reader = Reader(page)
    assert [tag for tag, _ in reader.tags].count("script") == 3  # the data and the two of the page
    assert not any(tag == "img" or "onerror" in attributes for tag, attributes in reader.tags)
    assert HOSTILE.replace("\x00", "\ufffd") in "".join(reader.texts)
    assert data_of(page)["sentences"][0]["source"] == HOSTILE


def test_without_texts_the_page_says_so_and_holds_none(tmp_path: Path) -> None:
    page = written(tmp_path)
    assert Reader(page).sections == SECTIONS
    assert page.count("report.text=none") == 2
    assert 'id="attention"' not in page
    assert 'id="explore"' not in page


def test_what_a_report_does_not_have_has_no_section(tmp_path: Path) -> None:
    report = invented.report(["rnn"]) | {
        "headlines": [],
        "limits": [],
        "significance": None,
        "curves": {},
        "alignment": [],
    }
    report["views"] = report["views"][:1]
    report["views"][0] |= {"training": None, "cap": None}
    page = written(tmp_path, report, [], {"sentences": [], "systems": [], "maps": {}})
    assert Reader(page).sections == ["systems", "length", "record"]
    assert "does not show" not in page


def test_the_limits_stand_under_one_heading_right_below_the_headlines(tmp_path: Path) -> None:
    page = written(tmp_path)
    assert page.count("What this does not show") == 2  # the heading, and the name of its box
    assert page.index('class="headline"') < page.index("<li>The cause. State size") < page.index('id="systems"')


def test_values_that_are_missing_leave_gaps_and_no_none(tmp_path: Path) -> None:
    report = invented.report()
    for row in report["views"][0]["scores"].values():
        row[0] = row[0] | {"interval": None, "brevity_penalty": None, "length_ratio": None, "seeds": []}
        row[3] = row[3] | {"bleu": None, "interval": None}
    report["views"][1]["scores"]["rnn"] = [{"bleu": None, "interval": None}] * 10
    del report["views"][2]["scores"]["luong"]
    report["test"] |= {"source_language": None, "target_language": None}
    report["significance"]["tests"][0] |= {"p_bootstrap": None, "identical": True, "difference": 0.0}
    texts = " ".join(Reader(written(tmp_path, report)).texts)
    assert "None" not in texts
    assert "nan" not in texts.split()
    assert "identical" in texts


def test_one_bin_and_no_known_score_still_draw(tmp_path: Path) -> None:
    report = invented.report(["rnn"])
    view = report["views"][0]
    report["views"] = [view | {"bins": view["bins"][:1], "training": [1.0], "scores": {"rnn": [None]}}]
    page = written(tmp_path, report)
    assert page.count('class="chart"') == 4  # two of lengths, two of training
    assert 'class="views single"' in page


def test_nineteen_systems_all_look_different_and_are_named_once_a_row(tmp_path: Path) -> None:
    systems = [f"system {number}" for number in range(19)]
    page = written(tmp_path, invented.report(systems))
    looks = re.findall(r'<svg class="swatch (c\d)".*?stroke-dasharray="(.*?)".*?d="(M[^"]*)" transform', page)
    assert len(set(looks)) == 19
    heights = [float(y) for y in re.findall(r'<text class="name" x="[\d.]+" y="([\d.]+)"', page)[:19]]
    assert min(np.diff(sorted(heights))) > 12


def test_the_legend_of_the_training_chart_names_only_systems_with_a_curve(tmp_path: Path) -> None:
    report = invented.report()
    del report["curves"]["bahdanau"]
    page = written(tmp_path, report)
    training = page[page.index('<section id="training"') : page.index('<section id="alignment"')]
    assert re.findall("<bdi>(.*?)</bdi>", training) == ["rnn", "luong", "transformer"]
    assert 'class="series c1"' not in training  # colours stay those of the systems


def test_points_say_what_is_behind_them(tmp_path: Path) -> None:
    page = written(tmp_path)
    said = [
        "bahdanau: 60+ source words",
        "BLEU 92.8 [91.2, 94.4]",
        "n = 84, descriptive only",
        "brevity penalty 0.987, length ratio 0.987",
    ]
    assert "\n".join(said) in page
    assert "longest training source: 50 words" in page
    assert "0.3%" in page


def test_tables_need_no_script_and_name_their_rows_and_columns(tmp_path: Path) -> None:
    reader = Reader(written(tmp_path))
    tags = [tag for tag, _ in reader.tags]
    assert tags.count("table") == tags.count("caption") >= 6
    assert all(attributes.get("scope") in ("col", "row") for tag, attributes in reader.tags if tag == "th")


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (format_number(None), "–"),
        (format_number(-0.25, 2), "−0.25"),
        (format_signed(1234.56), "+1,234.6"),
        (format_interval(None), ""),
        (format_interval((-1.0, 2.0)), "[−1.0, 2.0]"),
        (format_p(0.0004), "< 0.001"),
        (format_p(1.0), "1.000"),
        (escape('a\x00"<b>'), "a\ufffd&quot;&lt;b&gt;"),
        (cell("a\n<b>"), "a<br>&lt;b&gt;"),
        (cell(Markup("<b>")), "<b>"),
    ],
)
def test_values_are_written(shown: str, text: str) -> None:
    assert shown == text


@pytest.mark.parametrize(
    ("at", "place"), [(1, 0.0), (5.5, 0.5), (10, 1.0), (50, 5.0), (55, 5.5), (65, 6.5), (200, 7.0), (0, 0.0)]
)
def test_a_length_has_its_place_among_bins_of_equal_width(at: float, place: float) -> None:
    bins = invented.report()["views"][0]["bins"]
    assert position_on_bins(bins, at) == pytest.approx(place, abs=0.01)


@pytest.mark.parametrize(
    ("top", "ticks"),
    [(1.05, [0, 0.2, 0.4, 0.6, 0.8, 1.0]), (100, [0, 20, 40, 60, 80, 100]), (12.0, [0, 2, 4, 6, 8, 10, 12])],
)
def test_ticks_are_round(top: float, ticks: list[float]) -> None:
    assert axis_ticks(top) == pytest.approx(ticks)


def test_labels_stay_within_the_drawing_and_in_order() -> None:
    assert shift_into([90.0, 110.0, 130.0], gap=20.0, top=0.0, floor=100.0) == [60.0, 80.0, 100.0]
