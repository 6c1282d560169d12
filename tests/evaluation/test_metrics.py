"""Scores are sacreBLEU's to the last digit."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU, CHRF, TER

from nmt.evaluation.evaluation_report import score_translations
from nmt.evaluation.metrics import bleu_of, corpus_bleu, statistics, tokenization

HYPOTHESES = ["the cat sat on the mat today", "wrong words here now", "more wrong words again"]
FIRST = ["the cat sat on the mat today", "a small dog ran home", "two birds sing in trees"]
SECOND = ["a cat was sitting there", "a little dog went home", "birds sing"]
WORDS = "the a dog cat sees runs home & under &amp; green tree , . it's".split()
sentences = st.lists(st.sampled_from(WORDS), max_size=13).map(" ".join)
triples = st.lists(st.tuples(sentences, sentences, sentences), min_size=1, max_size=7)


def test_one_reference_gives_the_known_score() -> None:
    assert corpus_bleu(HYPOTHESES, [FIRST]).score == pytest.approx(47.4512136060, abs=1e-9)


def test_a_second_reference_is_in_the_signature_and_transposed_lists_would_be_noticed() -> None:
    result = score_translations(HYPOTHESES, [FIRST, SECOND])
    assert "nrefs:2" in result.metrics["bleu"]["signature"]
    assert result.metrics["bleu"]["score"] == BLEU().corpus_score(HYPOTHESES, [FIRST, SECOND]).score
    assert result.metrics["bleu"]["score"] < 100


@given(triples)
@settings(max_examples=60, deadline=None)
def test_every_metric_is_that_of_sacrebleu(triples: list[tuple[str, str, str]]) -> None:
    hypotheses, *references = (list(column) for column in zip(*triples, strict=True))
    metrics = score_translations(hypotheses, references).metrics
    expected = BLEU().corpus_score(hypotheses, references)
    assert metrics["bleu"]["score"] in (None, min(100.0, expected.score))
    assert metrics["bleu"]["precisions"] == expected.precisions
    assert metrics["bleu"]["brevity_penalty"] == expected.bp
    assert metrics["chrf"]["score"] == min(100.0, CHRF().corpus_score(hypotheses, references).score)
    assert metrics["ter"]["score"] == TER().corpus_score(hypotheses, references).score


def test_a_perfect_score_is_100_and_no_more() -> None:
    metrics = score_translations(FIRST, [FIRST]).metrics
    assert (metrics["bleu"]["score"], metrics["chrf"]["score"], metrics["ter"]["score"]) == (100, 100, 0)
    assert BLEU().corpus_score(FIRST, [FIRST]).score > 100


def test_an_empty_reference_is_scored_as_sacrebleu_scores_it_and_named() -> None:
    result = score_translations(["the cat sat on the mat", "a dog ran"], [["the cat sat on the mat", ""]])
    assert result.metrics["bleu"]["score"] == pytest.approx(78.56, abs=0.005)
    assert result.metrics["bleu"]["length_ratio"] == 1.5
    assert any("1 of 2 references is empty: line 2" in warning for warning in result.warnings)


def test_empty_hypotheses_score_0_without_an_interval() -> None:
    metrics = score_translations(["", ""], [["we see five words here", "and four words here"]]).metrics
    assert metrics["bleu"]["score"] == 0
    assert metrics["bleu"]["interval"] is None
    assert metrics["ter"]["score"] == 100


def test_perfect_two_word_lines_have_no_bleu_and_are_told_why() -> None:
    result = score_translations(["guten Tag"] * 11, [["guten Tag"] * 11], ["good day"] * 11)
    bleu = result.metrics["bleu"]
    assert bleu["score"] is None
    assert bleu["interval"] is None
    assert "4-gram" in bleu["note"]
    assert result.metrics["chrf"]["score"] == 100
    first = result.by_length[0]
    assert first["n"] == 11
    assert first["bleu"] is None
    assert first["interval"] is None
    assert "4-gram" in first["note"]
    assert first["chrf"] == 100


@pytest.mark.parametrize(
    ("language", "name"),
    [("zh", "zh"), ("zh-CN", "zh"), ("cmn_Hans", "zh"), ("de", "13a"), ("", "13a"), ("th", "char")],
)
def test_the_target_language_chooses_the_tokenizer(language: str, name: str) -> None:
    assert tokenization(language).name == name


def test_japanese_without_mecab_is_counted_in_characters_and_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert tokenization("ja").name == "char"
    assert "sacrebleu[ja]" in tokenization("ja").note


def test_chinese_against_itself_is_100_with_its_tokenizer_and_a_warning_without() -> None:
    lines = ["我们今天去公园散步。", "他昨天买了一本新书。"]
    known = score_translations(lines, [lines], language="zh")
    assert known.metrics["bleu"]["score"] == 100
    assert "tok:zh" in known.metrics["bleu"]["signature"]
    assert known.warnings == []
    assert any("target_language=zh" in warning for warning in score_translations(lines, [lines]).warnings)


def test_subsets_of_the_rows_score_as_the_subsets_of_the_text() -> None:
    rows = statistics(HYPOTHESES, [FIRST, SECOND], metrics=("chrf", "chrf++", "bleu_lc", "ter"))
    part = [0, 2]
    hypotheses = [HYPOTHESES[i] for i in part]
    references = [[lines[i] for i in part] for lines in (FIRST, SECOND)]
    assert bleu_of(rows.bleu[part]).score == BLEU().corpus_score(hypotheses, references).score
    own = rows.subset(part)
    assert own.score("chrf") == CHRF().corpus_score(hypotheses, references).score
    assert own.score("chrf++") == CHRF(word_order=2).corpus_score(hypotheses, references).score
    assert own.score("bleu_lc") == BLEU(lowercase=True).corpus_score(hypotheses, references).score
    assert own.score("ter") == TER().corpus_score(hypotheses, references).score


def test_further_metrics_stand_beside_the_usual_ones_with_their_signatures() -> None:
    upper = [line.upper() for line in FIRST]
    metrics = score_translations(upper, [FIRST], metrics=["chrf++", "bleu_lc"]).metrics
    assert (metrics["bleu_lc"]["score"], metrics["ter"]["score"]) == (100, None)
    assert metrics["bleu"]["score"] == 0
    assert "case:lc" in metrics["bleu_lc"]["signature"]
    assert "nw:2" in metrics["chrf++"]["signature"]


def test_rows_are_whole_numbers() -> None:
    assert statistics(HYPOTHESES, [FIRST]).bleu.dtype == np.int64


@pytest.mark.slow
def test_published_wmt21_scores_are_reproduced(nmt_data: Path) -> None:
    folder = nmt_data / "outputs-newstest2021-deen"

    def lines(name: str) -> list[str]:
        return gzip.decompress((folder / name).read_bytes()).decode().split("\n")[:-1]

    reference = lines("newstest2021.de-en.ref.A.en.gz")
    published = {}
    for row in lines("published-scores.tsv.gz")[1:]:
        _, system, _, _, metric, value = row.split("\t")
        if metric == "bleu-A":
            published[system] = float(value)
    assert len(published) == 19
    for system, value in published.items():
        hypotheses = lines(f"newstest2021.de-en.hyp.{system}.en.gz")
        assert corpus_bleu(hypotheses, [reference], "en").score == value, system
