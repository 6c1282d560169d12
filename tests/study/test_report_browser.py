"""The report in a browser: headless Chromium opens the file as a reader does. All reports are invented."""

import base64
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt.study.explorer import Explorer, PackedMap
from tests.study import report_fixture as invented

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium, google-chrome or chromium-browser on the PATH"),
]
SENTENCE = 5  # of the fixture; its words and weights are looked up in the data
SIZES = [(1440, 900), (390, 844)]


@pytest.fixture(scope="module")
def data() -> Explorer:
    return invented.explorer(40)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory, data: Explorer) -> Path:
    return invented.write(tmp_path_factory.mktemp("report") / "report.html", None, invented.samples(), data)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install -e '.[dev]'")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class Visit:
    """A page, with all that it asked for and complained of."""

    def __init__(self, browser: Any, path: Path, size: tuple[int, int] = SIZES[0], **context: Any) -> None:
        self.context = browser.new_context(viewport={"width": size[0], "height": size[1]}, **context)
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())

    @property
    def readout(self) -> str:
        """What the explorer says, without the marks that isolate words."""
        return self.page.text_content("#x-readout").replace("\u2068", "").replace("\u2069", "")


@pytest.fixture
def visit(browser: Any, report: Path) -> Iterator[Visit]:
    """The report on a wide screen, which must have asked for itself only and complained of nothing."""
    visit = Visit(browser, report)
    yield visit
    assert visit.complaints == []
    assert {url for url in visit.requests if not url.startswith("data:")} == {report.as_uri()}
    visit.context.close()


def weight(map: PackedMap, t: int, s: int, layer: int | None = None, head: int | None = None) -> float:
    """A weight as the page should say it: the mean where no layer or head is named."""
    bytes_ = np.frombuffer(base64.b64decode(map.weights), dtype=np.uint8).reshape(map.shape) / 255
    layers = slice(None) if layer is None else layer
    heads = slice(None) if head is None else head
    return float(np.mean(bytes_[layers][..., t, s] if head is None else bytes_[layers, heads, t, s]))


def packed(data: Explorer, system: str, way: str = "reference") -> PackedMap:
    map = getattr(data.maps[system][SENTENCE], way)
    assert isinstance(map, PackedMap)
    return map


def said(value: float) -> str:
    return f"{value:.3f}" if value < 0.0995 else f"{value:.2f}"


def choose(page: Any, **choices: str) -> None:
    for name, value in choices.items():
        page.select_option(f"#x-{name}", value=value)


def test_a_word_hovered_shows_its_links_with_the_weights_of_the_data(visit: Visit, data: Explorer) -> None:
    page = visit.page
    choose(page, sentence=str(SENTENCE), system="bahdanau")
    map = packed(data, "bahdanau", "reference")
    page.hover("#x-target span:nth-child(2)")
    best = int(np.argmax([weight(map, 1, s) for s in range(len(map.source))]))
    assert f"{map.target[1]} looks at {map.source[best]} {said(weight(map, 1, best))}" in visit.readout
    gold = next(s for s, t in map.gold if t == 1)
    assert visit.readout.endswith(f"gold: {map.source[gold]}")
    assert page.locator(".link.gold").count() == 1
    assert page.locator(".link:not(.gold)").count() >= 1
    assert page.locator("#x-matrix tr.on th").text_content() == map.target[1]

    page.hover("#x-source span:nth-child(1)")
    assert f"{map.source[0]} is looked at by " in visit.readout
    page.hover("#x-matrix td[data-t='2'][data-s='1']")
    assert visit.readout.startswith(f"{map.target[2]} → {map.source[1]}: {said(weight(map, 2, 1))}")


def test_the_keyboard_alone_walks_words_sides_and_cells(visit: Visit, data: Explorer) -> None:
    page = visit.page
    choose(page, sentence=str(SENTENCE), system="luong")
    map = packed(data, "luong", "reference")
    page.focus("#x-system")
    page.keyboard.press("Tab")  # the target of the pair
    page.keyboard.press("Tab")
    assert visit.readout.startswith(f"{map.source[0]} is looked at by ")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert visit.readout.startswith(f"{map.source[2]} is looked at by ")
    page.keyboard.press("End")
    assert visit.readout.startswith("</s> is looked at by ")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    best = int(np.argmax([weight(map, t, 0) for t in range(len(map.target))]))
    assert visit.readout.startswith(f"{map.target[best]} looks at ")
    page.keyboard.press("Tab")  # the matrix takes over where the words were left
    assert visit.readout.startswith(f"{map.target[best]} → {map.source[0]}: {said(weight(map, best, 0))}")
    page.keyboard.press("ArrowRight")
    assert visit.readout.startswith(f"{map.target[best]} → {map.source[1]}: {said(weight(map, best, 1))}")
    assert page.locator("#x-matrix td.here").count() == 1
    page.keyboard.press("Escape")
    assert visit.readout.startswith("Hover or focus a word")
    assert page.locator("#x-matrix td.here").count() == 0


