"""Invented translations of an invented test set, and run directories in the form that nmt.evaluate leaves them."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from nmt.data.corpus import TestSet
from nmt.evaluation.by_length import Bin
from nmt.evaluation.stored import lines_sha256
from nmt.run import write_config
from nmt.schema import conf_dir
from nmt.settings import ResamplingSettings
from nmt.study.report import Report, StudyInputs, StudySettings, build_report
from nmt.study.results import System, group_by_system, read_result

# how likely a word is wrong, and how much more so for each word of the source
FAULTS = {"rnn": (0.1, 0.014), "bahdanau": (0.1, 0.001), "luong": (0.12, 0.001), "transformer": (0.1, 0.003)}
SIZES = {"rnn": 401_000, "bahdanau": 409_000, "luong": 397_000, "transformer": 402_500}
WORDS = "the old dog sees a small house near that wood and runs to its long road while we sing".split()
BINS = {5: 130, 14: 120, 23: 110, 33: 105, 44: 101, 52: 40, 64: 7}  # source words: sentences


@cache
def invented_test() -> TestSet:
    generator = np.random.default_rng(3)
    lengths = [length for length, count in BINS.items() for _ in range(count)]
    lines = [" ".join(generator.choice(WORDS, size=length)) for length in lengths]
    return TestSet("test", lines, [[line.upper() for line in lines]])


@cache
def translations(system: str, seed: int = 1) -> list[str]:
    """The references with some words replaced."""
    start, slope = FAULTS[system]
    generator = np.random.default_rng([seed, *system.encode()])
    lines = []
    for reference in invented_test().references[0]:
        words = np.array(reference.split())
        wrong = generator.random(len(words)) < start + slope * len(words)
        lines.append(" ".join(np.where(wrong, "ODD", words)))
    return lines


def evaluation(system: str = "rnn", seed: int = 1, **changed: Any) -> dict[str, Any]:
    """What nmt.evaluate writes, as far as a comparison reads it; `changed` overrides keys of its "test" part."""
    test = invented_test()
    return {
        "system": system,
        "run": system if seed == 1 else f"{system}-seed{seed}",
        "seed": seed,
        "updates": 1500,
        "parameters": SIZES[system],
        "test": {
            "name": "test",
            "data": "invented",
            "source_language": "en",
            "target_language": "de",
            "sentences": len(test.sources),
            "source_sha256": lines_sha256(test.sources),
            "references_sha256": [lines_sha256(lines) for lines in test.references],
        }
        | changed,
        "hypotheses_sha256": lines_sha256(translations(system, seed)),
        "search": {"beam": 5, "n_best": 1, "length_penalty": 1.0, "max_ratio": 2.0, "max_extra": 50},
        "metrics": {"ter": {"score": 30.0 + seed}},
        "capped": 3,
        "warnings": [],
    }


def write_files(root: Path) -> None:
    """The test set as t.en and t.de."""
    root.mkdir(parents=True, exist_ok=True)
    for name, lines in (("t.en", invented_test().sources), ("t.de", invented_test().references[0])):
        (root / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


@cache
def invented_config() -> dict[str, Any]:
    """The settings of a small Transformer."""
    given = "experiment=transformer data=text data.name=invented data.source=en data.target=de data.train_src=t.en "
    given += "data.train_tgt=t.de data.test_src=t.en data.test_tgt=t.de batching.tokens=800 batching.max_pieces=100 "
    given += "model.embedding_size=6 model.heads=3 model.layers=1 model.feed_forward_size=7"
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        config: Any = OmegaConf.to_container(compose("train", given.split()), resolve=True)
    return config


def write_run(root: Path, system: str = "rnn", seed: int = 1, **changed: Any) -> Path:
    """A run directory with its translations; no weights."""
    report = evaluation(system, seed, **changed)
    run = root / str(report["run"])
    (run / "evaluation").mkdir(parents=True)
    (run / "evaluation" / "test.json").write_text(json.dumps(report), encoding="utf-8")
    hypotheses = "".join(f"{line}\n" for line in translations(system, seed))
    (run / "evaluation" / "test.hyp.txt").write_text(hypotheses, encoding="utf-8")
    write_config(run, {**invented_config(), "seed": seed, "name": system})
    data = {"train_sha256": "ef56" * 16, "train": {"kept": 20_000}}
    (run / "data.json").write_text(json.dumps(data), encoding="utf-8")
    cost = {"rnn": 1.0, "bahdanau": 2.0, "luong": 1.5, "transformer": 1.2}[system]
    lines: list[dict[str, Any]] = [
        {"update": update, "target_pieces": 800 * update, "seconds": 0.1 * update, "cpu_seconds": 0.08 * cost * update}
        for update in range(250, 1501, 250)
    ]
    totals = {key: value for key, value in lines[-1].items() if key != "update"}
    (run / "status.json").write_text(json.dumps({"state": "finished", "updates": 1500, **totals}), encoding="utf-8")
    lines.append({"update": 1500, "valid/nll": 0.5, "valid/bleu": 30.0, "target_pieces": 1_200_000})
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return run


def systems_in(root: Path, labels: tuple[str, ...] = tuple(FAULTS), seeds: int = 1) -> list[System]:
    runs = [write_run(root, label, seed) for label in labels for seed in range(1, seeds + 1)]
    return group_by_system([read_result(run, invented_test()) for run in runs])


def known() -> StudyInputs:
    states = {"rnn": (128, 0), "bahdanau": (0, 128)}
    return StudyInputs(invented_test(), "invented", ("en", "de"), None, None, states, [])


def choices(pairs: str = "baseline", baseline: str | None = None, trials: int = 199) -> StudySettings:
    return StudySettings(
        baseline, pairs, (Bin(1, 20), Bin(40, None)), ResamplingSettings.defaults(resamples=199, trials=trials)
    )


RECORD = {"command": "python -m nmt.compare", "commit": "0123abc", "date": "2001-02-03", "machine": "a machine"}


def report_of(systems: list[System], pairs: str = "baseline", **changed: Any) -> Report:
    report = build_report(systems, changed.pop("variants", []), known()._replace(**changed), choices(pairs), RECORD)
    return replace(report, notes=["a note"])
