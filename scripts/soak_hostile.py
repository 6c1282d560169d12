"""Runs of strangers, opened by every program: python -m scripts.soak hostile [--seed N] [--share 0.2]

Each of soak_strangers.VARIATIONS changes a trained run; then each program opens it, in a process and a folder of its
own. It must work, or end with one line and exit code 1 or 2; within five CPU seconds and a gibibyte of memory more
than it takes anyway; no code of the run may have run, nothing may be written or shown that lies outside. What
faults.md's table names is typed as commands too. The outcomes go to outputs/reference/soak.
"""

import importlib
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from hydra.core.global_hydra import GlobalHydra

from scripts.soak_configurations import write_text_files
from scripts.soak_files import end_process
from scripts.soak_records import VARIATIONS
from scripts.soak_strangers import CANARY, CONTROL, OUTSIDE, RUN, SECRET, Variation

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "outputs" / "reference" / "soak"
CPU_SECONDS, WALL_SECONDS, MEMORY = 5, 60, 1 << 30  # more than for the untouched run; the second: a hang
TRAIN = (
    "experiment=bahdanau data=copy data.train_pairs=60 data.valid_pairs=4 data.test_pairs=6 data.max_length=6 "
    "workers=1 tokenizer.vocab_size=400 tokenizer.shrink=true size.embedding=8 size.attention=8 size.bahdanau.encoder=8 "
    "size.bahdanau.hidden=8 training.bleu_sentences=2 training.validate_every=2 training.keep_every=2 "
    "training.average_last=2 device=cpu threads=1 schedule=constant"
)
SCORES = "device=cpu threads=1 bootstrap.resamples=40 ter=false"
COMPARE = (
    "study.jobs=1 study.output=out/comparison study.bootstrap.resamples=40 study.bootstrap.trials=40 "
    "study.headline.short=[1,3] study.headline.long=[4,null] study.device=cpu study.threads=1"
)
PROGRAMS = {  # RUN stands for the stranger's directory
    "translate": "translate checkpoint=RUN input=3.en output=out/new.fr device=cpu threads=1",
    "translate kept": "translate checkpoint=RUN/kept/update-0000002.safetensors input=3.en output=out/new.fr",
    "evaluate": f"evaluate checkpoint=RUN {SCORES}",
    "evaluate files": f"evaluate checkpoint=RUN test.src=3.en test.ref=3.fr {SCORES} output=out/scores",
    "compare": f"compare study.runs=[good,RUN] {COMPARE} study.report.text=none study.draw_attention=false",
    "compare, pictures": f"compare study.runs=[RUN,good] {COMPARE} study.sentence=5",
    "resume": f"train {TRAIN} training.max_updates=6 run_dir=RUN",
    "init_from": f"train {TRAIN} training.max_updates=2 run_dir=out/new init_from=RUN",
    "nmt.load": "load RUN",
}
USUAL = tuple(name for name in PROGRAMS if name not in ("translate kept", "compare, pictures"))
WRITABLE = ("out", "data")  # of the current folder, beside the run
FAULT = "FAULT: "


class Usage(NamedTuple):
    """What a process took: seconds of processor time, its own and its children's, and bytes of memory at most."""

    cpu: float
    memory: int


@dataclass(frozen=True)
class Done:
    """How a program ended."""

    code: int
    out: str
    err: str
    usage: Usage
    is_late: bool


