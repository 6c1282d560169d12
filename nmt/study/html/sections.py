"""The parts of the page that are text and tables."""

from collections.abc import Mapping, Sequence
from typing import Any

from nmt.study.html.markup import (
    MISSING,
    Markup,
    attribute,
    escape,
    format_interval,
    format_number,
    format_p,
    format_signed,
    html_section,
    html_table,
    note_list,
    scroll_box,
    system_name,
)

Report = Mapping[str, Any]
NOT_SHOWN = "What this does not show"
LEFT_OUT = '<p class="left-out">The texts were left out of this report (<code>report.text=none</code>).</p>'


def page_header(report: Report) -> str:
    """Title, test set, what was found, and what that does not show."""
    test = report["test"]
    pair = [test.get("source_language"), test.get("target_language")]
    facts = [f"{test['data']}/{test['name']}", " → ".join(pair) if all(pair) else ""]
    facts += [f"{test['sentences']:,} sentences", (report["record"].get("date") or "")[:10]]
    line = " · ".join(f"<bdi>{escape(fact)}</bdi>" for fact in facts if fact)
    sentences = []
    for index, headline in enumerate(report.get("headlines") or []):
        few = "<em>Descriptive only: a group has fewer than 100 sentences.</em>" if headline.get("descriptive") else ""
        sentences.append(f'<p class="{"also" if index else "headline"}">{escape(headline["sentence"])} {few}</p>')
    findings = "".join([*sentences, _limits(report), _leads(report)])
    return (
        f'<header><h1>{escape(report["title"])}</h1><p class="facts">{line}</p></header>\n'
        + f'<section id="findings" aria-label="Findings">{findings}</section>\n' * bool(findings)
    )


def _limits(report: Report) -> str:
    limits = [limit.removeprefix(f"{NOT_SHOWN}: ") for limit in report.get("limits") or []]
    items = note_list([limit[:1].upper() + limit[1:] for limit in limits], "limits")
    return f'<aside aria-label="{NOT_SHOWN}"><h2>{NOT_SHOWN}</h2>{items}</aside>' * bool(limits)


def _leads(report: Report) -> str:
    """The numbers that the headlines are the difference of."""
    rows = [
        [
            f"{line['system']} − {line['baseline']}",
            *(
                f"{format_signed(line[value])} {format_interval(line[interval])}".rstrip()
                for value, interval in (("gap_short", "gap_short_interval"), ("gap_long", "gap_long_interval"))
            ),
            f"{format_signed(line['estimate'])} {format_interval(line['interval'])}".rstrip(),
            ", ".join(map(format_signed, line.get("seeds") or [])) or MISSING,
        ]
        for line in report.get("headlines") or []
    ]
    if not rows:
        return ""
    first = report["headlines"][0]
    header = [
        "lead in BLEU",
        f"short: {first['short']} words\nn = {first['n_short']:,}",
        f"long: {first['long']} words\nn = {first['n_long']:,}",
        "long minus short",
        "by seed",
    ]
    return html_table("Lead in BLEU on short and on long sentences, [95% interval]", header, rows)


def grid_table(content: Mapping[str, Any], systems: Sequence[str]) -> str:
    """One of the report's grids; where the first cell is a system it wears its marker."""
    rows = [
        [Markup(system_name(systems.index(row[0]), row[0])) if row[0] in systems else row[0], *row[1:]]
        for row in content["rows"]
    ]
    return html_table(content["title"], content["header"], rows) + note_list(content.get("notes") or [])


def systems_section(report: Report, systems: Sequence[str]) -> str:
    failures = note_list([f"Missing: {failure}" for failure in report.get("failures") or []], "failures")
    tables = [grid_table(content, systems) for content in report["tables"][:1]]
    return html_section("systems", "Systems", failures, *tables) if tables or failures else ""


def significance_section(report: Report, systems: Sequence[str]) -> str:
    """Differences of pairs in every bin; stars where both tests hold after Holm's correction."""
    values = report.get("significance")
    if not values or not values["tests"]:
        return ""
    views = list(dict.fromkeys(test["view"] for test in values["tests"]))
    parts = [_differences(report, values["tests"], view, systems) for view in views]
    notes = [
        "Difference in BLEU with its 95% interval (paired bootstrap). "
        "*: both Holm-adjusted p values, of the paired bootstrap and of approximate randomisation, are under 0.05.",
        f"Holm's correction {values['holm']}; {values['resamples']:,} resamples, {values['trials']:,} trials, "
        f"seed {values['seed']}.",
    ]
    if any(test["identical"] for test in values["tests"]):
        notes.append("identical: the outputs match the references equally in every sentence; p = 1.")
    header = [
        "pair",
        "bin",
        "n",
        "difference",
        "95% interval",
        "p bootstrap",
        "Holm",
        "p randomisation",
        "Holm",
    ]
    rows = [
        [
            f"{test['b']} − {test['a']}",
            f"{test['bin']} {test['view']}" if len(views) > 1 else test["bin"],
            f"{test['n']:,}",
            format_signed(test["difference"]) + ("*" if test["significant"] else ""),
            "identical" if test["identical"] else format_interval(test["interval"]),
            *(format_p(test[key]) for key in P_COLUMNS),
        ]
        for test in values["tests"]
    ]
    all_tests = html_table("All tests", header, rows, "scroll tall")
    details = f"<details><summary>All {len(rows):,} tests with their p values</summary>{all_tests}</details>"
    return html_section("significance", "Significance", *parts, note_list(notes), details)


