"""Long attacks on the programs: python -m scripts.soak settings [--seed N] [--share 0.1] [--programs train,translate]

`hostile` is in soak_hostile.py: runs of strangers, opened by every program.

`settings` gives each declared setting of each program every one of VALUES, and its own bounds, one at a time, in a
configuration of the shipped choices. What the declarations let through is run, in a process and a folder of its own.
Each pair must be refused in one line before anything is written, or run. The table of all outcomes goes to
outputs/reference/soak.
"""

import argparse
import importlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

# ruff: noqa: E402 (the environment comes before the imports that read it)
ROOT = Path(__file__).resolve().parent.parent
SCRATCH = Path(tempfile.mkdtemp(prefix="nmt-soak-"))
os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"), "1")
os.environ |= {"WANDB_MODE": "offline", "MPLBACKEND": "Agg", "HF_HOME": str(SCRATCH / "hf")}
os.environ |= {"SACREBLEU": str(SCRATCH / "sacrebleu"), "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}
sys.path.insert(0, str(ROOT))

import psutil
import torch
from hydra import compose, initialize_config_dir
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from nmt.cli import Composed, composed, error_line, readable_override
from nmt.errors import UserError
from nmt.experiments import split_arguments
from nmt.schema import Settings, conf_dir, declared_settings, section_for, sections_of, shown
from nmt.settings import PROGRAMS
from nmt.training_settings import kind_of_part
from scripts.soak_configurations import CONFIGURATIONS, TEMPLATE, write_text_files

OUTPUT = ROOT / "outputs" / "reference" / "soak"
VALUES: list[Any] = [-1, 0, 1e30, float("nan"), float("inf"), "abc", [1, 2], {"a": 1}, None, True, "", 2**64]
CPU_SECONDS, WALL_SECONDS, MEMORY = 20, 150, 4 * 2**30  # what a run may take
BOUND_SECONDS = 4  # then a setting at its bound is taken to work: a million updates take their time
FAULT = "FAULT: "
PROCESSOR_COUNTS = ("threads", "workers", "jobs")  # whose bound would take the machine from everybody else
TOO_LONG = "it ran for too long"
QUOTES = '""'  # how an empty text is shown

FULLY = ("translate", "evaluate", "compare")  # every setting in each configuration; elsewhere in the first that has it


class Pair(NamedTuple):
    """A setting, the class it belongs to where there are several, and the value it is given."""

    program: str
    configuration: int
    key: str
    owner: str
    value: Any


def main() -> int:
    parser = argparse.ArgumentParser(prog="soak.py", description=__doc__, allow_abbrev=False)
    parser.add_argument("attack", choices=["settings", "hostile"])
    parser.add_argument("--seed", type=int, default=1, help="of the share, and of what is also typed as a command")
    parser.add_argument(
        "--share", type=float, default=1.0, help="of the pairs, at random; new settings are always tried"
    )
    parser.add_argument("--programs", default=",".join(PROGRAMS), help="train,translate,...")
    parser.add_argument("--commands", type=int, default=40, help="pairs that are also typed, where all are tried")
    parser.add_argument("--output", type=Path, help="folder of the tables; by default written only where all is tried")
    options = parser.parse_args()
    if options.attack == "hostile":
        from scripts.soak_hostile import attack_strangers

        shutil.rmtree(SCRATCH, ignore_errors=True)
        return attack_strangers(options.seed, options.share, options.output)
    programs = options.programs.split(",")
    try:
        with initialize_config_dir(str(conf_dir()), version_base="1.3"):
            return attack_settings(programs, options.seed, options.share, options.commands, options.output)
    finally:
        shutil.rmtree(SCRATCH, ignore_errors=True)


def attack_settings(programs: Sequence[str], seed: int, share: float, typed: int, output: Path | None) -> int:
    generator = random.Random(seed)
    pairs = [pair for program in programs for pair in pairs_of(program)]
    table = json.loads((OUTPUT / "settings.json").read_text("utf-8"))
    new = {n for n, pair in enumerate(pairs) if name_in_table(pair) not in table.get(pair.program, {})}
    chosen = sorted({*generator.sample(range(len(pairs)), round(share * len(pairs))), *new})
    runner = Runner(SCRATCH / "template")
    complete = share == 1 and programs == list(PROGRAMS)
    for program, n in dict.fromkeys((pairs[n].program, pairs[n].configuration) for n in chosen if complete):
        untouched = runner.outcome(Pair(program, n, "", "", None))
        assert untouched == "accepted", f"{program}, {CONFIGURATIONS[program][n]}: {untouched}"
    outcomes = [(pairs[n], runner.outcome(pairs[n])) for n in chosen]
    sample = generator.sample(chosen, min(len(chosen), round(share * typed)))
    commands = [(pairs[n], runner.command_outcome(pairs[n])) for n in sample]
    faults = [(pair, outcome) for pair, outcome in outcomes + commands if outcome.startswith(FAULT)]
    for pair, outcome in faults:
        print(f"{pair.program} ({pair.configuration}) {pair.key}={shown(pair.value)}: {outcome}")
    accepted = sum(outcome.startswith("accepted") for _, outcome in outcomes)
    print(
        f"{len(outcomes)} pairs of a setting and a value: {accepted} accepted ({runner.runs} runs), "
        f"{len(outcomes) - accepted} not; {len(commands)} of them typed as commands; {len(faults)} faults"
    )
    if output or complete:
        write_tables(outcomes, output or OUTPUT)
    return int(bool(faults))


# ---- the pairs


def pairs_of(program: str) -> Iterator[Pair]:
    """Every setting of a program with every value. AssertionError where a declared one is in no configuration."""
    tried: set[tuple[str, str]] = set()
    bounds = {
        (one.key, one.target): [] if one.key in PROCESSOR_COUNTS else bounds_of(one.schema)
        for one in declared_settings(PROGRAMS[program])
    }
    for n in range(len(CONFIGURATIONS[program])):
        values: Any = OmegaConf.to_container(without_hydra(configuration(program, n)), resolve=True)
        for key, owner in dict.fromkeys(settings_in(PROGRAMS[program], values)):
            if (key, owner) not in tried or program in FULLY:
                tried.add((key, owner))
                yield from (Pair(program, n, key, owner, value) for value in [*VALUES, *bounds.get((key, owner), [])])
    reached = {(re.sub(r"parts\.\w+\.", "parts.", key), owner) for key, owner in tried}
    left = bounds.keys() - reached
    assert not left, f"{program}: no configuration has {sorted(left)}"


def bounds_of(schema: Mapping[str, Any]) -> list[Any]:
    """The least and the greatest number that a declaration allows: what is accepted must not take for ever either."""
    limits = [choice.get(key) for choice in schema.get("anyOf") or [schema] for key in ("minimum", "maximum")]
    return [limit for limit in limits if limit not in (None, *VALUES)]


@cache
def configuration(program: str, number: int) -> DictConfig:
    overrides = CONFIGURATIONS[program][number].split()
    if program == "compare":
        overrides = split_arguments(overrides)[0]
    return compose(program, [readable_override(override) for override in overrides], return_hydra_config=True)


def without_hydra(config: DictConfig) -> DictConfig:
    return OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])


