"""The shape of the source: who may import whom, how long a file may be, what `import nmt` may cost."""

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "nmt"
SOURCES = sorted(PACKAGE.rglob("*.py"))

MAY_IMPORT = {
    "data": set(),
    "models": set(),
    "training": {"data"},
    "decoding": {"data", "models"},
    "evaluation": {"data", "decoding"},
    "study": {"data", "models", "training", "decoding", "evaluation"},
}
MAY_IMPORT["benchmarks"] = set(MAY_IMPORT) | {"run"}
ROOMS = set(MAY_IMPORT)
OPEN_TO_ALL = {"errors", "files", "progress"}
PROGRAMS = {"train", "evaluate", "translate", "compare", "prepare", "benchmark", "__main__"}
DOORS = PROGRAMS | {
    "cli",
    "run",
    "corpora",
    "test_sets",
    "experiments",
}  # where configuration is known; below them there are plain values


def room_of(path: Path) -> str:
    """nmt/data/text.py -> data; nmt/cli.py -> cli; nmt/__init__.py -> __init__."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported(path: Path) -> Iterator[str]:
    """The full name of each module that a file imports, wherever in the file it does so.

    `from nmt import data` gives nmt and nmt.data, for either may be meant.
    """
    package = [*path.relative_to(ROOT).parent.parts]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*start, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def parts_of_nmt(path: Path) -> set[str]:
    """The rooms, doors and programs of nmt that a file imports."""
    names = [name.split(".") for name in imported(path)]
    return {name[1] for name in names if name[0] == "nmt" and len(name) > 1}


IN_NMT = {room_of(path) for path in SOURCES}


def each(paths: list[Path]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("path", paths, ids=lambda path: path.relative_to(ROOT).as_posix())


@each([path for path in SOURCES if room_of(path) in ROOMS])
def test_a_room_imports_only_the_rooms_its_arrows_allow(path: Path) -> None:
    room = room_of(path)
    assert parts_of_nmt(path) & IN_NMT <= MAY_IMPORT[room] | {room} | OPEN_TO_ALL


@each(SOURCES)
def test_nothing_imports_a_program(path: Path) -> None:
    assert not parts_of_nmt(path) & PROGRAMS - {room_of(path)}


@each([path for path in SOURCES if room_of(path) not in DOORS])
def test_hydra_stops_at_the_door(path: Path) -> None:
    tops = {name.split(".")[0] for name in imported(path)}
    assert not tops & {"hydra", "omegaconf"}


@each(SOURCES)
def test_a_file_has_fewer_than_300_lines(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").split("\n")) <= 300


@each(SOURCES)
def test_a_function_fits_on_a_screen(path: Path) -> None:
    functions = [
        node
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    lengths = {node.name: node.end_lineno - node.lineno + 1 for node in functions if node.end_lineno}
    assert {name: length for name, length in lengths.items() if length > 60} == {}


@each(SOURCES)
def test_lines_are_never_split_where_unicode_would(path: Path) -> None:
    """str.splitlines breaks at U+0085, U+2028, form feed and more: one side of a corpus gains lines."""
    lines = path.read_text(encoding="utf-8").split("\n")
    assert [number for number, line in enumerate(lines, start=1) if "splitlines(" in line] == []


def test_no_room_has_a_cupboard_for_everything() -> None:
    assert not {path.stem for path in SOURCES} & {"utils", "util", "helpers", "common", "misc"}


def test_every_library_that_the_package_imports_is_a_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    required = {requirement.split(">=")[0].replace("-", "_") for requirement in project["dependencies"]}
    tops = {name.split(".")[0] for path in SOURCES for name in imported(path)}
    comes_as = {"hydra": "hydra_core", "omegaconf": "hydra_core", "yaml": "pyyaml", "vl_convert": "vl_convert_python"}
    libraries = {comes_as.get(top, top) for top in tops - set(sys.stdlib_module_names) - {"nmt"}}
    assert libraries <= required


def loaded_after(statement: str) -> set[str]:
    """The top-level packages in memory after a statement, in an interpreter of its own."""
    code = f"import sys; {statement}; print(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    return set(done.stdout.split())


def test_importing_nmt_costs_no_library() -> None:
    heavy = {"torch", "numpy", "hydra", "omegaconf", "sentencepiece", "wandb", "datasets", "matplotlib"}
    assert not loaded_after("import nmt") & heavy


def test_translating_pays_for_no_tracker_no_plots_and_no_datasets() -> None:
    assert not loaded_after("import nmt.translate, nmt.run") & {"wandb", "datasets", "matplotlib", "altair"}


@pytest.mark.parametrize("path", ["nmt/data/corpus.py", "conf/data/grammar.yaml", "outputs/reference/a/b.json"])
def test_git_sees_sources_and_reference_results(path: str) -> None:
    assert not ignored(path)


@pytest.mark.parametrize("path", ["data/wmt14/train.en", "outputs/grammar/rnn/best.safetensors", ".venv/x"])
def test_git_ignores_what_programs_make(path: str) -> None:
    assert ignored(path)


def ignored(path: str) -> bool:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    command = ["git", "check-ignore", "--no-index", "--quiet", path]
    return subprocess.run(command, cwd=ROOT).returncode == 0