@pytest.mark.parametrize(("layer", "head"), [(None, None), (1, None), (None, 3), (2, 0)])
def test_layers_and_heads_and_their_means_are_those_of_the_data(
    visit: Visit, data: Explorer, layer: int | None, head: int | None
) -> None:
    page = visit.page
    choose(page, sentence=str(SENTENCE), system="transformer")
    assert page.input_value("#x-layer") == page.input_value("#x-head") == "mean"
    for name, number in (("layer", layer), ("head", head)):  # people count from 1
        page.select_option(f"#x-{name}", label="mean of all" if number is None else str(number + 1))
    map = packed(data, "transformer", "reference")
    page.hover("#x-matrix td[data-t='1'][data-s='1']")
    assert f": {said(weight(map, 1, 1, layer, head))}" in visit.readout


def test_own_translations_and_systems_without_attention(visit: Visit, data: Explorer) -> None:
    page = visit.page
    choose(page, sentence=str(SENTENCE), system="bahdanau", way="own")
    assert page.locator("#x-target span").count() == len(packed(data, "bahdanau", "own").target)
    assert page.locator("#x-matrix td.gold").count() == 0
    choose(page, system="rnn")
    said_of_it = page.text_content("#x-none")
    assert said_of_it.startswith(
        "rnn has no attention: all it knows of the source, for every word, is one vector (128 numbers)."
    )
    for text in (data.sentences[SENTENCE].source, data.outputs["rnn"][SENTENCE], data.sentences[SENTENCE].reference):
        assert text in said_of_it
    assert not page.is_visible("#x-matrix")
    choose(page, system="bahdanau")
    assert page.is_visible("#x-matrix")
    assert not page.is_visible("#x-none")


def test_sentences_are_filtered_by_length(visit: Visit, data: Explorer) -> None:
    page = visit.page
    choose(page, length="3")
    long = [sentence.words for sentence in data.sentences if sentence.words >= 40]
    texts = page.locator("#x-sentence option").all_text_contents()
    assert [int(text.split()[0]) for text in texts] == long
    assert page.locator("#x-source span").count() == long[0] + 1


def test_points_of_the_curve_say_the_numbers_of_the_report(visit: Visit) -> None:
    page = visit.page
    page.wait_for_selector(".panel:visible .drawing svg")
    view = invented.report().views[0]
    points = page.locator(".panel:visible .drawing path[aria-roledescription='point'][aria-label*='brevity penalty']")
    assert points.count() == sum(len(rows) for rows in view.scores.values())
    for system, column in (("bahdanau", 1), ("rnn", 6)):
        score, length_bin = view.scores[system][column], view.bins[column]
        labels = (f"system: {system}", f"{length_bin.label} source words", "brevity penalty")
        page.locator(".panel:visible .drawing path" + "".join(f"[aria-label*='{label}']" for label in labels)).hover()
        page.wait_for_selector("#vg-tooltip-element.visible")
        cells = page.locator("#vg-tooltip-element td").all_inner_texts()
        shown = dict(zip(cells[::2], cells[1::2], strict=True))
        assert score.interval is not None
        assert shown["system"] == system
        assert shown["BLEU"] == f"{score.bleu:.1f} [{score.interval[0]:.1f}, {score.interval[1]:.1f}]"
        assert shown["n"] == f"{length_bin.n}{', descriptive only' * length_bin.descriptive}"
        assert (shown["brevity penalty"], shown["length ratio"]) == ("0.987", "0.987")
        assert shown["seeds"] == ", ".join(f"{seed:.1f}" for seed in score.seeds if seed is not None)
    page.mouse.move(0, 0)
    page.wait_for_function("!document.querySelector('#vg-tooltip-element.visible')")


def test_a_phone_has_a_legend_instead_of_names_beside_the_lines(browser: Any, report: Path) -> None:
    for size, legend, names in ((SIZES[0], False, 4), (SIZES[1], True, 0)):
        visit = Visit(browser, report, size)
        visit.page.wait_for_selector(".panel:visible .drawing svg")
        assert visit.page.locator(".panel:visible .legend").is_visible() is legend
        drawn = visit.page.locator(".panel:visible .drawing text").all_text_contents()
        assert sum(text in invented.SYSTEMS for text in drawn) == names
        visit.context.close()


def test_words_can_be_touched_and_links_are_drawn_on_a_phone_too(browser: Any, report: Path, data: Explorer) -> None:
    visit = Visit(browser, report, SIZES[1], has_touch=True)
    page = visit.page
    choose(page, sentence="39", system="bahdanau")  # 60 words: both sides wrap
    assert page.locator(".link").count() > 20
    page.tap("#x-target span:nth-child(2)")
    assert f"{data.maps['bahdanau'][39].reference.target[1]} looks at " in visit.readout  # type: ignore[union-attr]
    assert visit.complaints == []
    visit.context.close()


def test_chinese_and_arabic_fit_a_phone(browser: Any, tmp_path: Path) -> None:
    data = invented.explorer(1)
    for maps in data.maps.values():
        if not maps:  # a system without attention
            continue
        map = maps[0].reference
        assert map is not None
        map.source[:-1] = ["我们今天去公园散步" for _ in map.source[:-1]]
        map.target[:-1] = ["كتاب" for _ in map.target[:-1]]
    visit = Visit(browser, invented.write(tmp_path / "report.html", None, None, data), SIZES[1])
    assert visit.page.locator("#x-target").evaluate("box => getComputedStyle(box).direction") == "rtl"
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= SIZES[1][0]
    assert visit.complaints == []
    visit.context.close()


