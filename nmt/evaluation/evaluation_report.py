"""All the scores of one set of translations, as plain values ready for JSON and as text for a terminal."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from nmt.data.text import require_equal_counts
from nmt.evaluation.bootstrap import LEVEL
from nmt.evaluation.by_length import bleu_by_length, bleu_values
from nmt.evaluation.metrics import bleu_of, chrf_of, statistics, ter_of, tokenization
from nmt.evaluation.text_checks import text_warnings
from nmt.settings import BootstrapSettings

MISSING = "–"


class Scores(NamedTuple):
    """What the program writes and prints; nothing in it is NaN or infinite."""

    metrics: dict[str, dict[str, Any]]  # bleu, chrf, ter: score, signature; more for bleu
    by_length: list[dict[str, Any]]  # a row a bin; empty without sources
    warnings: list[str]
    bootstrap: dict[str, int]


def score_translations(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    sources: Sequence[str] | None = None,
    language: str = "",
    bootstrap: BootstrapSettings | None = None,
    ter: bool = True,
) -> Scores:
    """Scores of `hypotheses` against one list of references or more, each as long; bins need the raw sources.

    `language` is the target's. UserError where the counts differ or there is no line.
    """
    bootstrap = bootstrap or BootstrapSettings.defaults()
    counts = {"hypotheses": len(hypotheses)}
    counts |= {f"references {k}": len(stream) for k, stream in enumerate(references, start=1)}
    require_equal_counts(counts if sources is None else {**counts, "sources": len(sources)})

    tokenizer = tokenization(language)
    rows = statistics(hypotheses, references, tokenizer.name, ter)
    metrics = {
        "bleu": bleu_values(bleu_of(rows.bleu), rows.bleu, bootstrap),
        "chrf": {"score": chrf_of(rows.chrf)},
        "ter": {"score": None if rows.ter is None else ter_of(rows.ter)},
    }
    for name, values in metrics.items():
        values["signature"] = rows.signatures.get(name)
    return Scores(
        metrics=metrics,
        by_length=[] if sources is None else bleu_by_length(rows, sources, bootstrap),
        warnings=[
            *([tokenizer.note] if tokenizer.note else []),
            *text_warnings(hypotheses, references, sources, tokenizer.name),
        ],
        bootstrap={"resamples": bootstrap.resamples, "seed": bootstrap.seed, "level": LEVEL},
    )


def text_report(evaluation: Mapping[str, Any]) -> str:
    """A heading, one line for the whole set, a line for each length bin, signatures, warnings."""
    parts = [_heading(evaluation), "", _overall(evaluation)]
    rows = [row for row in evaluation["by_length"] if row["n"]]
    if rows:
        parts += ["", *_bins(rows)]
    if evaluation.get("alignment"):
        parts += ["", *_alignment(evaluation)]
    notes = _notes(evaluation)
    return "\n".join([*parts, *([""] if notes else []), *notes]) + "\n"


def _heading(evaluation: Mapping[str, Any]) -> str:
    test = evaluation["test"]
    system = evaluation["system"]
    if evaluation["run"] not in (None, system):
        system = f"{system} ({evaluation['run']})"
    languages = " → ".join(filter(None, (test["source_language"], test["target_language"])))
    facts = [f"{system} on {test['name']}", f"{test['sentences']:,} sentences"]
    if languages:
        facts.append(languages)
    if len(test["references_sha256"]) > 1:
        facts.append(f"{len(test['references_sha256'])} references")
    if evaluation["updates"] is not None:
        facts.append(f"update {evaluation['updates']:,}")
    if evaluation["search"]:
        search = evaluation["search"]
        facts.append(f"beam {search['beam']}, length penalty {search['length_penalty']:g}")
    return " · ".join(facts)


def _overall(evaluation: Mapping[str, Any]) -> str:
    metrics = evaluation["metrics"]
    bleu = metrics["bleu"]
    facts = [
        f"BLEU {_number(bleu['score'])} {_interval(bleu['interval'])}".rstrip(),
        f"chrF2 {_number(metrics['chrf']['score'])}",
        f"TER {_number(metrics['ter']['score'])}",
        f"BP {_number(bleu['brevity_penalty'], 3)}",
        f"hyp/ref {_number(bleu['length_ratio'], 3)}",
        f"precisions {_precisions(bleu['precisions'])}",
    ]
    if evaluation["capped"] is not None:
        facts.append(f"capped {evaluation['capped']:,}")
    return "  " + "   ".join(facts)


def _bins(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    cells = [["source words", "n", "BLEU", "95% interval", "BP", "hyp/ref", "precisions 1-4", "chrF2", ""]]
    for row in rows:
        last = "+" if row["high"] is None else f"–{row['high'] - 1}"
        cells.append([
            f"{row['low']}{last}",
            f"{row['n']:,}",
            _number(row["bleu"]),
            _interval(row["interval"]) or MISSING,
            _number(row["brevity_penalty"], 3),
            _number(row["length_ratio"], 3),
            _precisions(row["precisions"]),
            _number(row["chrf"]),
            row["note"],
        ])  # fmt: skip
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    lines = []
    for line in cells:
        first, *numbers, note = line
        aligned = [first.ljust(widths[0]), *(n.rjust(w) for n, w in zip(numbers, widths[1:-1], strict=True))]
        lines.append("  " + "  ".join([*aligned, note]).rstrip())
    return lines


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
        lines.append("  " + "   ".join([*facts, entry["way"]]).rstrip())
    for entry in entries:
        if entry["default"]:
            bins = [f"{row['label']}: {_percent(row['aer'])}" for row in entry["by_length"] if row["n"]]
            name = ", ".join(filter(None, (entry["way"], f"shift {entry['shift']}")))
            lines.append(f"  AER by source words ({name})   {'   '.join(bins)}")
    return lines


def _notes(evaluation: Mapping[str, Any]) -> list[str]:
    metrics = evaluation["metrics"]
    names = {"bleu": "BLEU", "chrf": "chrF2", "ter": "TER"}
    lines = [f"  {names[key]}  {metrics[key]['signature']}" for key in names if metrics[key]["signature"]]
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
