"""Each system learns to reverse its source: greedy decoding, scored piece by piece."""

from pathlib import Path

import pytest

import nmt
from nmt.data.synthetic import SyntheticCorpus
from nmt.settings import SearchSettings
from tests.conftest import RunProgram

TASK = {"symbols": 10, "min_length": 5, "max_length": 10, "train_pairs": 20000, "test_pairs": 300}

SYSTEMS = [
    "rnn",
    "bahdanau",
    "luong",
    "transformer",
    "transformer attention_backend=tiled model.positions=rotary",
    "transformer attention_backend=window model.attention_window=3 model.positions=learned",
]


@pytest.mark.slow
@pytest.mark.parametrize("system", SYSTEMS)
def test_reverse_is_learned_to_95_percent_in_greedy_decoding(
    system: str, tmp_path: Path, run_program: RunProgram
) -> None:
    settings = [f"data.{key}={value}" for key, value in TASK.items()]
    done = run_program(
        "train", *f"experiment={system}".split(), "data=reverse", *settings, "training.max_updates=1500",
        "training.bleu_sentences=0", "threads=1", "run_dir=run", timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    test = SyntheticCorpus(reverse=True, **TASK).test_sets()["test"]
    outputs = nmt.load(tmp_path / "run").translate(test.sources, SearchSettings.defaults(beam=1))
    right = total = 0
    for output, reference in zip(outputs, test.references[0], strict=True):
        expected = reference.split()
        right += sum(a == b for a, b in zip(output.split(), expected, strict=False))
        total += max(len(expected), len(output.split()))
    assert right / total >= 0.95