def settings_in(
    declared: type[Settings], values: Mapping[str, Any], prefix: str = "", owner: str = ""
) -> Iterator[tuple[str, str]]:
    """The settings of a configuration, sections too, with the class that each belongs to."""
    for name, field in declared.model_fields.items():
        name = field.alias or name
        if name.startswith("_") or (name not in values and field.is_required()):
            continue
        key, value = f"{prefix}{name}", values.get(name)
        yield key, owner
        if key == "data.parts":
            for part, settings in value.items():
                target = settings.get("_target_") or kind_of_part(settings)
                yield from settings_in(sections_of(field)[target], settings, f"{key}.{part}.", target)
        elif (section := section_for(field, value)) and isinstance(value, dict):
            yield from settings_in(section, value, f"{key}.", value.get("_target_", owner))


# ---- running


class Runner:
    """Runs programs, each in a process of its own in a copy of a folder with text, corpora and trained runs."""

    def __init__(self, template: Path) -> None:
        self.template, self.runs = template, 0
        self._outcomes: dict[str, str] = {}  # by configuration: many values are the default
        modules = {program: importlib.import_module(f"nmt.{program}") for program in PROGRAMS}
        self._mains = {program: getattr(module.main, "__wrapped__", None) for program, module in modules.items()}
        for module in ("datasets", "altair", "torch._dynamo"):  # once, not in every run
            importlib.import_module(module)
        torch.set_num_threads(1)
        write_text_files(template)
        for program, overrides in TEMPLATE:
            config = compose(program, overrides.split(), return_hydra_config=True)
            HydraConfig.instance().set_config(config)
            outcome = self._run(program, (), composed(program, without_hydra(config)), template)
            assert outcome == "accepted", outcome

    def outcome(self, pair: Pair) -> str:
        """accepted; refused: the line; FAULT: anything else."""
        whole = configuration(pair.program, pair.configuration)
        HydraConfig.instance().set_config(whole)
        config = without_hydra(whole)  # a copy
        try:
            if pair.key:
                OmegaConf.update(config, pair.key, pair.value, merge=False, force_add=True)
            checked = composed(pair.program, config)
        except Exception as error:
            return error_outcome(error, pair.program)
        if pair.program == "benchmark" and pair.key.split(".")[0] in PROGRAMS["train"].model_fields:
            return "accepted"  # checked alone: nmt.train runs with it
        known = json.dumps([pair.program, pair.configuration, checked.config])
        if known not in self._outcomes:
            with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
                shutil.copytree(self.template, folder, dirs_exist_ok=True)
                overrides = CONFIGURATIONS[pair.program][pair.configuration].split()
                self._outcomes[known] = self._run(
                    pair.program, overrides, checked, Path(folder), not is_value(pair.value)
                )
        return self._outcomes[known]

    def _run(
        self, program: str, overrides: Sequence[str], checked: Composed, folder: Path, at_bound: bool = False
    ) -> str:
        self.runs += 1
        before = set(folder.rglob("*"))
        log = SCRATCH / "outcome"
        log.unlink(missing_ok=True)
        child = os.fork()
        if child == 0:
            os.setsid()
            run_here(partial(self._main(program, overrides), checked), program, folder, log)
        reason = wait_for(child, BOUND_SECONDS if at_bound else CPU_SECONDS)
        if at_bound and reason == TOO_LONG:
            return "accepted"
        outcome = log.read_text(encoding="utf-8") if log.exists() else f"{FAULT}{reason or 'the process died'}"
        written = sorted(str(path.relative_to(folder)) for path in set(folder.rglob("*")) - before)
        if outcome.startswith("refused") and written:
            return f"{FAULT}refused after {', '.join(written[:3])} was written: {outcome}"
        return outcome

    def _main(self, program: str, overrides: Sequence[str]) -> Callable[[Composed], object]:
        if program != "compare":
            return self._mains[program]  # type: ignore[return-value]
        compare = importlib.import_module("nmt.compare")
        compare.run_jobs = start_no_job  # type: ignore[attr-defined]
        return partial(compare.compare, children=split_arguments(overrides)[1], command="nmt.compare")

    def command_outcome(self, pair: Pair) -> str:
        """The same as a user types it."""
        overrides = CONFIGURATIONS[pair.program][pair.configuration].split()
        override = f"{pair.key}={shown(pair.value)}"
        prefix = "" if pair.program == "compare" else "++"
        command = [sys.executable, "-m", f"nmt.{pair.program}", *overrides, prefix + override]
        with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
            shutil.copytree(self.template, folder, dirs_exist_ok=True)
            done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        errors = [line for line in done.stderr.split("\n") if line.startswith("error: ")]
        if done.returncode == 0 and not errors and "Traceback" not in done.stderr:
            return "accepted"
        is_clear = done.returncode in (1, 2) and len(errors) == 1 and "Traceback" not in done.stderr
        is_clear = is_clear and "a fault of the program" not in errors[0]
        return f"refused: {errors[0]}" if is_clear else f"{FAULT}{' '.join(command[1:])}: {done.stderr[-600:]}"


