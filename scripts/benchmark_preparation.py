"""What preparing a large corpus costs: pairs a second and memory, as text and as a hub-style folder of parquet.

python -m scripts.benchmark_preparation SOURCE TARGET --output outputs/reference/benchmarks/preparing.json

SOURCE and TARGET, English text and its French translation (plain or .gz), are repeated to each number of --pairs.
"""

import argparse
import gzip
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import NamedTuple

import psutil

from nmt.benchmarks import BenchmarkReport, markdown_table
from nmt.errors import ConfigError, UserError
from nmt.evaluation.stored import require_writable
from nmt.progress import say

HUB_PAIRS = 41_000_000  # about the size of WMT14 fr-en on the hub, the corpus this is meant for
HELD_OUT = 3_000  # pairs of the test set, to be kept out of the training text
ROWS = 100_000  # of a parquet row group
INTERVAL = 0.05  # seconds between measurements of the memory
STAGE_LINE = re.compile(r"(reading and cleaning|encoding) pairs: [\d,]+ in ([\d.]+) s")


class ProgramUsage(NamedTuple):
    """Time and memory of a finished program."""

    seconds: dict[str, float]  # of the stages that it reported
    peak_bytes: int  # anonymous memory, summed over it and its children
    cpu_seconds: float


@dataclass(frozen=True)
class PreparationRow:
    """One size in one form."""

    form: str
    pairs: int
    cleaning_pairs_per_second: float
    encoding_pairs_per_second: float
    pairs_per_second: float  # both together
    cpu_seconds: float
    prepare_peak_mb: float
    train_peak_mb: float

    def cells(self) -> list[str]:
        rates = (self.cleaning_pairs_per_second, self.encoding_pairs_per_second, self.pairs_per_second)
        memory = (self.prepare_peak_mb, self.train_peak_mb)
        return [self.form, f"{self.pairs:,}", *(f"{value:,.0f}" for value in (*rates, self.cpu_seconds, *memory))]


HEADER = ["form", "pairs", "cleaned/s", "encoded/s", "both/s", "CPU s", "prepare MB", "train MB"]


@dataclass(frozen=True)
class PreparationBenchmark:
    """`source` and `target` repeated to each number of `pairs`, made distinct by a running number on both sides."""

    source: Path
    target: Path
    pairs: Sequence[int]
    forms: Sequence[str]
    vocab_size: int
    updates: int  # of the training whose memory is measured

    def __post_init__(self) -> None:
        for number in self.pairs:
            if number < 1:
                raise ConfigError(f"--pairs={number}: give a whole number, 1 or more")

    def run(self) -> BenchmarkReport:
        rows = []
        for form in self.forms:
            for pairs in self.pairs:
                with tempfile.TemporaryDirectory(prefix="nmt-benchmark-") as folder:
                    say(f"preparing: {pairs:,} pairs as {form}")
                    rows.append(self._measure(Path(folder), form, pairs))
                    say(f"preparing: {rows[-1].pairs_per_second:,.0f} pairs/s")
        growth = {form: _growth([row for row in rows if row.form == form]) for form in self.forms}
        results = {
            "rows": [asdict(row) for row in rows],
            "prepare_bytes_per_pair": growth,
            "extrapolated_to": HUB_PAIRS,
            "extrapolated_mb": {form: _extrapolated([row for row in rows if row.form == form]) for form in self.forms},
        }
        notes = [
            f"{form}: {growth[form]:.1f} bytes a pair; {HUB_PAIRS:,} pairs would peak at {peak:,.0f} MB"
            for form, peak in results["extrapolated_mb"].items()  # type: ignore[attr-defined]
        ]
        notes.append("memory: peak of anonymous memory (RssAnon), summed over the process tree")
        return BenchmarkReport(markdown_table(HEADER, [row.cells() for row in rows]), notes, results)

    def _measure(self, folder: Path, form: str, pairs: int) -> PreparationRow:
        data = [*self._write(folder, form, pairs), f"tokenizer.vocab_size={self.vocab_size}"]
        data += ["data.source=en", "data.target=fr", f"data_dir={folder / 'data'}"]
        prepared = _run_program(["nmt.prepare", *data])
        limit = f"training.max_updates={self.updates}"
        trained = _run_program(
            [
                "nmt.train",
                "experiment=transformer",
                *data,
                limit,
                f"run_dir={folder / 'run'}",
                "training.max_epochs=null",
            ]
        )
        cleaning, encoding = (prepared.seconds[stage] for stage in ("reading and cleaning", "encoding"))
        megabyte = 10**6
        return PreparationRow(
            form, pairs, pairs / cleaning, pairs / encoding, pairs / (cleaning + encoding), prepared.cpu_seconds,
            prepared.peak_bytes / megabyte, trained.peak_bytes / megabyte,
        )  # fmt: skip

    def _write(self, folder: Path, form: str, pairs: int) -> list[str]:
        """The corpus on disk and the settings that name it; the held-out text is the same lines, unnumbered."""
        if form == "text":
            settings = ["data=text"]
            for side, path in (("src", self.source), ("tgt", self.target)):
                _write_lines(folder / f"train.{side}", _numbered(path, pairs))
                _write_lines(folder / f"test.{side}", islice(_lines(path), HELD_OUT))
                settings += [f"data.{split}_{side}={folder / f'{split}.{side}'}" for split in ("train", "test")]
            return settings
        _write_parquet(folder / "hub/en-fr/train-00000-of-00001.parquet", self._sides(pairs))
        held_out = zip(*(islice(_lines(path), HELD_OUT) for path in (self.source, self.target)), strict=True)
        _write_parquet(folder / "hub/en-fr/test-00000-of-00001.parquet", held_out)
        return ["data=hub", f"data.path={folder / 'hub'}", "data.name=en-fr"]

    def _sides(self, pairs: int) -> Iterator[tuple[str, str]]:
        return zip(_numbered(self.source, pairs), _numbered(self.target, pairs), strict=True)


