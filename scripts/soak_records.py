"""What scripts/soak_hostile.py changes in the weights, the resume state and the records of a run."""

import gzip
import json
import os
import struct
import zipfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from scripts.soak_strangers import (
    ACTING,
    CODE,
    OUTSIDE,
    READERS,
    USERS,
    Variation,
    as_text,
    both,
    code_in_config,
    config_as_data,
    every_file,
    nested,
    replace,
)

WEIGHTS = ("best.safetensors", "kept/update-0000002.safetensors")
KEPT, AVERAGED = "kept/update-0000002.safetensors", "checkpoints/4.safetensors"
EVALUATION, STATUS, DATA, METRICS = "evaluation/test.json", "status.json", "data.json", "metrics.jsonl"
ALIGNMENT = "evaluation/test.alignment.json"
KEYS = {
    EVALUATION: "system run seed updates parameters search capped warnings test split seconds hypotheses_sha256",
    STATUS: "state updates target_pieces seconds cpu_seconds extended parameters budget provenance",
    DATA: "longest_source prepared identity train source_language target_language corpus name test",
}
WRONG: tuple[Any, ...] = ("x", [1], {"a": 1}, None, -1, 10**400)
RESUME = ("resume",)


def json_with(name: str, change: Callable[[dict[str, Any]], object]) -> Callable[[Path], object]:
    def apply(run: Path) -> None:
        value = json.loads((run / name).read_text(encoding="utf-8"))
        change(value)
        (run / name).write_text(json.dumps(value), encoding="utf-8")

    return apply


@cache
def bomb(unit: bytes = b"\n") -> bytes:
    """2.5 GiB as gzip: 40 parts, each of which is 64 MiB."""
    return gzip.compress(unit * (1 << 26), compresslevel=1) * 40


def compressed_hypotheses(unit: bytes) -> Callable[[Path], object]:
    def apply(run: Path) -> None:
        replace(run, "evaluation/test.hyp.txt")
        (run / "evaluation/test.hyp.txt.gz").write_bytes(bomb(unit))

    return apply


