"""The runs that scripts/soak_hostile.py has every program open: a trained run, changed as a stranger might."""

import dataclasses
import gzip
import json
import os
import pickle
import re
import shutil
import struct
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import yaml

RUN, OUTSIDE, CANARY = "stranger", "outside", "canary"
SECRET = "sesame-of-the-cellar"  # a text outside, which no program may show
CONTROL = re.compile("[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f]")
CODE = f"touch ../{OUTSIDE}/{CANARY}"  # from the folder in which programs are started
DEEP, SPARSE = 3_000, 8 << 30
ACTING = {  # names that act in a terminal, in LaTeX, in a spreadsheet, in a page
    "an escape": "\x1b]0;owned\x07\x1b[2Jname",
    "a newline": "name\nerror: owned",
    "LaTeX": r"\input{/etc/passwd}\immediate\write18{touch x}",
    "a formula": '=cmd|" /c calc"!A1',
    "a tag": "<img src=x onerror=alert(1)>",
    "a surrogate": "name\udcff",
}
TEXT_FILES = (
    "config.yaml", "data.json", "status.json", "metrics.jsonl", "evaluation/test.json", "evaluation/test.hyp.txt",
    "evaluation/test.alignment.json", "wandb-id.txt",
)  # fmt: skip
BINARY_FILES = (
    "source.model", "target.model", "best.safetensors", "last.safetensors", "averaged.safetensors", "resume.pt",
    "resume.previous.pt", "kept/update-0000002.safetensors", "checkpoints/4.safetensors",
)  # fmt: skip
READ_CONFIG = ("translate", "evaluate", "compare", "resume")
USERS = ("translate", "evaluate", "resume", "init_from", "nmt.load")  # of weights and pieces
READERS = {  # the programs for which a file means something
    "config.yaml": READ_CONFIG,
    "data.json": ("translate", "evaluate", "compare", "resume"),
    "status.json": ("compare", "resume"),
    "metrics.jsonl": ("compare", "resume"),
    "wandb-id.txt": ("resume",),
    **dict.fromkeys(TEXT_FILES[4:7], ("evaluate", "compare")),
    "source.model": (*USERS, "compare"),
    "target.model": USERS,
    "best.safetensors": (*USERS, "compare, pictures"),
    "kept/update-0000002.safetensors": ("translate kept", "compare"),
    **dict.fromkeys(("last.safetensors", "averaged.safetensors", ".lock"), ("translate", "resume")),
    **dict.fromkeys(("resume.pt", "resume.previous.pt", "checkpoints/4.safetensors"), ("translate", "resume")),
}
WEIGHTS = ("best.safetensors", "kept/update-0000002.safetensors")


@dataclass(frozen=True)
class Variation:
    """A change of a run directory, the programs that open it (all, where none is named), and those typed as commands."""

    name: str
    change: Callable[[Path], object]
    programs: tuple[str, ...] = ()
    typed: tuple[str, ...] = ()
    run_name: str = RUN


def only(programs: tuple[str, ...], variation: Variation) -> Variation:
    return variation if variation.programs else dataclasses.replace(variation, programs=programs)