class StartsJobs(UserError):
    """What a comparison is stopped by where its settings are accepted and there is something to train or evaluate."""


def start_no_job(*_: Any, **__: Any) -> None:
    raise StartsJobs


def error_outcome(error: BaseException, program: str) -> str:
    if isinstance(error, StartsJobs):
        return "accepted"
    if isinstance(error, UserError | HydraException | OmegaConfBaseException | OSError):
        line = error_line(error, program)
        return f"refused: {line}" if "\n" not in line else f"{FAULT}more than one line: {line}"
    where = traceback.extract_tb(error.__traceback__)[-1]
    return f"{FAULT}{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"


def run_here(main: Callable[[], object], program: str, folder: Path, log: Path) -> None:
    """In the child: the program, with nothing on standard input; its outcome goes into a file."""
    outcome = f"{FAULT}no outcome"
    try:
        os.chdir(folder)
        for number, flags in enumerate((os.O_RDONLY, os.O_WRONLY, os.O_WRONLY)):
            os.dup2(os.open(os.devnull, flags), number)
        main()
        outcome = "accepted"
    except BaseException as error:
        outcome = error_outcome(error, program)
    finally:
        log.write_text(outcome.replace(f"{folder}/", ""), encoding="utf-8")
        os._exit(0)


def is_value(value: Any) -> bool:
    return any(value is one or (type(value) is type(one) and value == one) for one in VALUES)


