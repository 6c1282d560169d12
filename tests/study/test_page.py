"""The report page as text. All reports are invented."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from nmt.files import visible
from nmt.study.explorer import Explorer
from nmt.study.report import Report
from nmt.study.samples import Sample, marked_words
from tests.study import report_fixture as invented

SECTIONS = ["length", "findings", "explorer", "samples", "systems", "lead", "significance", "alignment", "tables",
            "training", "record"]  # fmt: skip
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
    folder: Path, report: Report | None = None, samples: list[Sample] | None = None, explorer: Explorer | None = None
) -> str:
    return invented.write(folder / "report.html", report, samples, explorer).read_text(encoding="utf-8")


def json_of(page: str, identifier: str) -> Any:
    found = re.search(f'<script type="application/json" id="{identifier}">(.*?)</script>', page, re.DOTALL)
    assert found
    return json.loads(found[1])


def figures_of(page: str) -> list[Any]:
    found = re.findall(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)
    return [json.loads(text) for text in found]


def test_a_whole_page_is_well_formed_in_order_and_under_8_megabytes(tmp_path: Path) -> None:
    page = written(tmp_path, samples=invented.samples(), explorer=invented.explorer())
    reader = Reader(page)
    assert reader.sections == SECTIONS
    linked = [attributes["href"] for tag, attributes in reader.tags if tag == "a"]
    assert linked == [f"#{name}" for name in SECTIONS if name not in ("length", "findings")]
    assert page.index('class="headline"') < page.index("<nav ") < page.index('id="explorer"')
    assert len(page.encode()) < 8_000_000


def test_nothing_outside_the_file_is_named_and_the_policy_forbids_the_rest(tmp_path: Path) -> None:
    page = written(tmp_path, samples=invented.samples(), explorer=invented.explorer(3))
    named = {value or "" for _, attributes in Reader(page).tags for key, value in attributes.items() if key in LINKS}
    assert {name for name in named if not name.startswith("#")} == {"data:,"}
    assert "@import" not in page
    assert "default-src 'none'" in page
    assert "'unsafe-eval'" not in page


LINKS = ("src", "href", "srcset", "action", "data", "poster", "xlink:href")


def test_hostile_names_and_texts_show_as_themselves(tmp_path: Path) -> None:
    systems = ["rnn", visible(HOSTILE)]  # as labels are
    record = {"command": HOSTILE, "commit": None, "date": None, "machine": None, "versions": {}}
    report = replace(
        invented.report(systems),
        title=HOSTILE,
        notes=[HOSTILE],
        limits=[HOSTILE],
        failures=[HOSTILE],
        provenance=record,
    )
    samples = invented.samples(systems)
    samples[0] = samples[0]._replace(source=HOSTILE, outputs={systems[1]: HOSTILE})
    explorer = invented.explorer(2, systems)
    explorer.sentences[0] = replace(explorer.sentences[0], source=HOSTILE)
    page = written(tmp_path, report, samples, explorer)
    reader = Reader(page)
    assert [tag for tag, _ in reader.tags].count("script") == 9  # four figures and their colours, data, three programs
    assert not any(tag == "img" or "onerror" in attributes for tag, attributes in reader.tags)
    assert HOSTILE.replace("\x00", "\ufffd") in "".join(reader.texts)
    assert json_of(page, "attention")["sentences"][0]["source"] == HOSTILE


def test_without_texts_the_page_says_so_and_holds_none(tmp_path: Path) -> None:
    page = written(tmp_path)
    assert Reader(page).sections == SECTIONS
    assert page.count("study.report.text=none") == 2
    assert 'id="attention"' not in page
    assert 'id="explore"' not in page


def test_what_a_report_does_not_have_has_no_section(tmp_path: Path) -> None:
    report = invented.report(["rnn"])
    view = replace(report.views[0], training=None, cap=None)
    report = replace(report, headlines=[], limits=[], significance=None, curves={}, alignment=[], views=[view])
    page = written(tmp_path, report, [], Explorer([], {}, {}))
    assert Reader(page).sections == ["length", "systems", "tables", "record"]
    assert "does not show" not in page


def test_the_limits_stand_under_one_heading(tmp_path: Path) -> None:
    page = written(tmp_path)
    assert page.count("What this does not show") == 1
    assert "<li>The cause. State size" in page


def test_values_that_are_missing_leave_gaps_and_no_none(tmp_path: Path) -> None:
    report = invented.report()
    scores = report.views[0].scores
    for row in scores.values():
        row[0] = replace(row[0], interval=None, length_ratio=None, seeds=[])
        row[3] = replace(row[3], bleu=None, interval=None)
    lost = replace(scores["rnn"][0], bleu=None, interval=None, seeds=[None])
    report.views[1].scores["rnn"] = [lost] * 10
    assert report.significance is not None
    report.significance.tests[0] = replace(
        report.significance.tests[0], p_bootstrap=None, identical=True, difference=0.0
    )
    report = replace(report, test=replace(report.test, source_language="", target_language=""))
    page = written(tmp_path, report)
    texts = " ".join(text for text in Reader(re.sub(r"<(script|noscript).*?</\1>", "", page, flags=re.DOTALL)).texts)
    assert "None" not in texts
    assert "nan" not in texts.split()
    assert "identical" in texts


def test_one_bin_still_draws(tmp_path: Path) -> None:
    report = invented.report(["rnn"])
    view = report.views[0]
    scores = {"rnn": view.scores["rnn"][:1]}
    page = written(tmp_path, replace(report, views=[replace(view, bins=view.bins[:1], training=[1.0], scores=scores)]))
    assert len(figures_of(page)) == 2
    assert 'class="views single"' in page


def test_nineteen_systems_all_look_different(tmp_path: Path) -> None:
    systems = [f"system {number}" for number in range(19)]
    page = written(tmp_path, invented.report(systems))
    looks = re.findall(r'<svg class="swatch (c\d)".*?stroke-dasharray="(.*?)".*?d="(M[^"]*)"/></svg>', page)
    assert len(set(looks)) == 19


def test_tables_need_no_script_and_name_their_rows_and_columns(tmp_path: Path) -> None:
    reader = Reader(written(tmp_path))
    tags = [tag for tag, _ in reader.tags]
    assert tags.count("table") == tags.count("caption") >= 6
    assert all(attributes.get("scope") in ("col", "row") for tag, attributes in reader.tags if tag == "th")


def test_differences_to_the_reference_are_marked_and_the_rest_of_the_samples_is_folded(tmp_path: Path) -> None:
    assert marked_words("the old dog  runs now", "the dog sleeps now") == [
        ("the", False), ("old", True), ("dog", False), ("runs", True), ("now", False),
    ]  # fmt: skip
    assert marked_words("", "a b") == []
    samples = [sample._replace(outputs={"rnn": f"oddity {sample.reference}"}) for sample in invented.samples()]
    page = written(tmp_path, invented.report(["rnn"]), samples)
    assert page.count("<mark>oddity</mark>") == len(samples)
    assert "<summary>1 more short sentences</summary>" in page


@pytest.mark.parametrize("name", ["Systems", "BLEU by source words", "Differences and their significance"])
def test_a_grid_on_the_page_has_the_cells_of_the_terminal(tmp_path: Path, name: str) -> None:
    from nmt.study.tables import grids

    (grid,) = [grid for grid in grids(invented.report()) if grid.title == name]
    texts = Reader(written(tmp_path)).texts
    for row in grid.rows:
        for cell in row:
            assert all(line in texts for line in cell.split("\n"))