def attack_strangers(seed: int, share: float, output: Path | None) -> int:
    """1 where any program did what it must not."""
    warm_up()
    generator = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="nmt-hostile-") as scratch:
        template = Path(scratch, "template")
        make_template(template)
        limits = {name: untouched(template, name) for name in PROGRAMS}
        pairs = [(variation, name) for variation in VARIATIONS for name in variation.programs or USUAL]
        chosen = sorted(generator.sample(range(len(pairs)), round(share * len(pairs))))
        typed = [(variation, name) for variation in VARIATIONS for name in variation.typed if share == 1]
        openings = [(*pairs[n], False) for n in chosen] + [(variation, name, True) for variation, name in typed]
        lines = shared_out(
            lambda n: outcome(template, *openings[n][:2], limits[openings[n][1]], openings[n][2]), len(openings)
        )
        table: dict[str, dict[str, str]] = {}
        for (variation, name, as_command), line in zip(openings, lines, strict=True):
            of_variation = table.setdefault(variation.name, {})
            if as_command and line != of_variation[name]:
                name, line = f"{name}, typed", f"{FAULT}otherwise as a command: {line}"
            of_variation.setdefault(name, line)
    outcomes = [line for lines in table.values() for line in lines.values()]
    faults = [(v, p, line) for v, lines in table.items() for p, line in lines.items() if line.startswith(FAULT)]
    for variation_name, name, line in faults:
        print(f"{variation_name} | {name}: {line}")
    print(
        f"{len(table)} variations of a run, {len(outcomes)} openings: {len(faults)} faults, "
        f"{sum(line.startswith('error') for line in outcomes)} refused, {outcomes.count('works')} work; "
        f"{len(typed)} of them typed as commands too"
    )
    if output or share == 1:
        write_tables(table, output or OUTPUT)
    return int(bool(faults))


def shared_out(call: Callable[[int], str], count: int) -> list[str]:
    """The results of calls 0, 1, ..., made by as many processes as there are processors."""
    jobs, results = os.cpu_count() or 1, [""] * count
    with tempfile.TemporaryDirectory(prefix="nmt-hostile-") as folder:
        children = []
        for job in range(jobs):
            child = os.fork()
            if child == 0:
                try:
                    texts = {n: call(n) for n in range(job, count, jobs)}
                    Path(folder, str(job)).write_text(json.dumps(texts), encoding="utf-8")
                except BaseException:
                    traceback.print_exc()
                finally:
                    os._exit(0)
            children.append(child)
        for child in children:
            os.waitpid(child, 0)
        for job in range(jobs):
            for n, text in json.loads(Path(folder, str(job)).read_text(encoding="utf-8")).items():
                results[int(n)] = text
    return results


