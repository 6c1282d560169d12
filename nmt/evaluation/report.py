"""An evaluation as text for a terminal."""

from collections.abc import Mapping, Sequence
from typing import Any

NONE = "–"


def text_report(evaluation: Mapping[str, Any]) -> str:
    """A heading, one line for the whole set, a line for each length bin, signatures, warnings."""
    parts = [_heading(evaluation), "", _overall(evaluation)]
    rows = [row for row in evaluation["by_length"] if row["n"]]
    if rows:
        parts += ["", *_bins(rows)]
    if evaluation.get("alignment"):
        parts += ["", *alignment_lines(evaluation, "attention as alignment, references forced,")]
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
            _interval(row["interval"]) or NONE,
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


def alignment_lines(evaluation: Mapping[str, Any], what: str) -> list[str]:
    """A line for each way and shift; by source length for the one that is written to a file."""
    entries = evaluation["alignment"]
    left_out = evaluation["not_aligned"]
    lines = [
        f"  {what} against {entries[0]['gold']}, "
        f"{entries[0]['n']:,} pairs{f', {left_out:,} of them not aligned' if left_out else ''}"
    ]
    for entry in entries:
        facts = [f"AER {_percent(entry['aer'])}", f"precision {_percent(entry['precision'])}"]
        facts += [f"recall {_percent(entry['recall'])}", f"shift {entry['shift']}"]
        lines.append("  " + "   ".join([*facts, entry["way"]]).rstrip())
    for entry in entries:
        if entry["default"]:
            bins = [f"{row['label']}: {_percent(row['aer'])}" for row in entry["by_length"] if row["n"]]
            way = ", ".join(filter(None, (entry["way"], f"shift {entry['shift']}")))
            lines.append(f"  AER by source words ({way})   {'   '.join(bins)}")
    return lines


def _notes(evaluation: Mapping[str, Any]) -> list[str]:
    metrics = evaluation["metrics"]
    names = {"bleu": "BLEU", "chrf": "chrF2", "ter": "TER"}
    lines = [f"  {names[key]}  {metrics[key]['signature']}" for key in names if metrics[key]["signature"]]
    notes = [metrics["bleu"]["note"]] if metrics["bleu"]["note"] else []
    return lines + [f"  note: {note}" for note in notes] + [f"  warning: {line}" for line in evaluation["warnings"]]


def _number(value: float | None, digits: int = 2) -> str:
    return NONE if value is None else f"{value:.{digits}f}"


def _percent(share: float | None) -> str:
    return _number(None if share is None else 100 * share, 1)


def _interval(ends: Sequence[float] | None) -> str:
    return "" if ends is None else f"[{ends[0]:.2f}, {ends[1]:.2f}]"


def _precisions(values: Sequence[float] | None) -> str:
    return NONE if values is None else "/".join(f"{value:.1f}" for value in values)