class Evil:
    """What a pickle makes of itself where it is loaded."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (CODE,)


def config(run: Path, **changes: Any) -> None:
    """Settings of config.yaml replaced; `model__layers=2` is model.layers."""
    settings = yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))
    for key, value in changes.items():
        *sections, last = key.split("__") if not key.startswith("_") else [key]
        section = settings
        for name in sections:
            section = section[name]
        section[last] = value
    (run / "config.yaml").write_text(yaml.safe_dump(settings, allow_unicode=True), encoding="utf-8")


def config_with(**changes: Any) -> Callable[[Path], object]:
    return lambda run: config(run, **changes)


def evil_pickle(run: Path, name: str = "evil.pt") -> None:
    replace(run, name).write_bytes(pickle.dumps(Evil()))


def evil_module(run: Path) -> None:
    code = f"import os\nfrom torch import nn\nos.system({CODE!r})\n\n\nclass Model(nn.Module):\n    pass\n"
    (run / "evil.py").write_text(code, encoding="utf-8")


def replace(run: Path, name: str) -> Path:
    """The path of a file that is no longer there."""
    path = run / name
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    return path


def json_with(name: str, change: Callable[[dict[str, Any]], object]) -> Callable[[Path], object]:
    def apply(run: Path) -> None:
        value = json.loads((run / name).read_text(encoding="utf-8"))
        change(value)
        (run / name).write_text(json.dumps(value), encoding="utf-8")

    return apply


def both(*changes: Callable[[Path], object]) -> Callable[[Path], object]:
    return lambda run: [change(run) for change in changes]


def as_text(name: str, text: str | bytes) -> Callable[[Path], object]:
    content = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    return lambda run: replace(run, name).write_bytes(content)


def as_sparse(name: str) -> Callable[[Path], object]:
    def apply(run: Path) -> None:
        path = replace(run, name)
        path.touch()
        os.truncate(path, SPARSE)

    return apply


def as_link(name: str, to: str) -> Callable[[Path], object]:
    return lambda run: replace(run, name).symlink_to(to)


def as_folder(name: str) -> Callable[[Path], object]:
    return lambda run: replace(run, name).mkdir()


def folder_as_link(name: str, to: str) -> Callable[[Path], object]:
    def apply(run: Path) -> None:
        shutil.rmtree(run / name, ignore_errors=True)
        (run / name).symlink_to(to)

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


def nested(text: str) -> str:
    return text * DEEP


def wide_json(entries: int) -> str:
    return '{"extended": [' + "[]," * entries + "[]]}"


ALIAS_BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
)


def code_in_config() -> Iterator[Variation]:
    """faults.md's table, and the same in other places."""
    call = {"_target_": "os.system", "command": CODE}
    load = {"_target_": "torch.load", "f": f"{RUN}/evil.pt", "weights_only": False}
    oc_create = f'${{oc.create:"{{_target_: torch.load, f: {RUN}/evil.pt, weights_only: false}}"}}'
    text = {"_target_": "pathlib.Path.write_text", "_args_": [f"../{OUTSIDE}/{CANARY}", "x"]}
    mix = {"_target_": "nmt.data.mixed_corpus.MixedCorpus", "source": "en", "target": "fr"}
    yield Variation("H1", both(evil_pickle, config_with(model__attention=oc_create)), typed=("translate",))
    yield Variation("H2", both(evil_module, config_with(model___target_=f"{RUN}.evil.Model")), typed=("translate",))
    yield Variation("H3, H4", both(evil_pickle, config_with(data=load)), typed=("evaluate files", "compare"))
    yield Variation("H5", config_with(data=text), typed=("evaluate",))
    yield Variation("H6", config_with(data=call), typed=("evaluate",))
    for section in ("model", "model__attention", "optimizer", "schedule", "tracker", "training", "tokenizer", "seed"):
        yield Variation(f"{section.replace('__', '.')} calls os.system", config_with(**{section: call}))
    yield Variation("optimizer with _args_", config_with(optimizer={"_target_": "os.system", "_args_": [CODE]}))
    yield Variation("a call in a list", config_with(model__dropout=[call]))
    yield Variation("a call in a part of a corpus", config_with(data={**mix, "parts": {"a": call}}))
    yield Variation("_recursive_ and _partial_", config_with(model___recursive_=False, model___partial_=False))
    yield Variation("the configuration itself is a call", config_with(_target_="os.system", command=CODE))
    yield Variation("a path through this package", config_with(model___target_="nmt.files.os.system"))
    yield Variation("a class of torch", config_with(model={"_target_": "torch.nn.Sequential", "_args_": [call]}))
    yield Variation("a Python tag", as_text("config.yaml", f"!!python/object/apply:os.system ['{CODE}']\n"))
    yield Variation("hydra's own section", config_with(hydra={"callbacks": {"a": call}}))
    yield Variation("hydra's defaults", config_with(defaults=[{"override hydra/launcher": "evil"}]))


