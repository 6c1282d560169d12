"""Bins by source, reference and output of the same outputs, on invented sentences; the page as it was measured."""

import json
from pathlib import Path

import pytest
from sacrebleu.metrics import BLEU

from scripts import distortions
from scripts.distortions import OUTPUT, draw, markdown, measure_distortions

SOURCES = ["s " * 8, "s " * 9, "s " * 25]
REFERENCES = ["a b c d e f g h", "a b c d e f g h i j k", " ".join(f"w{k}" for k in range(25))]
OUTPUTS = {
    "good": ["a b c d e f g h", "a b c d x f g h i j", " ".join(f"w{k}" for k in range(24))],
    "short": ["a b c", "a b c d e f g h i", " ".join(f"w{k}" for k in range(9))],
}


def test_the_page_shows_what_was_measured() -> None:
    found = json.loads((OUTPUT / "distortions.json").read_text(encoding="utf-8"))
    assert len(found["systems"]) == 19
    assert (OUTPUT / "distortions.md").read_text(encoding="utf-8") == markdown(found)


def test_an_output_is_in_the_bin_of_the_length_asked_for() -> None:
    found = measure_distortions(SOURCES, REFERENCES, OUTPUTS)
    counts = {axis: [row["outputs"] for row in rows] for axis, rows in found["axes"].items()}
    assert counts == {"source": [4, 0, 2, 0, 0], "reference": [2, 2, 2, 0, 0], "output": [4, 1, 1, 0, 0]}
    assert [row["sentences"] for row in found["axes"]["output"]] == [3, 1, 1, 0, 0]
    assert found["moved"] == {"reference": pytest.approx(2 / 6), "output": pytest.approx(2 / 6)}


def test_scores_of_a_bin_are_those_of_its_outputs_together() -> None:
    row = measure_distortions(SOURCES, REFERENCES, OUTPUTS)["axes"]["source"][0]
    texts = [*OUTPUTS["good"][:2], *OUTPUTS["short"][:2]]
    theirs = BLEU().corpus_score(texts, [REFERENCES[:2] * 2])
    assert (row["bleu"], row["ratio"]) == pytest.approx((theirs.score, theirs.ratio))
    metric = BLEU(effective_order=True)
    each = [metric.sentence_score(text, [ref]).score for text, ref in zip(texts, REFERENCES[:2] * 2, strict=True)]
    assert row["mean_sentence_bleu"] == pytest.approx(sum(each) / 4)


def test_the_figure_and_the_page_bear_empty_bins(tmp_path: Path) -> None:
    found = measure_distortions(SOURCES, REFERENCES, OUTPUTS)
    draw(found, tmp_path / "figure")
    assert (tmp_path / "figure.png").read_bytes()[:4] == b"\x89PNG"
    assert "2 systems pooled, 3 sentences" in (tmp_path / "figure.svg").read_text(encoding="utf-8")
    assert "| 10–19 | 0 | – | – | 1 |" in markdown(found)


def test_a_system_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    (tmp_path / f"{distortions.SET}.hyp.known.en.gz").touch()
    with pytest.raises(SystemExit, match=r"no output of other .* there are: known"):
        distortions.main(tmp_path, ["other"])
