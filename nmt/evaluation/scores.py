"""All the scores of one set of translations, as plain values ready for JSON."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from nmt.evaluation.bootstrap import LEVEL, Bootstrap
from nmt.evaluation.by_length import by_length, describe
from nmt.evaluation.checks import require_equal_counts, warnings
from nmt.evaluation.metrics import bleu_of, chrf_of, statistics, ter_of, tokenization


class Scores(NamedTuple):
    """What the program writes and prints; nothing in it is NaN or infinite."""

    metrics: dict[str, dict[str, Any]]  # bleu, chrf, ter: score, signature; more for bleu
    by_length: list[dict[str, Any]]  # a row a bin; empty without sources
    warnings: list[str]
    bootstrap: dict[str, int]


def score(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    sources: Sequence[str] | None = None,
    language: str = "",
    bootstrap: Bootstrap | None = None,
    ter: bool = True,
) -> Scores:
    """Scores of `hypotheses` against one list of references or more, each as long; bins need the raw sources.

    `language` is the target's. UserError where the counts differ or there is no line.
    """
    bootstrap = bootstrap or Bootstrap()
    counts = {"hypotheses": len(hypotheses)}
    counts |= {f"references {k}": len(stream) for k, stream in enumerate(references, start=1)}
    require_equal_counts(counts if sources is None else {**counts, "sources": len(sources)})

    tokenizer = tokenization(language)
    rows = statistics(hypotheses, references, tokenizer.name, ter)
    metrics = {
        "bleu": describe(bleu_of(rows.bleu), rows.bleu, bootstrap),
        "chrf": {"score": chrf_of(rows.chrf)},
        "ter": {"score": None if rows.ter is None else ter_of(rows.ter)},
    }
    for name, values in metrics.items():
        values["signature"] = rows.signatures.get(name)
    return Scores(
        metrics=metrics,
        by_length=[] if sources is None else by_length(rows, sources, bootstrap),
        warnings=[
            *([tokenizer.note] if tokenizer.note else []),
            *warnings(hypotheses, references, sources, tokenizer.name),
        ],
        bootstrap={"resamples": bootstrap.resamples, "seed": bootstrap.seed, "level": LEVEL},
    )