def config_as_data() -> Iterator[Variation]:
    corpus = {"_target_": "nmt.data.text.TextCorpus", "train_src": "b.en", "train_tgt": "b.fr"}
    secret = f"../{OUTSIDE}/secret.txt"
    yield Variation("${oc.env:HOME}", config_with(name="${oc.env:HOME}"), typed=("translate",))
    yield Variation("an alias bomb", as_text("config.yaml", ALIAS_BOMB), typed=("translate",))
    yield Variation("ten million layers", config_with(model__encoder_layers=10**7))
    yield Variation("an embedding of 480 GB", config_with(model__embedding_size=4 * 10**8), typed=("translate",))
    yield Variation("a billion pieces", config_with(batching__max_pieces=10**9))
    yield Variation("nested blocks", as_text("config.yaml", "".join(f"{' ' * n}a:\n" for n in range(DEEP))))
    yield Variation("nested quotes", as_text("config.yaml", "? " * DEEP))
    yield Variation("two documents", as_text("config.yaml", "a: 1\n---\nb: 2\n"))
    yield Variation("a key that is a list", as_text("config.yaml", "? [a, b]\n: 1\n"))
    yield Variation("a date for a name", as_text("config.yaml", "name: 2026-01-01\nseed: !!binary aGk=\n"))
    yield Variation("a seed that is a list", config_with(seed=[1]))
    yield Variation("a name of a megabyte", config_with(name="n" * (1 << 20)))
    yield Variation("the test text lies outside", config_with(data={**corpus, "test_src": secret, "test_tgt": secret}))
    hub = {"_target_": "nmt.data.hub.HubCorpus", "path": f"../{OUTSIDE}", "source": "en", "target": "fr"}
    yield Variation("the data set lies outside", config_with(data=hub))
    yield Variation("the data set has code", config_with(data={**hub, "path": "stranger/evil"}))
    yield Variation(
        "a part's text lies outside",
        config_with(
            data={
                "_target_": "nmt.data.mixed_corpus.MixedCorpus",
                "parts": {"a": {"_target_": corpus["_target_"], "train_src": secret, "train_tgt": secret}},
            }
        ),
    )
    for what, name in ACTING.items():
        yield Variation(f"a name with {what}", config_with(name=name.encode("utf-8", "replace").decode()))
        yield Variation(
            f"a test set with {what}", config_with(evaluate={"test": name.encode("utf-8", "replace").decode()})
        )


def every_file() -> Iterator[Variation]:
    """Each file of a run replaced by each kind of thing that is no such file."""
    for name in (*TEXT_FILES, *BINARY_FILES, ".lock"):
        users = READERS[name]
        yield Variation(f"{name}: a pickle with code", partial(evil_pickle, name=name), users)
        out = f"{'../' * (2 + name.count('/'))}{OUTSIDE}/secret.txt"
        yield Variation(f"{name}: a link out", as_link(name, out), users[:2])
        yield Variation(f"{name}: 8 GiB", as_sparse(name), users)
        yield Variation(f"{name}: a pipe", lambda run, name=name: os.mkfifo(replace(run, name)), users[-2:])  # type: ignore[misc]
        yield Variation(f"{name}: a folder", as_folder(name), users[:2])
        yield Variation(f"{name}: empty", as_text(name, ""), users)
    for name in TEXT_FILES:
        yield Variation(f"{name}: a link to nowhere", as_link(name, "../../nowhere"), READERS[name][:1])
        yield Variation(f"{name}: a link to itself", as_link(name, Path(name).name), READERS[name][:1])
        yield Variation(f"{name}: {DEEP:,} lists", as_text(name, nested("[")), READERS[name])
        yield Variation(f"{name}: {DEEP:,} objects", as_text(name, nested('{"a":')), READERS[name])
        yield Variation(f"{name}: Latin-1", as_text(name, "name: é".encode("latin-1")), READERS[name])
        for text in ("[1, 2]", '"text"', "NaN", "{}", '{"a": 1e999}'):
            yield Variation(f"{name}: {text[:20]}", as_text(name, text), READERS[name])
    for name in ("evaluation", "kept", "checkpoints"):
        yield Variation(f"{name}: a folder outside", folder_as_link(name, f"../../{OUTSIDE}/folder"))
        yield Variation(f"{name}: a file", lambda run, name=name: (shutil.rmtree(run / name), (run / name).touch()))  # type: ignore[misc]
    yield Variation("a link to a folder outside", lambda run: (run / "more").symlink_to(f"../../{OUTSIDE}"))
    yield Variation("many files", lambda run: [(run / str(n)).touch() for n in range(20_100)], ("translate", "resume"))


