"""Evaluations and run directories with invented numbers, in the form that nmt.evaluate writes."""

import json
from pathlib import Path
from typing import Any

INVENTED = {
    "rnn": [88.0, 41.0, 14.0, 6.0, 3.1, 2.0, None],
    "bahdanau": [99.2, 98.6, 97.9, 97.0, 93.0, 84.0, 71.0],
    "luong": [99.0, 97.8, 96.5, 94.1, 88.0, 71.0, 60.0],
    "transformer": [99.5, 99.1, 98.0, 95.0, 90.0, 62.0, 31.0],
}
SIZES = {"rnn": 401_000, "bahdanau": 409_000, "luong": 397_000, "transformer": 402_500}
COUNTS = [500, 500, 400, 300, 250, 150, 53]
LOWS = [1, 10, 20, 30, 40, 50, 60]


def evaluation(
    system: str = "rnn", seed: int = 1, bleu: list[float | None] | None = None, **test: Any
) -> dict[str, Any]:
    """One invented evaluation; test overrides keys of its "test" part."""
    scores = INVENTED[system] if bleu is None else bleu
    rows = [
        {
            "low": low,
            "high": low + 10 - (low == 1) if low < 60 else None,
            "n": n,
            "bleu": score,
            "interval": None if score is None else [max(0.0, score - 700 / n), min(100.0, score + 700 / n)],
            "brevity_penalty": 1.0,
            "length_ratio": 1.0,
            "note": "",
        }
        for low, n, score in zip(LOWS, COUNTS, scores, strict=True)
    ]
    known = [score for score in scores if score is not None]
    overall = sum(known) / len(known)
    signature = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"
    return {
        "system": system,
        "run": system if seed == 1 else f"{system}-seed{seed}",
        "seed": seed,
        "updates": 1450,
        "parameters": SIZES[system],
        "test": {
            "name": "test",
            "data": "grammar",
            "source_language": "en",
            "target_language": "de",
            "sentences": sum(COUNTS),
            "source_sha256": "ab12" * 16,
            "references_sha256": ["cd34" * 16],
        }
        | test,
        "search": {"beam": 5, "n_best": 1, "length_penalty": 1.0, "max_ratio": 2.0, "max_extra": 50},
        "metrics": {
            "bleu": {
                "score": overall,
                "interval": [overall - 1, overall + 1],
                "signature": signature,
                "brevity_penalty": 1.0,
                "length_ratio": 1.0,
                "precisions": [90.0, 80.0, 70.0, 60.0],
            },
            "chrf": {"score": overall + 2, "signature": "chrF2"},
            "ter": {"score": 100 - overall, "signature": "TER"},
        },
        "by_length": rows,
        "capped": 3,
        "warnings": [],
        "seconds": 12.3,
        "record": {"command": "", "commit": "", "date": "", "machine": "", "versions": {}},
    }


def write_run(root: Path, system: str = "rnn", seed: int = 1, **test: Any) -> Path:
    """A run directory with an invented evaluation; no weights."""
    report = evaluation(system, seed, **test)
    run = root / str(report["run"])
    (run / "evaluation").mkdir(parents=True)
    (run / "evaluation" / "test.json").write_text(json.dumps(report), encoding="utf-8")
    (run / "config.yaml").write_text(
        f"data: {{name: grammar, pairs: 20000}}\nbatching: {{max_tokens: 800}}\nseed: {seed}\n",
        encoding="utf-8",
    )
    data = {"train_sha256": "ef56" * 16, "train": {"kept": 20_000}}
    (run / "data.json").write_text(json.dumps(data), encoding="utf-8")
    lines = [{"update": 750, "target_pieces": 600_001, "seconds": 60.5}, {"update": 1500, "valid/nll": 0.5}]
    lines.append({"update": 1500, "target_pieces": 1_200_003, "seconds": 121.7})
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return run