def _lines(path: Path) -> list[str]:
    name = path.expanduser()
    try:
        content = gzip.open(name).read() if name.suffix == ".gz" else name.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {name}: {error.strerror or error}") from None
    return content.decode("utf-8").split("\n")[:-1]


def _numbered(path: Path, count: int) -> Iterator[str]:
    return (f"{line} {number}" for number, line in enumerate(islice(cycle(_lines(path)), count)))


def _write_lines(path: Path, lines: Iterator[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


def _write_parquet(path: Path, pairs: Iterator[tuple[str, str]]) -> None:
    """As on the hub: one struct column `translation` with a string for each language."""
    import pyarrow as pa
    from pyarrow import parquet

    path.parent.mkdir(parents=True, exist_ok=True)
    kind = pa.struct([("en", pa.string()), ("fr", pa.string())])
    with parquet.ParquetWriter(path, pa.schema([("translation", kind)])) as writer:
        while rows := [{"en": source, "fr": target} for source, target in islice(pairs, ROWS)]:
            writer.write_table(pa.table({"translation": pa.array(rows, type=kind)}))


def _run_program(command: Sequence[str]) -> ProgramUsage:
    """Run a program of ours to its end, measuring its memory meanwhile."""
    root = str(Path(__file__).resolve().parents[1])
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    started = _children_cpu()
    process = subprocess.Popen(
        [sys.executable, "-m", *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": path},
    )  # fmt: skip
    peak = [0]

    def watch() -> None:
        while process.poll() is None:
            peak[0] = max(peak[0], anonymous_bytes(process.pid))
            time.sleep(INTERVAL)

    watcher = threading.Thread(target=watch)
    watcher.start()
    log = process.communicate()[1]
    watcher.join()
    if process.returncode:
        last = log.strip().split("\n")[-1]
        raise UserError(f"{command[0]} failed: {last}")
    seconds = {stage: max(0.01, float(value)) for stage, value in STAGE_LINE.findall(log)}
    return ProgramUsage(seconds, peak[0], _children_cpu() - started)


def anonymous_bytes(pid: int) -> int:
    """Anonymous memory of a process and its children; mapped files do not count."""
    total = 0
    try:
        parent = psutil.Process(pid)
        processes = [parent, *parent.children(recursive=True)]
    except psutil.Error:
        return 0
    for process in processes:
        try:
            total += _anonymous(process)
        except (psutil.Error, OSError):
            continue  # it has just ended
    return total


def _anonymous(process: psutil.Process) -> int:
    if sys.platform != "linux":
        return int(process.memory_full_info().uss)
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
    kilobytes = re.search(r"RssAnon:\s+(\d+) kB", status)
    return 1024 * int(kilobytes[1]) if kilobytes else 0


def _children_cpu() -> float:
    times = psutil.Process().cpu_times()
    return times.children_user + times.children_system


def _growth(rows: Sequence[PreparationRow]) -> float:
    """Bytes of the peak for each pair more, between the smallest and the largest size."""
    first, last = min(rows, key=lambda row: row.pairs), max(rows, key=lambda row: row.pairs)
    return 1e6 * (last.prepare_peak_mb - first.prepare_peak_mb) / max(1, last.pairs - first.pairs)


def _extrapolated(rows: Sequence[PreparationRow]) -> float:
    last = max(rows, key=lambda row: row.pairs)
    return last.prepare_peak_mb + (HUB_PAIRS - last.pairs) * _growth(rows) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--pairs", type=int, nargs="+", default=[360_000, 2_100_000])
    parser.add_argument("--forms", nargs="+", choices=("text", "parquet"), default=["text", "parquet"])
    parser.add_argument("--vocab-size", type=int, default=8000)
    parser.add_argument("--updates", type=int, default=3, help="of the training whose memory is measured")
    parser.add_argument("--output", type=Path, help="a file for the numbers, as JSON; Markdown beside it")
    options = parser.parse_args()
    if options.output:
        require_writable(options.output.parent)
    report = PreparationBenchmark(
        options.source, options.target, options.pairs, options.forms, options.vocab_size, options.updates
    ).run()
    print(report.markdown(), end="", flush=True)
    if options.output:
        report.write(options.output, {"suite": "preparing", "experiment": "transformer", "size": "small"})


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        say(f"error: {error}")
        sys.exit(error.code)
