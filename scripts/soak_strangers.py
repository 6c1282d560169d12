"""The runs that scripts/soak_hostile.py has every program open: a trained run, changed as a stranger might."""

import os
import pickle
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from dataclasses import replace as replace_fields
from functools import partial
from pathlib import Path
from typing import Any

import yaml

CONF = Path(__file__).resolve().parent.parent / "conf"
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
    """A change of a run directory, the programs that open it (all, if none is named), and those typed as commands."""

    name: str
    change: Callable[[Path], object]
    programs: tuple[str, ...] = ()
    typed: tuple[str, ...] = ()
    run_name: str = RUN


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


def corpus(kind: str, **values: Any) -> dict[str, Any]:
    """The settings of data=KIND, all of them, so that nothing but what is tried is wrong."""
    defaults = yaml.safe_load((CONF / "data" / f"{kind}.yaml").read_text(encoding="utf-8"))["data"]
    return {**defaults, **values}


def evil_data_set(run: Path) -> None:
    (run / "evil").mkdir()
    (run / "evil" / "evil.py").write_text(f"import os\nos.system({CODE!r})\n", encoding="utf-8")


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


def nested(text: str) -> str:
    return text * DEEP


ALIAS_BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
)


def code_in_config() -> Iterator[Variation]:
    """faults.md's table, and the same in other places."""
    call = {"_target_": "os.system", "command": CODE}
    load = {"_target_": "torch.load", "f": f"{RUN}/evil.pt", "weights_only": False}
    oc_create = f'${{oc.create:"{{_target_: torch.load, f: {RUN}/evil.pt, weights_only: false}}"}}'
    text = {"_target_": "pathlib.Path.write_text", "_args_": [f"../{OUTSIDE}/{CANARY}", "x"]}
    mix = corpus("mix", source="en", target="fr")
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
    yield Variation(
        "a call in a part's setting", config_with(data={**mix, "parts": {"a": {**corpus("text"), "train_src": call}}})
    )
    yield Variation("_recursive_ and _partial_", config_with(model___recursive_=False, model___partial_=False))
    yield Variation("the configuration itself is a call", config_with(_target_="os.system", command=CODE))
    yield Variation("a path through this package", config_with(model___target_="nmt.files.os.system"))
    yield Variation("a class of torch", config_with(model={"_target_": "torch.nn.Sequential", "_args_": [call]}))
    yield Variation("a Python tag", as_text("config.yaml", f"!!python/object/apply:os.system ['{CODE}']\n"))
    yield Variation("hydra's own section", config_with(hydra={"callbacks": {"a": call}}))
    yield Variation("hydra's defaults", config_with(defaults=[{"override hydra/launcher": "evil"}]))


def config_as_data() -> Iterator[Variation]:
    for variation in _config_as_data():
        # where the stranger's run comes first, its corpus is the one that a comparison reads
        more = ("compare, pictures",) if "outside" in variation.name else ()
        yield replace_fields(variation, programs=(*READ_CONFIG, *more))


def _config_as_data() -> Iterator[Variation]:
    text = corpus("text", train_src="b.en", train_tgt="b.fr")
    secret = f"../{OUTSIDE}/secret.txt"
    yield Variation("${oc.env:HOME}", config_with(name="${oc.env:HOME}"), typed=("translate",))
    yield Variation("an alias bomb", as_text("config.yaml", ALIAS_BOMB), typed=("translate",))
    yield Variation("ten million layers", config_with(model__layers=10**7))
    yield Variation("an embedding of 480 GB", config_with(model__embedding_size=4 * 10**8), typed=("translate",))
    yield Variation("a billion pieces", config_with(batching__max_pieces=10**9))
    yield Variation("nested blocks", as_text("config.yaml", "".join(f"{' ' * n}a:\n" for n in range(DEEP))))
    yield Variation("nested quotes", as_text("config.yaml", "? " * DEEP))
    yield Variation("two documents", as_text("config.yaml", "a: 1\n---\nb: 2\n"))
    yield Variation("a key that is a list", as_text("config.yaml", "? [a, b]\n: 1\n"))
    yield Variation("a date for a name", as_text("config.yaml", "name: 2026-01-01\nseed: !!binary aGk=\n"))
    yield Variation("a seed that is a list", config_with(seed=[1]))
    yield Variation("a name of a megabyte", config_with(name="n" * (1 << 20)))
    yield Variation("the test text lies outside", config_with(data={**text, "test_src": secret, "test_tgt": secret}))
    yield Variation(
        "one of its references does", config_with(data={**text, "test_src": "3.en", "test_tgt": ["3.fr", secret]})
    )
    yield Variation("it is a table outside", config_with(data={**text, "test_src": f"../{OUTSIDE}/secret.tsv"}))
    hub = corpus("hub", path=f"../{OUTSIDE}/folder", source="en", target="fr")
    yield Variation("the data set lies outside", config_with(data=hub))
    yield Variation("its cache lies outside", config_with(data={**hub, "path": "pairs", "cache_dir": f"../{OUTSIDE}"}))
    yield Variation("the data set has code", both(evil_data_set, config_with(data={**hub, "path": f"{RUN}/evil"})))
    yield Variation(
        "a part's text lies outside",
        config_with(
            data=corpus("mix", source="en", target="fr", parts={"a": {**text, "test_src": secret, "test_tgt": secret}})
        ),
    )
    for what, name in ACTING.items():
        name = name.encode("utf-8", "replace").decode()
        yield Variation(f"a name with {what}", config_with(name=name))
        yield Variation(f"a test set with {what}", config_with(evaluate__test=name))


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
