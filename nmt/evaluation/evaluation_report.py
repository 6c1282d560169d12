"""All the scores of one set of translations, as plain values ready for JSON and as text for a terminal."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any, NamedTuple

from tabulate import tabulate

from nmt.data.text import require_equal_counts
from nmt.evaluation.bootstrap import LEVEL
from nmt.evaluation.by_length import BINS, MIN_SENTENCES, Bin, BinScore, bin_members, score_sentences, source_length
from nmt.evaluation.metrics import METRICS, statistics, tokenization
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
    lengths = [source_length(source) for source in sources or []]
    by_length = []
    for length_bin, members in zip(BINS, bin_members(lengths, BINS), strict=True):
        score = score_sentences([rows], bootstrap, members) if len(members) else None
        by_length.append(_bin_row(length_bin, [lengths[n] for n in members], score))
    return Scores(
        metrics=scores,
        by_length=[] if sources is None else by_length,
        warnings=[
            *([tokenizer.note] if tokenizer.note else []),
            *text_warnings(hypotheses, references, sources, tokenizer.name),
        ],
        bootstrap={
            "resamples": bootstrap.resamples, "seed": bootstrap.seed, "level": LEVEL,
            **({} if bootstrap.blocks is None else {"blocks": bootstrap.blocks}),
        },
    )  # fmt: skip


def _plain(score: BinScore) -> dict[str, Any]:
    """For JSON; an evaluation has one seed, so that its tokens are whole, and `metrics` stand beside."""
    values = {key: value for key, value in asdict(score).items() if key not in ("seeds", "metrics")}
    values["hypothesis_tokens"] = round(score.hypothesis_tokens)
    return values | {"interval": None if score.interval is None else list(score.interval)}


def _bin_row(length_bin: Bin, lengths: Sequence[int], score: BinScore | None) -> dict[str, Any]:
    """A bin of an evaluation, an empty one too."""
    row = {"low": length_bin.low, "high": length_bin.high, "n": len(lengths), "source_words": sum(lengths)}
    if score is None:
        nothing = {field.name: None for field in fields(BinScore) if field.name not in ("seeds", "metrics")}
        return {**row, **nothing, "hypothesis_tokens": 0, "reference_tokens": 0, "note": "no sentence"}
    few = f"under {MIN_SENTENCES} sentences: descriptive only" if len(lengths) < MIN_SENTENCES else ""
    return {**row, **_plain(score), "note": "; ".join(filter(None, [score.note, few]))}


def text_report(evaluation: Mapping[str, Any]) -> str:
    """A heading, one line for the whole set, a line for each length bin, signatures, warnings."""
    parts = [printable(_heading(evaluation)), "", _overall(evaluation)]
    rows = [row for row in evaluation["by_length"] if row["n"]]
    if rows:
        parts += ["", _bins(rows)]
    if evaluation.get("alignment"):
        parts += ["", *_alignment(evaluation)]
    notes = _notes(evaluation)
    return "\n".join([*parts, *([""] if notes else []), *notes]) + "\n"


def _heading(evaluation: Mapping[str, Any]) -> str:
    test, search = evaluation["test"], evaluation["search"]
    system = evaluation["system"]
    if evaluation["run"] not in (None, system):
        system = f"{system} ({evaluation['run']})"
    references = len(test["references_sha256"])
    facts = [
        f"{system} on {test['name']}",
        f"{test['sentences']:,} sentences",
        " → ".join(filter(None, (test["source_language"], test["target_language"]))),
        f"{references} references" if references > 1 else "",
        "" if evaluation["updates"] is None else f"update {evaluation['updates']:,}",
        f"beam {search['beam']}, length penalty {search['length_penalty']:g}" if search else "",
    ]
    return " · ".join(filter(None, facts))


def _overall(evaluation: Mapping[str, Any]) -> str:
    others = {METRICS[key].label: own for key, own in evaluation["metrics"].items() if key != "bleu"}
    bleu = evaluation["metrics"]["bleu"]
    facts = [
        f"BLEU {_number(bleu['score'])} {_interval(bleu['interval'])}".rstrip(),
        *(f"{label} {_number(own['score'])}" for label, own in others.items()),
        f"BP {_number(bleu['brevity_penalty'], 3)}",
        f"hyp/ref {_number(bleu['length_ratio'], 3)}",
        f"precisions {_precisions(bleu['precisions'])}",
    ]
    if evaluation["capped"] is not None:
        facts.append(f"capped {evaluation['capped']:,}")
    return "  " + "   ".join(facts)


def _bins(rows: Sequence[Mapping[str, Any]]) -> str:
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
    return "\n".join(line.rstrip() for line in table.split("\n"))


def _alignment(evaluation: Mapping[str, Any]) -> list[str]:
    """A line for each layer and shift; by source length for the one whose links are written."""
    entries = evaluation["alignment"]
    left_out = evaluation["not_aligned"]
    lines = [
        f"  attention as alignment, references forced, against {entries[0]['gold']}, "
        f"{entries[0]['n']:,} pairs{f', {left_out:,} of them not aligned' if left_out else ''}"
    ]
    for entry in entries:
        facts = [f"AER {_percent(entry['aer'])}", f"precision {_percent(entry['precision'])}"]
        facts += [f"recall {_percent(entry['recall'])}", f"shift {entry['shift']}"]
        lines.append("  " + "   ".join([*facts, entry["attention"]]).rstrip())
    for entry in entries:
        if entry["default"]:
            bins = [f"{row['label']}: {_percent(row['aer'])}" for row in entry["by_length"] if row["n"]]
            name = ", ".join(filter(None, (entry["attention"], f"shift {entry['shift']}")))
            lines.append(f"  AER by source words ({name})   {'   '.join(bins)}")
    return lines


def _notes(evaluation: Mapping[str, Any]) -> list[str]:
    metrics = evaluation["metrics"]
    labels = {"bleu": "BLEU", **{key: metric.label for key, metric in METRICS.items()}}
    lines = [f"  {labels[key]}  {own['signature']}" for key, own in metrics.items() if own["signature"]]
    notes = [metrics["bleu"]["note"]] if metrics["bleu"]["note"] else []
    return lines + [f"  note: {note}" for note in notes] + [f"  warning: {line}" for line in evaluation["warnings"]]


def _number(value: float | None, digits: int = 2) -> str:
    return MISSING if value is None else f"{value:.{digits}f}"


def _percent(share: float | None) -> str:
    return _number(None if share is None else 100 * share, 1)


def _interval(ends: Sequence[float] | None) -> str:
    return "" if ends is None else f"[{ends[0]:.2f}, {ends[1]:.2f}]"


def _precisions(values: Sequence[float] | None) -> str:
    return MISSING if values is None else "/".join(f"{value:.1f}" for value in values)