P_COLUMNS = ("p_bootstrap", "holm_bootstrap", "p_randomisation", "holm_randomisation")


def _differences(report: Report, tests: Sequence[Mapping[str, Any]], view: str, systems: Sequence[str]) -> str:
    tests = [test for test in tests if test["view"] == view]
    bins = list(dict.fromkeys(test["bin"] for test in tests))
    cells = {(test["a"], test["b"], test["bin"]): test for test in tests}
    axis = next((shown["axis"] for shown in report["views"] if shown["name"] == view), view)
    rows: list[list[object]] = []
    for a, b in dict.fromkeys((test["a"], test["b"]) for test in tests):
        names = [system_name(systems.index(name), name) if name in systems else escape(name) for name in (b, a)]
        rows.append([Markup(" − ".join(names)), *(_difference(cells.get((a, b, bin))) for bin in bins)])
    return html_table(f"Difference in BLEU by {axis}", ["pair", *bins], rows)


def _difference(test: Mapping[str, Any] | None) -> str:
    if test is None or test["difference"] is None:
        return MISSING
    if test["identical"]:
        return Markup("0.0<br><small>identical</small>")
    star = '<b class="star" title="both Holm-adjusted p under 0.05">*</b>' if test["significant"] else ""
    return Markup(f"{format_signed(test['difference'])}{star}<br><small>{format_interval(test['interval'])}</small>")


def alignment_section(report: Report, systems: Sequence[str]) -> str:
    """AER of attention, with precision and recall, overall and by length."""
    rows = report.get("alignment") or []
    if not rows:
        return ""
    lengths = list(dict.fromkeys(part["label"] for row in rows for part in row.get("by_length") or []))
    header = ["system", "weights of", "shift", "gold", "n", "AER", "precision", "recall", *lengths]
    cells = []
    for row in rows:
        by_length = {part["label"]: part for part in row.get("by_length") or []}
        name = row["system"]
        cells.append(
            [
                Markup(system_name(systems.index(name), name)) if name in systems else name,
                row["way"] or MISSING,
                str(row["shift"]),
                row["gold"],
                f"{row['n']:,}",
                *(format_number(row[key], 3) for key in ("aer", "precision", "recall")),
                *(format_number(by_length[label]["aer"], 3) if label in by_length else MISSING for label in lengths),
            ]
        )
    notes = [
        "AER: alignment error rate, 0 where every link is right; each target word is linked to the source word "
        "that it looks at most while the reference is forced.",
        "Shift 1 takes the weights of the step after the one that predicts the word. "
        "Columns by length: AER by source words.",
    ]
    return html_section(
        "alignment", "Attention as alignment", html_table("Alignment error rate", header, cells), note_list(notes)
    )


def samples_section(samples: Sequence[Mapping[str, Any]] | None, report: Report, systems: Sequence[str]) -> str:
    """Short and long sentences with every system's output beside the reference."""
    if samples is None:
        return html_section("samples", "Samples", LEFT_OUT)
    if not samples:
        return ""
    test = report["test"]
    parts = []
    for group in dict.fromkeys(sample["group"] for sample in samples):
        cards = [_sample(sample, test, systems) for sample in samples if sample["group"] == group]
        parts.append(f"<h3>{escape(group.capitalize())} sentences</h3>{''.join(cards)}")
    return html_section("samples", "Samples", *parts)


def _sample(sample: Mapping[str, Any], test: Mapping[str, Any], systems: Sequence[str]) -> str:
    source, target = (attribute("lang", test.get(key)) for key in ("source_language", "target_language"))
    rows = [("source", "source", sample["source"], source), ("reference", "reference", sample["reference"], target)]
    outputs = [
        (Markup(system_name(index, name)), "output", sample["outputs"][name], target)
        for index, name in enumerate(systems)
        if name in sample["outputs"]
    ]
    body = "".join(
        f'<div class="{kind}"><dt>{label}</dt><dd{lang} dir="auto">{escape(text) or "<i>(empty)</i>"}</dd></div>'
        for label, kind, text, lang in [*rows, *outputs]
    )
    return f'<article class="sample"><p class="count">{sample["words"]:,} source words</p><dl>{body}</dl></article>'


def provenance_section(report: Report) -> str:
    """How it was made: everything one needs to make it again."""
    test, record = report["test"], report["record"]
    signatures = [(f"{name} signature", text) for name, text in (report.get("signatures") or {}).items()]
    versions = record.get("versions") or {}
    facts = [
        ("command", record.get("command")),
        ("commit", record.get("commit")),
        ("date", record.get("date")),
        ("machine", record.get("machine")),
        ("versions", ", ".join(f"{name} {version}" for name, version in versions.items()) or None),
        ("test set", f"{test['data']}/{test['name']}, {test['sentences']:,} sentences"),
        ("source sha256", test.get("source_sha256")),
        *(("reference sha256", checksum) for checksum in test.get("references_sha256") or []),
        ("baseline", report.get("baseline")),
        *signatures,
    ]
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td><code>{escape(value)}</code></td></tr>'
        for name, value in facts
        if value
    )
    label = "How this report was made"
    record_table = scroll_box(f'<table class="record"><caption>{label}</caption><tbody>{rows}</tbody></table>', label)
    return html_section("record", "Notes and record", note_list(report.get("notes") or []), record_table)
