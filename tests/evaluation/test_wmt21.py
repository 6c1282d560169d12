"""The 19 submissions to WMT21 German-English: scores as published, tests as sacreBLEU's. NMT_DATA names the data."""

import csv
import gzip
import itertools
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest

from nmt.data.text import words
from nmt.evaluation.bootstrap import mean_interval
from nmt.evaluation.metrics import bleu_of, corpus_bleu
from nmt.evaluation.significance import paired_tests
from nmt.settings import BootstrapSettings, ResamplingSettings
from scripts.known_truth import paired_bs

pytestmark = pytest.mark.slow
FEW = ["Facebook-AI", "UEdin", "Online-A", "happypoet"]


class Wmt21(NamedTuple):
    sources: list[str]
    references: dict[str, list[str]]  # A, B
    outputs: dict[str, list[str]]
    published: dict[tuple[str, str], float]  # (system, metric)
    rows: dict[str, np.ndarray]  # against A


def lines(path: Path) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        return [line.removesuffix("\n") for line in file]


@pytest.fixture(scope="module")
def wmt21(nmt_data: Path) -> Wmt21:
    folder = nmt_data / "outputs-newstest2021-deen"
    outputs = {path.name.split(".")[3]: lines(path) for path in sorted(folder.glob("*.hyp.*.gz"))}
    references = {name: lines(folder / f"newstest2021.de-en.ref.{name}.en.gz") for name in "AB"}
    table = csv.DictReader(lines(folder / "published-scores.tsv.gz"), delimiter="\t")
    published = {(row["system"], row["metric"]): float(row["score"]) for row in table if row["score"]}
    metric = BLEU()
    rows = {
        name: np.array(metric._extract_corpus_statistics(texts, [references["A"]])) for name, texts in outputs.items()
    }
    return Wmt21(lines(folder / "newstest2021.de-en.src.de.gz"), references, outputs, published, rows)


@pytest.mark.parametrize("names", ["A", "B", "AB"])
def test_bleu_of_all_19_systems_is_the_published_one(wmt21: Wmt21, names: str) -> None:
    references = [wmt21.references[name] for name in names]
    assert len(wmt21.outputs) == 19
    for system, texts in wmt21.outputs.items():
        expected = wmt21.published[system, f"bleu-{'all' if len(names) > 1 else names}"]
        assert corpus_bleu(texts, references).score == expected


def test_bleu_of_a_length_bin_is_sacrebleus_to_the_last_digit(wmt21: Wmt21) -> None:
    members = [index for index, line in enumerate(wmt21.sources) if 20 <= len(words(line)) < 30]
    assert len(members) == 230
    references = [[wmt21.references["A"][i] for i in members]]
    for system, texts in wmt21.outputs.items():
        expected = BLEU().corpus_score([texts[i] for i in members], references).score
        assert bleu_of(wmt21.rows[system][members]).score == expected


def test_confidence_intervals_are_sacrebleus_with_its_seed(wmt21: Wmt21, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same resamples and order statistics; equal up to sacreBLEU's sums and quotients in 32 bits."""
    monkeypatch.delenv("SACREBLEU_SEED", raising=False)
    for system in FEW:
        low, high = mean_interval([wmt21.rows[system]], BootstrapSettings.defaults())
        theirs = BLEU().corpus_score(wmt21.outputs[system], [wmt21.references["A"]], n_bootstrap=1000)
        assert (high - low) / 2 == pytest.approx(theirs._ci, abs=2e-5)


@pytest.mark.parametrize("kind", ["bs", "ar"])
def test_p_values_are_identical_to_sacrebleus_with_its_seed(
    wmt21: Wmt21, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fewer trials than its default, so that its own loop over them is quick."""
    monkeypatch.delenv("SACREBLEU_SEED", raising=False)
    named = [(name, wmt21.outputs[name]) for name in FEW]
    theirs = PairedTest(named, {"BLEU": BLEU()}, [wmt21.references["A"]], kind, n_samples=500)()[1]["BLEU"][1:]
    pairs = [(0, place) for place in range(1, len(FEW))]
    settings = ResamplingSettings.defaults(resamples=500, trials=500)
    if kind == "bs":
        ours = [paired_bs(wmt21.rows[FEW[0]], wmt21.rows[name], settings) for name in FEW[1:]]
    else:
        tested = paired_tests([[wmt21.rows[name]] for name in FEW], pairs, settings)
        ours = [result.p_randomisation for result in tested]
    assert ours == [result.p_value for result in theirs]  # type: ignore[union-attr]


def test_all_171_pairs_take_seconds(wmt21: Wmt21) -> None:
    pairs = list(itertools.combinations(range(19), 2))
    start = time.process_time()
    results = paired_tests([[rows] for rows in wmt21.rows.values()], pairs, ResamplingSettings.defaults())
    assert time.process_time() - start < 20
    assert len(results) == 171
    assert all(result.p_bootstrap < 0.05 for result in results if abs(result.difference) > 3)