def weights() -> Iterator[Variation]:
    yield Variation("int8", header(first_entry(dtype="I8")), typed=("translate",))
    yield Variation("a shape of 480 GB", header(first_entry(shape=[4 * 10**8, 300])))
    yield Variation("a shape of text", header(first_entry(shape="x")))
    yield Variation("offsets outside", header(first_entry(data_offsets=[0, 1 << 50])))
    yield Variation("offsets that are text", header(first_entry(data_offsets="x")))
    yield Variation("entries that are no objects", header(lambda entries: entries.update(extra=[1])))
    yield Variation("a tensor's name acts", header(lambda entries: entries.update({ACTING["an escape"]: {}})))
    yield Variation("a deep header", header(lambda entries: nested("[").encode()))
    yield Variation("an update of 5,000 digits", header(lambda e: e.update(__metadata__={"update": "9" * 5000})))
    yield Variation("metadata that is a list", header(lambda e: e.update(__metadata__=[1])))
    yield Variation("weights without a number", nan_weights)
    for name in WEIGHTS:
        yield Variation(f"{name}: a header of 2^63 bytes", as_text(name, struct.pack("<Q", 1 << 63) + b"{}"))
        yield Variation(f"{name}: cut", lambda run, name=name: os.truncate(run / name, 500))  # type: ignore[misc]
    yield Variation(
        "kept: other names",
        lambda run: (run / "kept/update-0000002.safetensors").rename(run / "kept/update-x.safetensors"),
    )
    averaged = "checkpoints/4.safetensors"
    yield Variation(f"{averaged}: int8", header(first_entry(dtype="I8"), averaged), ("resume",))
    yield Variation(
        f"{averaged}: other tensors",
        lambda run: shutil.copy(run / "best.safetensors", run / "checkpoints/2.safetensors"),
    )


def resume_states() -> Iterator[Variation]:
    only = ("resume",)
    yield Variation("resume.pt: 2 GiB packed", packed_state)
    yield Variation("resume.pt: a list", torch_state([1]), only)
    yield Variation("resume.pt: nothing in it", torch_state({}), only)
    for key in ("progress", "loss_average", "model", "optimizer", "random", "files"):
        yield Variation(f"resume.pt: {key} is text", torch_state(lambda state, key=key: {**state, key: "x"}), only)
        yield Variation(
            f"resume.pt: no {key}", torch_state(lambda s, key=key: {k: v for k, v in s.items() if k != key}), only
        )
    for name, value in (("update", "x"), ("update", 1e300), ("seconds", float("nan")), ("epoch", -1), ("batch", 10**9), ("checkpoints", ["../../x"]), ("checkpoints", 1), ("best", "x")):  # fmt: skip
        change = lambda state, name=name, value=value: {**state, "progress": {**state["progress"], name: value}}  # noqa: E731
        yield Variation(f"resume.pt: {name} is {value}", torch_state(change), only)
    evil = {"config.yaml": f"!!python/object/apply:os.system ['{CODE}']".encode(), "../../outside/canary": b"x"}
    yield Variation(
        "resume.pt: files with code",
        both(torch_state(lambda s: {**s, "files": evil}), as_text("config.yaml", "")),
        only,
    )