def make_template(template: Path) -> None:
    """A folder with text and two trained and evaluated runs, and one outside of it that no program may touch."""
    work, outside = template / "work", template / OUTSIDE
    work.mkdir(parents=True)
    outside.mkdir()
    (outside / "secret.txt").write_text(f"{SECRET}\n" * 3, encoding="utf-8")
    (outside / "secret.tsv").write_text(f"{SECRET}\t{SECRET}\n" * 3, encoding="utf-8")
    (outside / "folder").mkdir()
    for split in ("train", "validation", "test"):
        rows = [json.dumps({"en": SECRET, "fr": SECRET})] * 3
        (outside / "folder" / f"{split}.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (template / "tmp").mkdir()
    write_text_files(work)
    for name in ("good", RUN):
        for command in (
            f"train {TRAIN} training.max_updates=4 run_dir={name}",
            f"evaluate checkpoint={name} {SCORES}",
        ):
            done = started(command.split(), work)
            assert done.code == 0, done.err
    for name in ("status.json", "metrics.jsonl"):  # of seconds, which differ from time to time
        file = work / RUN / name
        text = re.sub(r'("(cpu_)?seconds"): [\d.]+', r"\1: 1.0", file.read_text(encoding="utf-8"))
        file.write_text(text, encoding="utf-8")


def untouched(template: Path, name: str) -> Usage:
    """What a program takes for the run as it is, and for one that is yet to be evaluated: the larger of each."""

    def without_evaluation(run: Path) -> None:
        for file in (run / "evaluation").iterdir():
            file.unlink()

    usages = []
    for variation in (Variation("", lambda run: None), Variation("", without_evaluation)):
        with case(template, variation) as work:
            done = started(command_of(variation, name), work)
            assert done.code == 0, f"{name}: {done.err}"
            usages.append(done.usage)
    return Usage(max(one.cpu for one in usages), max(one.memory for one in usages))


class case:
    """A copy of the template with a changed run; its folder `work`."""

    def __init__(self, template: Path, variation: Variation) -> None:
        self.folder, self.template, self.variation = Path(tempfile.mkdtemp(dir=template.parent)), template, variation

    def __enter__(self) -> Path:
        shutil.copytree(self.template, self.folder, dirs_exist_ok=True, symlinks=True)
        work = self.folder / "work"
        (work / "out").mkdir()
        run = work / RUN
        times = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
        self.variation.change(run)
        for path, before in times.items():  # an evaluation stays newer than the weights, whichever was changed
            if path.is_file() and not path.is_symlink():
                os.utime(path, ns=(before, before))
        if self.variation.run_name != RUN:
            run.rename(work / self.variation.run_name)
        return work

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def command_of(variation: Variation, name: str) -> list[str]:
    return [word.replace("RUN", variation.run_name) for word in PROGRAMS[name].split()]


def outcome(template: Path, variation: Variation, name: str, limit: Usage, as_command: bool = False) -> str:
    """works, the line of error, or FAULT and what was wrong."""
    with case(template, variation) as work:
        before = snapshot(work.parent)
        done = started(command_of(variation, name), work, as_command)
        faults = list(breaches(done, work, variation, before, limit, as_command))
        lines = [line for line in done.err.split("\n") if line.startswith("error: ")]
        text = ("; ".join(faults) + " | " + done.err[-800:]) if faults else (lines or ["works"])[0]
        text = re.sub(rf"{re.escape(str(work.parent))}/?", "", text)
        return FAULT + text if faults else text


def breaches(
    done: Done, work: Path, variation: Variation, before: Mapping[str, Any], limit: Usage, as_command: bool
) -> Iterator[str]:
    """What a program did that it must not."""
    after = snapshot(work.parent)
    allowed = tuple(f"work/{name}" for name in (*WRITABLE, variation.run_name))
    changed = [path for path in before.keys() | after.keys() if before.get(path) != after.get(path)]
    for path in sorted(changed):
        if path.endswith(CANARY):
            yield "the stranger's code ran"
        elif not (path.startswith(allowed) or path == "work"):
            yield f"{path} was written"
    errors = [line for line in done.err.split("\n") if line.startswith("error: ")]
    if done.is_late:
        yield f"it ran for over {WALL_SECONDS} seconds"
    elif done.code not in (0, 1, 2):
        yield f"exit code {done.code}"
    if len(errors) != int(done.code != 0):
        yield f"{len(errors)} lines of error at exit code {done.code}"
    if "Traceback" in done.err or "a fault of the program" in done.err:
        yield "nobody foresaw it"
    if CONTROL.search(done.out + done.err):
        yield "a control character was shown"
    written = [path for name in WRITABLE for path in (work / name).rglob("*") if path.is_file()]
    if any(SECRET.encode() in text for text in (done.out.encode(), done.err.encode(), *map(Path.read_bytes, written))):
        yield "text from outside was shown"
    for path in written:
        yield from harmful(path)
    if not as_command and done.usage.cpu > limit.cpu + CPU_SECONDS:
        yield f"{done.usage.cpu - limit.cpu:.0f} CPU seconds more"
    if done.usage.memory > max(limit.memory, MEMORY):
        yield f"{done.usage.memory >> 20} MiB of memory"


def harmful(path: Path) -> Iterator[str]:
    """Names that would act in what a comparison writes."""
    if path.suffix in (".tex", ".csv", ".html", ".md", ".svg"):
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".tex" and re.search(r"(?m)^[^%]*\\(input|write18|immediate)\b", text):
            yield f"{path.name} has a command of LaTeX"
        if path.suffix == ".csv" and re.search(r'(?m)(^|,)"?[=@+][^,]*', text):
            yield f"{path.name} has a formula"
        if path.suffix in (".html", ".svg", ".md") and re.search(r"(?<!\\)<img src=x", text):
            yield f"{path.name} has a tag"


def snapshot(folder: Path) -> dict[str, Any]:
    """Every file below a folder: its kind, size and time; what lies in the folder for temporary files only if kept."""
    found = {}
    for path in folder.rglob("*"):
        status = path.lstat()
        is_folder = path.is_dir() and not path.is_symlink()
        found[path.relative_to(folder).as_posix()] = (
            status.st_mode if is_folder else (status.st_mode, status.st_size, status.st_mtime_ns)
        )
    return found


# ---- running


def started(command: Sequence[str], work: Path, as_command: bool = False) -> Done:
    """A program in a process of its own: a fork of this one, or as a user types it."""
    out, err = work.parent / "stdout", work.parent / "stderr"
    child = os.fork()
    if child == 0:
        run_here(command, work, out, err, as_command)
    is_late = threading.Event()

    def stop() -> None:
        is_late.set()
        os.killpg(child, signal.SIGKILL)

    timer = threading.Timer(WALL_SECONDS, stop)
    timer.start()
    _, status, usage = os.wait4(child, 0)
    timer.cancel()
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in (out, err)]
    for path in (out, err):
        path.unlink()
    code = os.waitstatus_to_exitcode(status)
    return Done(code, *texts, Usage(usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10), is_late.is_set())