def packed_state(run: Path) -> None:
    """A resume state whose records are compressed: 2 GiB in a file of 9 MB."""
    with zipfile.ZipFile(replace(run, "resume.pt"), "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        with archive.open("archive/data.pkl", "w", force_zip64=True) as entry:
            for _ in range(32):
                entry.write(bytes(1 << 26))
        archive.writestr("archive/version", "3\n")


def torch_state(value: Any) -> Callable[[Path], object]:
    def apply(run: Path) -> None:
        import torch

        state = torch.load(run / "resume.pt", weights_only=True)
        torch.save(value(state) if callable(value) else value, run / "resume.pt")

    return apply


def header(change: Callable[[dict[str, Any]], Any], name: str = "best.safetensors") -> Callable[[Path], object]:
    """A weights file with another header."""

    def apply(run: Path) -> None:
        content = (run / name).read_bytes()
        length = struct.unpack("<Q", content[:8])[0]
        entries = json.loads(content[8 : 8 + length])
        changed = change(entries)
        text = changed if isinstance(changed, bytes) else json.dumps(entries).encode()
        (run / name).write_bytes(struct.pack("<Q", len(text)) + text + content[8 + length :])

    return apply


def first_entry(**values: Any) -> Callable[[dict[str, Any]], object]:
    return lambda entries: entries[next(name for name in entries if name != "__metadata__")].update(values)


def nan_weights(run: Path) -> None:
    import torch
    from safetensors.torch import load_file, save_file

    weights = load_file(run / "best.safetensors")
    nan = {name: torch.full_like(tensor, torch.nan) for name, tensor in weights.items()}
    save_file(nan, run / "best.safetensors", metadata={"update": "4"})


def wide_json(entries: int) -> str:
    return '{"extended": [' + "[]," * entries + "[]]}"


def weights() -> Iterator[Variation]:
    for name, change in {
        "int8": first_entry(dtype="I8"),
        "a shape of 480 GB": first_entry(shape=[4 * 10**8, 300]),
        "a shape of text": first_entry(shape="x"),
        "offsets outside": first_entry(data_offsets=[0, 1 << 50]),
        "offsets that are text": first_entry(data_offsets="x"),
        "entries that are no objects": lambda entries: entries.update(extra=[1]),
        "a tensor's name acts": lambda entries: entries.update({ACTING["an escape"]: {}}),
        "a deep header": lambda entries: nested("[").encode(),
        "an update of 5,000 digits": lambda entries: entries.update(__metadata__={"update": "9" * 5000}),
        "metadata that is a list": lambda entries: entries.update(__metadata__=[1]),
    }.items():
        yield Variation(name, header(change), USERS, ("translate",) if name == "int8" else ())
    yield Variation("weights without a number", nan_weights, USERS)
    for name in ("best.safetensors", KEPT):
        yield Variation(
            f"{name}: a header of 2^63 bytes", as_text(name, struct.pack("<Q", 1 << 63) + b"{}"), READERS[name]
        )
        yield Variation(f"{name}: cut", lambda run, name=name: os.truncate(run / name, 500), READERS[name])  # type: ignore[misc]
    other = "kept/update-x.safetensors"
    yield Variation("kept: other names", lambda run: (run / KEPT).rename(run / other), ("compare", "resume"))
    yield Variation(f"{AVERAGED}: int8", header(first_entry(dtype="I8"), AVERAGED), RESUME)
    yield Variation(f"{AVERAGED}: without a number", nan_weights, RESUME)


def resume_states() -> Iterator[Variation]:
    yield Variation("resume.pt: 2 GiB packed", packed_state, RESUME)
    yield Variation("resume.pt: a list", torch_state(lambda state: [1]), RESUME)
    yield Variation("resume.pt: nothing in it", torch_state(lambda state: {}), RESUME)
    for key in ("progress", "loss_average", "model", "optimizer", "random", "files"):
        yield Variation(f"resume.pt: {key} is text", torch_state(changed(**{key: "x"})), RESUME)
        yield Variation(f"resume.pt: no {key}", torch_state(lambda state, key=key: state.pop(key) and state), RESUME)  # type: ignore[misc]
    for key, value in (
        ("update", "x"),
        ("update", 1e300),
        ("update", -1),
        ("seconds", float("nan")),
        ("epoch", -1),
        ("epoch", 10**400),
        ("batch", 10**9),
        ("checkpoints", ["../../x"]),
        ("checkpoints", 1),
        ("best", "x"),
    ):
        progress = lambda state, key=key, value=value: {**state["progress"], key: value}  # noqa: E731
        change = torch_state(lambda state, progress=progress: {**state, "progress": progress(state)})  # type: ignore[misc]
        yield Variation(f"resume.pt: {key} is {str(value)[:9]}", change, RESUME)
    evil = {"config.yaml": f"!!python/object/apply:os.system ['{CODE}']".encode(), "../../outside/canary": b"x"}
    for name, files in (("files with code", evil), ("files of another kind", {"config.yaml": 1, "data.json": "x"})):
        yield Variation(
            f"resume.pt: {name}", both(torch_state(changed(files=files)), as_text("config.yaml", "")), RESUME
        )


def changed(**values: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda state: {**state, **values}


def updated(file: str, **values: Any) -> Callable[[Path], object]:
    return json_with(file, lambda stored: stored.update(values))


def records() -> Iterator[Variation]:
    """What data.json, status.json, metrics.jsonl and evaluations say."""
    for number, value in enumerate(WRONG):
        kind = "10^400" if value == 10**400 else json.dumps(value)
        for file, keys in KEYS.items():
            yield Variation(
                f"{file}: all is {kind}", updated(file, **dict.fromkeys(keys.split(), value)), READERS[file]
            )
            for n, key in enumerate(keys.split()):
                if n % len(WRONG) == number:  # each with one of them
                    yield Variation(f"{file}: {key} is {kind}", updated(file, **{key: value}), READERS[file])
    for what, name in ACTING.items():
        opened = ("evaluate", "compare, pictures")
        yield Variation(f"an evaluation of a system with {what}", updated(EVALUATION, system=name, run=name), opened)
        yield Variation(f"a warning with {what}", updated(EVALUATION, warnings=[name]), opened[1:])
        corpus = updated(DATA, name=name, corpus={"corpus": name}, source_language=name)
        yield Variation(f"a corpus with {what}", corpus, ("evaluate files", "compare"))
        everywhere = ("translate", "evaluate", "compare", "resume", "nmt.load")
        yield Variation(f"a run called by {what}", lambda run: None, everywhere, run_name=name.replace("/", "-"))
    yield Variation("prepared text outside", updated(DATA, prepared=f"../../../{OUTSIDE}"), ("evaluate", "resume"))
    evaluated = ("evaluate", "compare")
    yield Variation("lines packed to 2.5 GiB", compressed_hypotheses(b"\n"), evaluated)
    yield Variation("a line packed to 2.5 GiB", compressed_hypotheses(b"a"), evaluated)
    read = ("compare", "resume")
    yield Variation("status.json: 60 MB of lists", as_text(STATUS, wide_json(20_000_000)), read)
    yield Variation("metrics.jsonl: 50 MB of lists", as_text(METRICS, wide_json(16_000_000)), read)
    lines = (
        '{"update": "x"}\n{"update": 1, "seconds": [1], "target_pieces": "x", "valid/bleu": {}}\n{"update": 1e999}\n'
    )
    yield Variation("metrics.jsonl: wrong kinds", as_text(METRICS, lines), read)
    no_status = both(as_text(METRICS, lines), lambda run: replace(run, STATUS))
    yield Variation("metrics.jsonl without status.json: wrong kinds", no_status, read)
    for alignment in ('{"alignment": [{"by_length": "x"}]}', '{"alignment": "x"}', '{"alignment": [1, {}]}'):
        yield Variation(f"{ALIGNMENT}: {alignment}", as_text(ALIGNMENT, alignment), evaluated)


VARIATIONS = [*code_in_config(), *config_as_data(), *every_file(), *weights(), *resume_states(), *records()]
