"""All the scores of one set of translations, as plain values ready for JSON and as text for a terminal."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any, NamedTuple

import numpy as np
from tabulate import tabulate

from nmt.data.text import require_equal_counts
from nmt.evaluation.bootstrap import LEVEL
from nmt.evaluation.by_length import BINS, MIN_SENTENCES, Bin, BinScore, bin_members, score_sentences, source_length
from nmt.evaluation.metrics import METRICS, Statistics, statistics, tokenization
from nmt.evaluation.text_checks import text_warnings
from nmt.files import printable
from nmt.settings import BootstrapSettings

MISSING = "–"


class Scores(NamedTuple):
    """What the program writes and prints; nothing in it is NaN or infinite."""

    metrics: dict[str, dict[str, Any]]  # bleu, chrf, ter and further ones: score, signature; more for bleu
    by_length: list[dict[str, Any]]  # a row a bin; empty without sources
    warnings: list[str]
    bootstrap: dict[str, int]


def score_translations(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    sources: Sequence[str] | None = None,
    language: str = "",
    bootstrap: BootstrapSettings | None = None,
    metrics: Sequence[str] = ("ter",),
) -> Scores:
    """Scores of `hypotheses` against one list of references or more, each as long; bins need the raw sources.

    `language` is the target's. UserError where the counts differ or there is no line.
    """
    bootstrap = bootstrap or BootstrapSettings.defaults()
    counts = {"hypotheses": len(hypotheses)}
    counts |= {f"references {k}": len(stream) for k, stream in enumerate(references, start=1)}
    require_equal_counts(counts if sources is None else {**counts, "sources": len(sources)})

    tokenizer = tokenization(language)
    rows = statistics(hypotheses, references, tokenizer.name, ("chrf", *metrics))
    whole = _plain(score_sentences([rows], bootstrap))
    others = {"chrf": whole.pop("chrf"), "ter": None, **{name: rows.score(name) for name in metrics}}
    scores = {"bleu": {"score": whole.pop("bleu"), **whole}, **{name: {"score": own} for name, own in others.items()}}
    for name, values in scores.items():
        values["signature"] = rows.signatures.get(name)
    settings = {"resamples": bootstrap.resamples, "seed": bootstrap.seed, "level": LEVEL, "blocks": bootstrap.blocks}
    warnings = text_warnings(hypotheses, references, sources, tokenizer.name)
    return Scores(
        metrics=scores,
        by_length=[] if sources is None else _by_length(rows, [source_length(line) for line in sources], bootstrap),
        warnings=[tokenizer.note, *warnings] if tokenizer.note else warnings,
        bootstrap={key: value for key, value in settings.items() if value is not None},
    )


def _by_length(rows: Statistics, lengths: Sequence[int], settings: BootstrapSettings) -> list[dict[str, Any]]:
    """A row for each bin, an empty one too."""
    table = []
    for length_bin, members in zip(BINS, bin_members(lengths, BINS), strict=True):
        words = int(np.array(lengths)[members].sum())
        row: dict[str, Any] = {**length_bin._asdict(), "n": len(members), "source_words": words}
        if len(members):
            row |= _plain(score_sentences([rows], settings, members))
            few = f"under {MIN_SENTENCES} sentences: descriptive only" if len(members) < MIN_SENTENCES else ""
            row["note"] = "; ".join(filter(None, [row["note"], few]))
        else:
            row |= {field.name: None for field in fields(BinScore) if field.name not in ("seeds", "metrics")}
            row |= {"hypothesis_tokens": 0, "reference_tokens": 0, "note": "no sentence"}
        table.append(row)
    return table


def _plain(score: BinScore) -> dict[str, Any]:
    """For JSON; an evaluation has one seed, so that its tokens are whole, and `metrics` stand beside."""
    values = {key: value for key, value in asdict(score).items() if key not in ("seeds", "metrics")}
    values["hypothesis_tokens"] = round(score.hypothesis_tokens)
    return values | {"interval": None if score.interval is None else list(score.interval)}


def text_report(evaluation: Mapping[str, Any]) -> str:
    """A heading, one line for the whole set, a line for each length bin, alignments, signatures, warnings."""
    system, run, test, search, metrics = (evaluation[key] for key in ("system", "run", "test", "search", "metrics"))
    bleu, references = metrics["bleu"], len(test["references_sha256"])
    heading = [
        f"{system if run in (None, system) else f'{system} ({run})'} on {test['name']}",
        f"{test['sentences']:,} sentences",
        " → ".join(filter(None, (test["source_language"], test["target_language"]))),
        f"{references} references" if references > 1 else "",
        "" if evaluation["updates"] is None else f"update {evaluation['updates']:,}",
        f"beam {search['beam']}, length penalty {search['length_penalty']:g}" if search else "",
    ]
    labels = {"bleu": "BLEU", **{key: metric.label for key, metric in METRICS.items()}}
    whole = [
        f"BLEU {_number(bleu['score'])} {_interval(bleu['interval'])}".rstrip(),
        *(f"{labels[key]} {_number(own['score'])}" for key, own in metrics.items() if key != "bleu"),
        f"BP {_number(bleu['brevity_penalty'], 3)}",
        f"hyp/ref {_number(bleu['length_ratio'], 3)}",
        f"precisions {_precisions(bleu['precisions'])}",
        "" if evaluation["capped"] is None else f"capped {evaluation['capped']:,}",
    ]
    notes = [f"  {labels[key]}  {own['signature']}" for key, own in metrics.items() if own["signature"]]
    notes += [f"  note: {bleu['note']}"] if bleu["note"] else []
    notes += [f"  warning: {line}" for line in evaluation["warnings"]]
    sections = [
        [printable(" · ".join(filter(None, heading)))],
        ["  " + "   ".join(filter(None, whole))],
        _bin_table([row for row in evaluation["by_length"] if row["n"]]),
        _alignment_lines(evaluation) if evaluation.get("alignment") else [],
        notes,
    ]
    return "\n\n".join("\n".join(section) for section in sections if section) + "\n"


def _bin_table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    header = ["  source words", "n", "BLEU", "95% interval", "BP", "hyp/ref", "precisions 1-4", "chrF2", ""]
    cells = [
        [
            f"  {Bin(row['low'], row['high']).label}",
            f"{row['n']:,}",
            _number(row["bleu"]),
            _interval(row["interval"]) or MISSING,
            _number(row["brevity_penalty"], 3),
            _number(row["length_ratio"], 3),
            _precisions(row["precisions"]),
            _number(row["chrf"]),
            row["note"],
        ]
        for row in rows
    ]
    align = ("left", *["right"] * 7, "left")
    table = tabulate(cells, header, "plain", disable_numparse=True, colalign=align, preserve_whitespace=True)
    return [line.rstrip() for line in table.split("\n")] if rows else []


def _alignment_lines(evaluation: Mapping[str, Any]) -> list[str]:
    """A line for each layer and shift; by source length for the one whose links are written."""
    entries, left_out = evaluation["alignment"], evaluation["not_aligned"]
    by_length = []
    lines = [
        f"  attention as alignment, references forced, against {entries[0]['gold']}, "
        f"{entries[0]['n']:,} pairs{f', {left_out:,} of them not aligned' if left_out else ''}"
    ]
    for entry in entries:
        scores = [f"{label} {_percent(entry[label.lower()])}" for label in ("AER", "precision", "recall")]
        lines.append("  " + "   ".join([*scores, f"shift {entry['shift']}", entry["attention"]]).rstrip())
        if entry["default"]:
            bins = [f"{row['label']}: {_percent(row['aer'])}" for row in entry["by_length"] if row["n"]]
            name = ", ".join(filter(None, (entry["attention"], f"shift {entry['shift']}")))
            by_length.append(f"  AER by source words ({name})   {'   '.join(bins)}")
    return lines + by_length


def _number(value: float | None, digits: int = 2) -> str:
    return MISSING if value is None else f"{value:.{digits}f}"


def _percent(share: float | None) -> str:
    return MISSING if share is None else f"{100 * share:.1f}"


def _interval(ends: Sequence[float] | None) -> str:
    return "" if ends is None else f"[{ends[0]:.2f}, {ends[1]:.2f}]"


def _precisions(values: Sequence[float] | None) -> str:
    return MISSING if values is None else "/".join(f"{value:.1f}" for value in values)