def run_here(command: Sequence[str], work: Path, out: Path, err: Path, as_command: bool) -> None:
    """In the child; never returns."""

    def start() -> None:
        os.setsid()
        os.chdir(work)
        os.environ["TMPDIR"] = tempfile.tempdir = str(work.parent / "tmp")
        for number, path in enumerate((Path(os.devnull), out, err)):
            os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC), number)
        sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)
        sys.stderr = open(2, "w", errors="backslashreplace", closefd=False)
        name, *arguments = command
        if as_command and name != "load":
            os.execv(sys.executable, [sys.executable, "-m", f"nmt.{name}", *arguments])
        sys.path.insert(0, str(work))  # as python -m does
        sys.argv = [f"nmt.{name}", *arguments]
        if name == "load":
            sys.exit(translate_by_load(arguments[0]))
        run_main(name)

    end_process(start)


def run_main(name: str) -> None:
    if "study.report.text=none" in sys.argv:  # drawing and starting Python take seconds; "compare, pictures" does both
        figures, jobs = importlib.import_module("nmt.study.figures"), importlib.import_module("nmt.study.jobs")
        figures.save_chart = lambda chart, path: path.touch()  # type: ignore[attr-defined]
        jobs._spawn = lambda command, log, environment: Forked(command, log.fileno())  # type: ignore[attr-defined]
    importlib.import_module(f"nmt.{name}").main()


class Forked:
    """A job of a comparison as a fork of it."""

    def __init__(self, command: Sequence[str], log: int) -> None:
        self.child = os.fork()
        if self.child == 0:
            os.dup2(log, 1)
            os.dup2(log, 2)
            GlobalHydra.instance().clear()
            sys.argv = list(command[2:])
            end_process(partial(run_main, command[2].removeprefix("nmt.")))

    def poll(self) -> int | None:
        done, status = os.waitpid(self.child, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if done else None


def translate_by_load(run: str) -> int:
    from nmt import load
    from nmt.errors import UserError

    try:
        print(load(run, device="cpu").translate("the dog sleeps"))
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.code
    return 0


# ---- the tables


def write_tables(table: Mapping[str, Mapping[str, str]], folder: Path) -> None:
    """hostile.json: each outcome; hostile.md: a line for each variation."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "hostile.json").write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    lines = [
        "# Runs of strangers",
        "",
        f"A trained run was changed in {len(table)} ways, and every program opened each. Refused: one line, exit code",
        "1 or 2. Works: what was changed is not used, or is passed over. No code of a run ran, nothing outside was",
        "read, written or shown, and none took five CPU seconds or a gibibyte more than with the untouched run.",
        "Made by `python -m scripts.soak hostile`; hostile.json has the lines.",
        "",
        f"| what was changed | {' | '.join(PROGRAMS)} |",
        "|---|" + "---|" * len(PROGRAMS),
    ]
    for variation, outcomes in table.items():
        cells = [
            {"e": "refused", "w": "works", "F": "FAULT"}[outcomes[name][0]] if name in outcomes else ""
            for name in PROGRAMS
        ]
        lines.append(f"| {variation.replace('|', chr(92) + '|')} | {' | '.join(cells)} |")
    (folder / "hostile.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def warm_up() -> None:
    """Imports what programs import, once and not in every child."""
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"), "1")
    os.environ |= {"WANDB_MODE": "offline", "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}
    for name in (
        "train",
        "translate",
        "evaluate",
        "compare",
        "study.figures",
        "study.report_files",
        "study.attention_maps",
    ):
        importlib.import_module(f"nmt.{name}")
    import torch._dynamo  # torch.optim wants it

    torch.set_num_threads(1)
    with torch.device("meta"):
        torch.nn.Embedding(2, 2)  # imports more of torch