def test_views_change_by_keyboard_and_without_scripts(browser: Any, report: Path) -> None:
    visit = Visit(browser, report, java_script_enabled=False)
    page = visit.page
    assert page.locator(".panel:visible h2").all_text_contents() == ["BLEU by source words"]
    page.focus("#view-0")
    page.keyboard.press("ArrowRight")
    assert page.locator(".panel:visible h2").all_text_contents() == ["BLEU by source words, tenths of the test set"]
    assert page.is_visible("#systems table")
    assert page.is_visible("#explorer noscript p")
    assert page.locator(".panel:visible noscript svg").count() == 1
    visit.context.close()


@pytest.mark.parametrize("size", SIZES, ids=["wide", "phone"])
@pytest.mark.parametrize("systems", [1, 4, 19])
def test_the_page_never_scrolls_sideways(browser: Any, tmp_path: Path, size: tuple[int, int], systems: int) -> None:
    names = invented.SYSTEMS[:systems] + [f"a-system-of-number-{number}" for number in range(4, systems)]
    report = invented.report(names)
    report = replace(report, notes=["unbroken" * 40], provenance={**report.provenance, "command": "x" * 300})
    samples = invented.samples(names)
    samples[0] = samples[0]._replace(source="endless" * 60)
    path = invented.write(tmp_path / "report.html", report, samples, invented.explorer(3, names))
    visit = Visit(browser, path, size)
    visit.page.wait_for_selector(".panel:visible .drawing svg")
    visit.page.evaluate("document.querySelectorAll('details').forEach((details) => { details.open = true })")
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= size[0]
    assert visit.complaints == []
    visit.context.close()


def test_the_longest_sentence_fits_a_phone(browser: Any, report: Path) -> None:
    visit = Visit(browser, report, SIZES[1])
    choose(visit.page, sentence="39", system="transformer")
    visit.page.focus("#x-target span:nth-child(1)")
    assert visit.page.locator("#x-source span").count() == 61
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= SIZES[1][0]
    visit.context.close()


def test_dark_mode_changes_paper_ink_and_the_colours_of_the_systems(browser: Any, report: Path) -> None:
    colours = {}
    for scheme in ("light", "dark"):
        visit = Visit(browser, report, color_scheme=scheme)
        visit.page.wait_for_selector(".panel:visible .drawing svg")
        colours[scheme] = visit.page.evaluate(
            """["body", ".panel .drawing .mark-line path", "#x-matrix td[data-t='0']"].flatMap((place) => {
                const style = getComputedStyle(document.querySelector(place));
                return [style.backgroundColor + style.color + style.stroke];
            })"""
        )
        visit.context.close()
    assert all(light != dark for light, dark in zip(colours["light"], colours["dark"], strict=True))


def test_a_hostile_text_runs_nothing_and_reaches_nothing(browser: Any, tmp_path: Path) -> None:
    hostile = '</script><script>document.title="taken"</script><img src="http://example.invalid/x" onerror="alert(1)">'
    names = ["rnn", hostile]
    data = invented.explorer(2, names)
    data.sentences[0] = replace(data.sentences[0], source=hostile)
    map = data.maps[hostile][0].reference
    assert map is not None
    map.source[0] = map.target[0] = hostile
    report = replace(invented.report(names), title=hostile)
    visit = Visit(browser, invented.write(tmp_path / "report.html", report, invented.samples(names), data))
    visit.page.wait_for_selector(".panel:visible .drawing svg")
    choose(visit.page, sentence="0")
    visit.page.hover("#x-target span:nth-child(1)")
    assert visit.page.title() == hostile
    assert visit.page.locator("img").count() == 0
    assert visit.complaints == []
    assert [url for url in visit.requests if url.startswith("http")] == []
    visit.context.close()


def test_the_policy_stops_what_tries_to_leave(visit: Visit) -> None:
    tried = "fetch('http://example.invalid/').then(() => 'left', () => 'stopped')"
    assert visit.page.evaluate(tried) == "stopped"
    assert any("Content Security Policy" in text for text in visit.complaints)
    visit.complaints.clear()
    visit.requests[:] = [url for url in visit.requests if "example.invalid" not in url]


def test_words_written_from_right_to_left_are_walked_in_that_direction(browser: Any, tmp_path: Path) -> None:
    data = invented.explorer(1)
    for maps in data.maps.values():
        if not maps:  # a system without attention
            continue
        map = maps[0].reference
        assert map is not None
        map.source[:2] = ["שלום", "עולם"]
    visit = Visit(browser, invented.write(tmp_path / "report.html", None, [], data))
    visit.page.focus("#x-source span:nth-child(1)")
    visit.page.keyboard.press("ArrowLeft")
    assert visit.readout.startswith("עולם is looked at by ")
    visit.context.close()
