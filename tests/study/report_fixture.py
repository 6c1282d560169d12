"""An invented report: four systems, three seeds, three views, and sentences of 3 to 60 words that mean nothing."""

import itertools
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from nmt.evaluation.alignment_error import AlignmentBin, AlignmentEntry
from nmt.evaluation.by_length import BinScore
from nmt.files import write_text
from nmt.study.attention_maps import END, WordMap
from nmt.study.explorer import (
    Explorer,
    ExplorerSentence,
    PackedMap,
    SentenceMaps,
    packed_map,
)
from nmt.study.figures import curves_chart, length_chart
from nmt.study.headline import Headline
from nmt.study.hypothesis_tests import PairTest, Significance
from nmt.study.length_views import MaxLength
from nmt.study.report import BinInfo, Report, RunRow, SystemRow, TestInfo, View
from nmt.study.report_files import ReportTexts, html_page
from nmt.study.samples import Sample
from nmt.study.tables import grids

SYSTEMS = ["rnn", "bahdanau", "luong", "transformer"]
BLEU = {
    "rnn": [74.8, 29.3, 16.9, 12.4, 10.4, 9.6, 9.0],
    "bahdanau": [98.4, 96.7, 97.0, 96.6, 96.2, 95.1, 92.8],
    "luong": [97.1, 94.4, 94.9, 94.3, 93.7, 91.2, 86.9],
    "transformer": [97.6, 92.5, 90.1, 86.6, 80.9, 71.2, 64.1],
}
COUNTS = [352, 352, 352, 352, 352, 220, 84]
EDGES = [1, 10, 20, 30, 40, 50, 60, None]
LAYERS, HEADS = 3, 4
SOURCE_WORDS = (
    "the a old young dog house woman bird sees sings gives that because who under near red slowly today".split()
)
TARGET_WORDS = (
    "der die das alte junge Hund Haus Frau Vogel sieht singt gibt dass weil unter neben rote langsam heute".split()
)


def report(systems: list[str] = SYSTEMS) -> Report:
    """The report of a comparison."""
    labels = [f"{low}–{high - 1}" if high else f"{low}+" for low, high in itertools.pairwise(EDGES)]
    words = replace(
        view("words", "source words", labels, EDGES, COUNTS, systems),
        cap=MaxLength(50.0, "longest training source: 50 words"),
        training=[0.22, 0.24, 0.21, 0.18, 0.147, 0.003, 0.0],
    )
    tens = [1, 5, 8, 12, 17, 22, 28, 35, 43, 53, None]
    tenths = [f"{low}–{high - 1}" if high else f"{low}–70" for low, high in itertools.pairwise(tens)]
    pieces = [1, 15, 30, 45, 60, 75, 90, None]
    spans = [f"{low}–{high - 1}" if high else f"{low}+" for low, high in itertools.pairwise(pieces)]
    return Report(
        title=f"BLEU by source length: {', '.join(systems)} on grammar",
        headlines=[headline(name, place) for place, name in enumerate(systems) if name != "rnn"],
        variant_headlines=[],
        limits=[
            "The cause. State size, gradient path and training lengths were not varied, "
            "so a gap that grows with length is consistent with a bottleneck but does not prove one.",
            "Other text: the sentences come from a grammar with a small vocabulary.",
        ],
        provenance={
            "command": "python -m nmt.compare study.seeds=[1,2,3]",
            "commit": "0123abcdef",
            "date": "2030-01-02T03:04:05+00:00",
            "machine": "an invented machine, 2 cores",
            "versions": {"python": "3.11.2", "torch": "2.13.0"},
        },
        test=TestInfo("test", "grammar", sum(COUNTS), "en", "de", "ab12" * 16, ["cd34" * 16]),
        signatures={"bleu": "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"},
        baseline="rnn",
        systems=[system_row(name) for name in systems],
        variants=[],
        views=[
            words,
            view("deciles", "source words, tenths of the test set", tenths, tens, [206] * 10, systems),
            view("pieces", "source pieces", spans, pieces, COUNTS, systems),
        ],
        significance=significance(systems, labels),
        curves={name: [(n * 230_000, curve(name)[2] * (1 - 0.6**n)) for n in range(1, 9)] for name in systems},
        alignment=[alignment(name, shift, labels) for name in systems if name != "rnn" for shift in (0, 1)],
        parameter_ratio=1.0,
        fairness=[],
        notes=["Same training data for all: 24,000 pairs.", "Same updates for all: 2,000."],
    )


def system_row(name: str) -> SystemRow:
    run = RunRow(name, 1, curve(name)[3], 2000, 2000, 1_840_000, 106.0, 106.0, 2, "ef56" * 16)
    return SystemRow(
        **vars(score(curve(name)[3], 2064)), system=name, parameters=345_319, state="128", state_numbers=128,
        updates=2000,
        evaluated_at_update=2000, target_pieces=1_840_000, cpu_seconds=106.0, capped=2, search=None, warnings=[],
        runs=[run] * 3,
    )  # fmt: skip


def curve(system: str) -> list[float]:
    """An invented row of BLEU, also for a system of another name."""
    if system in BLEU:
        return BLEU[system]
    start = 20 + sum(map(ord, system)) * 7 % 60
    return [start - 1.7 * place - (place * ord(system[-1])) % 5 for place in range(7)]


def view(
    name: str, axis: str, labels: list[str], edges: list[int | None], counts: list[int], systems: list[str]
) -> View:
    bins = [
        BinInfo(label, low or 0, high, n, 9 * n, n < 100)
        for label, low, high, n in zip(labels, edges, edges[1:], counts, strict=False)
    ]
    scores = {}
    for system in systems:
        values = np.interp(np.linspace(0, 6, len(bins)), range(7), curve(system))
        scores[system] = [score(float(value), n) for value, n in zip(values, counts, strict=False)]
    return View(name, axis, f"BLEU by {axis}", bins, None, None, scores, {})