def wait_for(child: int, cpu_seconds: float) -> str:
    """The reason for which the child was stopped; empty where it ended by itself."""
    started, reason, process = time.monotonic(), "", psutil.Process(child)
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if not reason:
            times, memory = process.cpu_times(), process.memory_info().rss
            used = times.user + times.system + times.children_user + times.children_system
            if memory > MEMORY:
                reason = f"it took more than {MEMORY / 2**30:.0f} GiB of memory"
            elif used > cpu_seconds or time.monotonic() - started > WALL_SECONDS:
                reason = TOO_LONG
            if reason:
                os.killpg(child, signal.SIGKILL)
        time.sleep(0.01)
    return reason


# ---- the tables


def name_in_table(pair: Pair) -> str:
    return pair.key + (f" ({pair.owner.rpartition('.')[2]})" if pair.owner else "")


def write_tables(outcomes: Sequence[tuple[Pair, str]], folder: Path) -> None:
    """settings.json: each setting with its outcomes, and the values that have each; settings.md: what is accepted.

    Programs that were not tried this time keep their part.
    """
    file = folder / "settings.json"
    table: dict[str, dict[str, dict[str, list[str]]]] = json.loads(file.read_text("utf-8")) if file.exists() else {}
    for program in {pair.program for pair, _ in outcomes}:
        table[program] = {}
    for pair, outcome in outcomes:
        message = outcome.replace(f"{pair.key}={shown(pair.value)}", f"{pair.key}=VALUE")
        message = re.sub(r"has [\d,]+ GiB", "has N GiB", message)  # of this machine
        values = table[pair.program].setdefault(name_in_table(pair), {}).setdefault(message, [])
        values += [value for value in [shown(pair.value) or QUOTES] if value not in values]
    table = {program: table[program] for program in PROGRAMS if program in table}
    folder.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (folder / "settings.md").write_text("\n".join(accepted_page(table)) + "\n", encoding="utf-8")


def accepted_page(table: Mapping[str, Mapping[str, Mapping[str, Sequence[str]]]]) -> list[str]:
    lines = [
        "# What is accepted",
        "",
        f"Every setting of every program was given each of {', '.join(shown(value) or QUOTES for value in VALUES)},",
        "and the least and the greatest number that its declaration allows. These were accepted and ran (the greatest",
        f"numbers for {BOUND_SECONDS} s); all others were refused in one line before anything was written.",
        "Made by `python -m scripts.soak settings`; settings.json has every refusal.",
    ]
    for program, settings in table.items():
        accepted = {setting: messages["accepted"] for setting, messages in settings.items() if "accepted" in messages}
        lines += ["", f"## {program}", "", "| setting | accepted |", "|---|---|"]
        lines += [f"| `{setting}` | {', '.join(values)} |" for setting, values in accepted.items()]
        lines += ["", f"None of the values suits the other {len(settings) - len(accepted)} settings."]
    return lines


if __name__ == "__main__":
    sys.exit(main())