def records() -> Iterator[Variation]:
    """What data.json, status.json and evaluations say."""
    evaluation, status, data = "evaluation/test.json", "status.json", "data.json"
    wrong: Sequence[Any] = ("x", [1], {"a": 1}, None, -1, 10**400)
    for value in wrong:
        for file, keys in (
            (evaluation, ("system", "run", "seed", "updates", "parameters", "search", "capped", "warnings", "test", "split", "seconds", "hypotheses_sha256")),
            (status, ("state", "updates", "target_pieces", "seconds", "cpu_seconds", "extended", "parameters", "budget", "record")),
            (data, ("longest_source", "prepared", "identity", "train", "source_language", "target_language", "corpus", "name", "test")),
        ):  # fmt: skip
            kind = "10^400" if value == 10**400 else json.dumps(value)
            change = lambda stored, keys=keys, value=value: stored.update(dict.fromkeys(keys, value))  # noqa: E731
            programs = READERS[file]
            yield Variation(f"{file}: all is {kind}", json_with(file, change), programs)
            for n, key in enumerate(keys):
                if (wrong.index(value) - n) % len(wrong) == 0:  # each with one of them
                    yield Variation(
                        f"{file}: {key} is {kind}",
                        json_with(file, lambda stored, key=key, value=value: stored.update({key: value})),  # type: ignore[misc]
                        programs,
                    )
    for what, name in ACTING.items():
        yield Variation(
            f"an evaluation of a system with {what}",
            json_with(evaluation, lambda s, n=name: s.update(system=n, run=n)),
            ("evaluate", "compare, pictures"),
        )  # type: ignore[misc]
        yield Variation(
            f"a warning with {what}",
            json_with(evaluation, lambda s, n=name: s.update(warnings=[n])),
            ("compare, pictures",),
        )  # type: ignore[misc]
        yield Variation(
            f"a corpus with {what}",
            json_with(data, lambda s, n=name: s.update(name=n, corpus={"corpus": n}, source_language=n)),
            ("evaluate files", "compare"),
        )  # type: ignore[misc]
        names = ("translate", "evaluate", "compare", "resume", "nmt.load")
        yield Variation(f"a run called by {what}", lambda run: None, names, run_name=name.replace("/", "-"))
    yield Variation("prepared text outside", json_with(data, lambda s: s.update(prepared=f"../../../{OUTSIDE}")))
    yield Variation("lines packed to 2.5 GiB", compressed_hypotheses(b"\n"))
    yield Variation("a line packed to 2.5 GiB", compressed_hypotheses(b"a"))
    yield Variation("status.json: 60 MB of lists", as_text(status, wide_json(20_000_000)))
    yield Variation("metrics.jsonl: 50 MB of lists", as_text("metrics.jsonl", wide_json(16_000_000)))
    yield Variation(
        "metrics.jsonl: wrong kinds",
        as_text(
            "metrics.jsonl",
            '{"update": "x"}\n{"update": 1e999, "valid/bleu": "x"}\n{"update": 1, "seconds": [1], "target_pieces": "x", "valid/bleu": {}}\n',
        ),
    )
    yield Variation("metrics.jsonl without status.json: wrong kinds", both(
        as_text("metrics.jsonl", '{"update": 1, "seconds": [1], "target_pieces": "x", "valid/bleu": "y"}\n'), lambda run: replace(run, status)))  # fmt: skip
    yield Variation(
        "alignment.json: wrong kinds", as_text("evaluation/test.alignment.json", '{"alignment": [{"by_length": "x"}]}')
    )
    yield Variation("alignment.json: text", as_text("evaluation/test.alignment.json", '{"alignment": "x"}'))


VARIATIONS = [
    *code_in_config(),
    *(only(READ_CONFIG, one) for one in config_as_data()),
    *every_file(),
    *(only(USERS, one) for one in weights()),
    *resume_states(),
    *records(),
]