def score(bleu: float, n: int) -> BinScore:
    half = (2.5 if bleu < 90 else 0.8) * (350 / n) ** 0.5
    ends = (max(0.0, bleu - half), min(100.0, bleu + half))
    seeds: list[float | None] = [bleu - 0.6, bleu + 0.1, bleu + 0.5]
    return BinScore(bleu, ends, seeds, 0.987, 0.9871, [90.0, 80.0, 70.0, 60.0], 9.0 * n, 9 * n, bleu, "", {})


def headline(name: str, place: int) -> Headline:
    estimate = 60.0 - 5.4 * place
    return Headline(
        system=name, baseline="rnn", short="1–19", long="40+", n_short=704, n_long=656, estimate=estimate,
        interval=(estimate - 2.1, estimate + 2.0), seeds=[estimate - 0.7, estimate + 0.2, estimate + 0.5],
        gap_short=26.1, gap_short_interval=(24.0, 28.1), gap_long=26.1 + estimate, gap_long_interval=(80.0, 84.0),
        descriptive=False,
        sentence=f"From short sentences (1–19 words) to long ones (40 and more), {name}'s lead over rnn grows by "
        f"{estimate:.1f} BLEU (95% interval {estimate - 2.1:.1f} to {estimate + 2:.1f}).",
    )  # fmt: skip


def significance(systems: list[str], labels: list[str]) -> Significance:
    tests = []
    for name in systems:
        for place, label in enumerate(["all", *labels]):
            if name == "rnn":
                continue
            difference = curve(name)[place % 7] - curve("rnn")[place % 7]
            ends = (difference - 2, difference + 2)
            tests.append(
                PairTest("words", label, "rnn", name, 352, difference, ends, 0.0004, 0.0001, False, 0.0028, 0.031,
                         abs(difference) > 5)
            )  # fmt: skip
    return Significance("over the 7 bins of each pair", 1000, 10_000, 12345, tests)


def alignment(name: str, shift: int, labels: list[str]) -> AlignmentEntry:
    aer = 0.08 + 0.4 * shift
    parts = [AlignmentBin(label, 352, aer + 0.01 * place, 0.9, 0.9) for place, label in enumerate(labels)]
    way = "layer 2, mean of heads" if name == "transformer" else ""
    return AlignmentEntry(name, way, shift, False, "test", 2064, aer, 0.93, 0.9, parts)


def sentences(count: int = 100) -> list[tuple[list[str], list[str], list[tuple[int, int]]]]:
    """Invented (source words, target words, gold links), of 3 to 60 words."""
    made = random.Random(3)
    found = []
    for place in range(count):
        length = 60 if place == count - 1 else min(60, max(3, int(made.gauss(25, 13))))
        order = list(range(length))
        for start in range(0, length - 4, 6):
            order[start + 1 : start + 4] = order[start + 2 : start + 4] + order[start + 1 : start + 2]
        source = [made.choice(SOURCE_WORDS) for _ in range(length)]
        target = [TARGET_WORDS[SOURCE_WORDS.index(source[s])] for s in order]
        found.append((source, target, [(s, t) for t, s in enumerate(order)]))
    return found


def explorer(count: int = 100, systems: list[str] = SYSTEMS) -> Explorer:
    """Invented weights near the gold links, for every system but the first."""
    made = sentences(count)
    numbers = np.random.default_rng(1)
    maps: dict[str, list[Any]] = {systems[0]: []}
    for name in systems[1:]:
        shape = (LAYERS, HEADS) if name == "transformer" else (1, 1)
        maps[name] = [
            SentenceMaps(
                weights(source, target, gold, shape, numbers), weights(source, target[:-1], (), shape, numbers)
            )
            for source, target, gold in made
        ]
    return Explorer(
        [ExplorerSentence(" ".join(source), " ".join(target), len(source)) for source, target, _ in made],
        maps,
        {name: [" ".join(target[:-1]) for _, target, _ in made] for name in systems},
    )


def weights(source: list[str], target: list[str], gold: Any, shape: tuple[int, int], numbers: Any) -> PackedMap:
    rows, columns = len(target) + 1, len(source) + 1
    logits = numbers.normal(size=(*shape, rows, columns))
    centre = {t: s for s, t in gold}
    for t in range(rows):
        spread = np.abs(np.arange(columns) - centre.get(t, t))
        logits[..., t, :] -= spread * numbers.uniform(0.6, 2.5, size=(*shape, 1))
    raised = np.exp(logits)
    return packed_map(WordMap([*source, END], [*target, END], raised / raised.sum(-1, keepdims=True)), gold)


def samples(systems: list[str] = SYSTEMS) -> list[Sample]:
    """Four short sentences and two long ones."""
    made = sorted(sentences(), key=lambda pair: len(pair[0]))
    chosen = [("short", pair) for pair in made[3:7]] + [("long", pair) for pair in made[-3:-1]]
    return [
        Sample(
            " ".join(source),
            " ".join(target),
            len(source),
            {name: " ".join(target[: len(target) - place]) for place, name in enumerate(systems)},
            group,
        )
        for group, (source, target, _) in chosen
    ]


def write(
    path: Path, made: Report | None = None, shown: list[Sample] | None = None, maps: Explorer | None = None
) -> Path:
    """The page of the report, written to path."""
    made = made or report()
    charts = {view.name: length_chart(made, view) for view in made.views if view.bins}
    if made.curves:
        charts["curves"] = curves_chart(made)
    write_text(path, html_page(made, grids(made), charts, ReportTexts(shown, maps)))
    return path
