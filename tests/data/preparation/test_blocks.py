"""What has a file is done and is not done again; the rest is, whatever was there of it."""

from collections import Counter
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nmt.data.corpus import CorpusPart, Pair
from nmt.data.preparation.blocks import BLOCK_SIZE, Block, CorpusBlocks, Stage


class Sizes(NamedTuple):
    lengths: np.ndarray
    part: int
    last: dict[str, str]


def measure(calls: Counter[int], block: Block) -> Sizes:
    calls[block.number] += 1
    return Sizes(np.array([len(line) for line in block.sources]), block.part, {"last": block.targets[-1]})


def corpus() -> CorpusBlocks:
    sizes = (BLOCK_SIZE + 3, 7)
    return CorpusBlocks(
        [CorpusPart(str(size), None, lambda size=size: (Pair("x" * (n % 9), f"é{n}") for n in range(size)))
         for size in sizes]
    )  # fmt: skip


def test_blocks_end_where_a_part_does_and_count_all_pairs() -> None:
    found = [(block.number, block.first, block.part, len(block.sources)) for block in corpus()]
    assert found == [(0, 0, 0, BLOCK_SIZE), (1, BLOCK_SIZE, 0, 3), (2, BLOCK_SIZE + 3, 1, 7)]


def test_only_what_is_missing_is_done_when_a_stage_is_run_again(tmp_path: Path) -> None:
    calls: Counter[int] = Counter()
    stage = Stage(tmp_path / "work", partial(measure, calls), Sizes)
    stage.run(corpus(), "measuring", None, workers=1)
    whole = list(stage.results())
    assert [(len(result.lengths), result.part, result.last) for result in whole] == [
        (BLOCK_SIZE, 0, {"last": f"é{BLOCK_SIZE - 1}"}), (3, 0, {"last": f"é{BLOCK_SIZE + 2}"}), (7, 1, {"last": "é6"}),
    ]  # fmt: skip

    files = sorted((tmp_path / "work").iterdir())
    files[1].rename(files[1].with_name(f"{files[1].name}.1.tmp"))  # killed while it was written
    stage.run(corpus(), "measuring", None, workers=1)
    assert calls == {0: 1, 1: 2, 2: 1}
    for before, after in zip(whole, stage.results(), strict=True):
        np.testing.assert_array_equal(before.lengths, after.lengths)
        assert before[1:] == after[1:]
