"""The shape of the source: who may import whom, sizes, names, and what `import nmt` may cost."""

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from nmt.schema import declared_settings
from nmt.settings import PROGRAMS as DECLARED
from tests.models.tiny import build_tiny

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
MAY_IMPORT["benchmarks"] = set(MAY_IMPORT) | {"loading", "provenance"}
ROOMS = set(MAY_IMPORT)
OPEN_TO_ALL = {"errors", "files", "progress", "schema", "settings", "model_settings", "training_settings"}
PROGRAMS = {"train", "evaluate", "translate", "compare", "prepare", "benchmark", "__main__"}
# where configuration is known; below them there are plain values
DOORS = PROGRAMS | {"cli", "cli_help", "run", "loading", "experiments", "self_test"}
MOST_LINES, MOST_FILES = 16_300, 140  # of nmt/

# Names of before the field's words were taken, each with what it was: none may come back in that sense.
OLD_NAMES = {
    # attention
    "Sight", "Spans", "plainly", "Layout", "Padded", "Packed", "around", "so_far", "spread", "Way", "Ways", "ways",
    "teaching", "Look", "Looks", "look", "looks", "back", "leave", "Turn", "turn", "turner", "product_type",
    # recurrent models and search
    "teach", "fed", "unfed", "remember", "carried", "demand_fit", "ballast", "grow", "follow", "end_here",
    "piece_scores", "hopeful", "encoder_end",
    # training, study, data
    "Window", "Observer", "Wanted", "wanted", "Told", "told", "Handed", "handed", "Known", "Out", "Want", "Wish",
}  # fmt: skip
OLD_FILES = {
    "sight", "layout", "choice", "layers", "record", "comparison", "protocol", "views", "variants", "testing", "notes",
    "texts", "sentence", "pictures", "scripts", "screening", "pieces", "heldout", "journal", "named", "selection",
    "plan", "encoded", "making", "store", "checks", "marks", "render", "corpora", "words", "word_pieces",
}  # fmt: skip
OLD_PARAMETERS = (
    r"(^|\.)(around|back|source\.weight|target\.weight|encoder_end|cells\.cells)(\.|$)|\.cells\.\d+\.[A-Z]$"
)


# Where values may be dict[str, Any], by file: elsewhere what passes between functions is a dataclass or a NamedTuple.
UNTYPED = {
    # JSON and YAML as they are read and written
    "files", "run", "stored", "results", "checkpoints", "callbacks", "loop", "evaluate", "evaluation_report",
    "alignment_error", "attention_alignment", "report_files", "figures", "data_card", "corpus_builder",
    "prepared_corpus", "resumable_arrays", "filtering", "benchmarks/__init__", "attention_speed",
    # configurations that Hydra composed or a run stored, before they are declared settings
    "schema", "training_settings", "cli_help", "experiments", "loading", "train", "benchmark", "fairness", "trackers",
    # what identifies a corpus or a version, written as JSON
    "provenance", "corpus", "text", "synthetic", "generator", "mixed_corpus", "hub", "dataset_folder", "test_sets",
}  # fmt: skip


def room_of(path: Path) -> str:
    """nmt/data/text.py -> data; nmt/cli.py -> cli; nmt/__init__.py -> __init__."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(path: Path) -> Iterator[str]:
    """The full name of each module that a file imports, wherever in the file it does so.

    `from nmt import data` gives nmt and nmt.data, for either may be meant.
    """
    package = [*path.relative_to(ROOT).parent.parts]
    for node in ast.walk(tree(path)):
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
def test_a_file_has_at_most_400_lines(path: Path) -> None:
    assert lines_of(path) <= 400


def test_the_package_stays_small() -> None:
    assert sum(map(lines_of, SOURCES)) <= MOST_LINES
    assert len(SOURCES) <= MOST_FILES


def lines_of(path: Path) -> int:
    return path.read_text(encoding="utf-8").count("\n")


def test_no_module_is_a_fragment_of_the_only_one_that_imports_it() -> None:
    """Under 60 lines it belongs into that file. Attention backends are chosen by name, and programs are started."""
    modules = {path: ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in SOURCES}
    importers: dict[str, set[Path]] = {}
    for path in SOURCES:
        for name in imported(path):
            importers.setdefault(name, set()).add(path)
    exempt = {*PROGRAMS, "__init__"}
    fragments = {
        modules[path]: sorted(modules[importer] for importer in importers[modules[path]])
        for path in SOURCES
        if lines_of(path) < 60 and path.stem not in exempt and path.parent.name != "backends"
        if len(importers.get(modules[path], ())) == 1
    }
    assert fragments == {}


@each(SOURCES)
def test_a_function_fits_on_a_screen(path: Path) -> None:
    functions = [node for node in ast.walk(tree(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    lengths = {node.name: node.end_lineno - node.lineno + 1 for node in functions if node.end_lineno}
    assert {name: length for name, length in lengths.items() if length > 60} == {}


def test_no_two_files_share_a_name() -> None:
    stems = Counter(path.stem for path in SOURCES)
    assert {stem for stem, count in stems.items() if count > 1} <= {"__init__", "__main__"}


def test_no_two_public_classes_or_functions_share_a_name() -> None:
    homes: dict[str, list[str]] = {}
    for path in SOURCES:
        for node in tree(path).body:
            if isinstance(node, DEFINITIONS) and not node.name.startswith("_") and node.name != "main":
                homes.setdefault(node.name, []).append(path.relative_to(ROOT).as_posix())
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def identifiers(path: Path) -> Iterator[str]:
    """Whatever a file names or uses by name."""
    for node in ast.walk(tree(path)):
        if isinstance(node, DEFINITIONS):
            yield node.name
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.arg | ast.keyword):
            yield node.arg or ""


@each([path for path in SOURCES if not {path.stem, f"{path.parent.name}/{path.stem}"} & UNTYPED])
def test_values_between_functions_are_typed(path: Path) -> None:
    untyped = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = [node.args.vararg, node.args.kwarg, *node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            annotations = [node.returns, *(argument.annotation for argument in given if argument)]
            texts = [ast.unparse(annotation) for annotation in annotations if annotation]
            untyped += [node.name for text in texts if re.search(r"(dict|Mapping)\[str, Any\]", text)]
    assert untyped == []


@each(SOURCES)
def test_no_old_name_is_left(path: Path) -> None:
    assert set(identifiers(path)) & OLD_NAMES == set()
    assert path.stem not in OLD_FILES


def test_no_setting_has_an_old_name() -> None:
    keys = {one.key for program in DECLARED.values() for one in declared_settings(program)}
    assert {key for key in keys if set(key.split(".")) & OLD_NAMES} == set()


@pytest.mark.parametrize("experiment", ["rnn", "bahdanau", "luong", "transformer"])
def test_no_weight_has_an_old_name(experiment: str) -> None:
    names = [name for name, _ in build_tiny(f"experiment={experiment}").named_parameters()]
    assert names
    assert [name for name in names if re.search(OLD_PARAMETERS, name)] == []


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
    comes_as = {"hydra": "hydra_core", "omegaconf": "hydra_core", "pydantic_core": "pydantic"}
    comes_as |= {"yaml": "pyyaml", "vl_convert": "vl_convert_python"}
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
    assert not loaded_after("import nmt.translate, nmt.loading") & {"wandb", "datasets", "matplotlib", "altair"}


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
