"""What the set-up scripts decide. Nothing is installed here: that is seen by running them."""

import ast
import importlib.util
import json
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = ROOT / "scripts"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"scripts_{name}", SCRIPTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def environment() -> ModuleType:
    return load("environment")


@pytest.fixture
def test_script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return load("test")


@pytest.fixture
def checkout(tmp_path: Path, environment: ModuleType) -> Path:
    """A checkout whose .venv bears a good stamp, made with the extra `dev`."""
    for name in ("constraints.txt", "pyproject.toml"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    (tmp_path / ".venv").mkdir()
    write_stamp(tmp_path, environment, extras=["dev"])
    return tmp_path


def write_stamp(folder: Path, environment: ModuleType, **changes: object) -> None:
    content = {"fingerprint": environment.fingerprint(folder), "extras": [], "root": str(folder)} | changes
    (folder / ".venv" / environment.STAMP).write_text(json.dumps(content))


def test_a_stamped_environment_is_used_as_it_is(
    checkout: Path, environment: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "version_of", lambda python: (3, 11))
    monkeypatch.setattr(environment, "pip_install", lambda *_: pytest.fail("something was installed"))
    assert environment.ensure(extras=["dev"], root=checkout) == environment.python_of(checkout / ".venv")
    assert environment.ensure(root=checkout) == environment.python_of(checkout / ".venv")


@pytest.mark.parametrize("name", ["constraints.txt", "pyproject.toml"])
def test_a_changed_pin_makes_the_environment_out_of_date(checkout: Path, environment: ModuleType, name: str) -> None:
    (checkout / name).write_text((checkout / name).read_text() + "# changed\n")
    assert environment.installed_extras(checkout) is None


def test_windows_line_ends_are_no_change(checkout: Path, environment: ModuleType) -> None:
    pins = checkout / "constraints.txt"
    pins.write_bytes(pins.read_bytes().replace(b"\n", b"\r\n"))
    assert environment.installed_extras(checkout) == {"dev"}


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"fingerprint": "x"}'])
def test_a_damaged_stamp_counts_as_none(checkout: Path, environment: ModuleType, text: str) -> None:
    (checkout / ".venv" / environment.STAMP).write_text(text)
    assert environment.installed_extras(checkout) is None


def test_a_moved_checkout_is_installed_anew(checkout: Path, environment: ModuleType) -> None:
    write_stamp(checkout, environment, root="/elsewhere")
    assert environment.installed_extras(checkout) is None


def test_a_failed_installation_leaves_no_stamp(
    checkout: Path, environment: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise environment.SetupError("no network")

    write_stamp(checkout, environment, extras=[])
    monkeypatch.setattr(environment, "version_of", lambda python: (3, 11))
    monkeypatch.setattr(environment, "has_pip", lambda python: True)
    monkeypatch.setattr(environment, "pip_install", fail)
    with pytest.raises(environment.SetupError):
        environment.ensure(extras=["dev"], root=checkout)
    assert environment.installed_extras(checkout) is None


def test_a_folder_that_is_no_environment_is_never_cleared(tmp_path: Path, environment: ModuleType) -> None:
    precious = tmp_path / ".venv" / "thesis.tex"
    precious.parent.mkdir()
    precious.write_text("x")
    with pytest.raises(environment.SetupError, match="move it away"):
        environment.make_venv(precious.parent)
    assert precious.exists()


def test_the_interpreter_lies_where_each_system_puts_it(environment: ModuleType) -> None:
    assert environment.python_of(Path("v"), "nt") == Path("v/Scripts/python.exe")
    assert environment.python_of(Path("v"), "posix") == Path("v/bin/python")


def test_pip_is_held_to_the_pins(environment: ModuleType) -> None:
    assert environment.pip_arguments(["dev"], cpu=False) == ["-c", "constraints.txt", "-e", ".[dev]"]
    assert environment.pip_arguments([], cpu=True)[:2] == ["--extra-index-url", environment.TORCH_CPU_INDEX]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("Retrying: NewConnectionError('...')\nERROR: No matching distribution found for torch", "network"),
        ("ERROR: Could not find a version that satisfies hatchling (from versions: none)", "network"),
        ("ERROR: No matching distribution found for torch==2.13.0", "no build"),
        ("ERROR: Could not install packages: [Errno 28] No space left on device", "disk is full"),
        ("Collecting torch\nERROR: Cannot install nmt: conflict\n", "Cannot install nmt: conflict"),
        ("", "no reason"),
    ],
)  # fmt: skip
def test_a_failure_of_pip_is_told_in_one_line(environment: ModuleType, words: str, said: str) -> None:
    told = environment.why_pip_failed(words)
    assert said in told
    assert "\n" not in told


def test_the_last_word_of_a_watched_command_is_kept_and_its_code_returned(
    tmp_path: Path, environment: ModuleType
) -> None:
    code = "print('é first'); print('last'); raise SystemExit(7)"
    assert environment.watch([sys.executable, "-c", code], tmp_path / "log", tmp_path) == 7
    assert (tmp_path / "log").read_text(encoding="utf-8") == "é first\nlast\n"


def test_ctrl_c_says_how_to_go_on(
    environment: ModuleType, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment.signal, "signal", lambda *_: None)

    def interrupted(arguments: list[str]) -> int:
        raise KeyboardInterrupt

    assert environment.guarded(interrupted, "python3 scripts/quickstart.py seed=2") == 130
    assert capsys.readouterr().err.endswith("goes on from there: python3 scripts/quickstart.py seed=2\n")


def test_fast_tests_leave_out_what_all_brings(test_script: ModuleType) -> None:
    fast = test_script.pytest_arguments(False, [], cpus=1)
    everything = test_script.pytest_arguments(True, [], cpus=1)
    assert fast == ["-m", "not slow and not gpu and not network"]
    assert everything[:2] == ["-m", "not network"]


def test_two_processors_run_two_processes_unless_a_debugger_is_asked_for(test_script: ModuleType) -> None:
    assert "-n" in test_script.pytest_arguments(False, ["-k", "beam"], cpus=2)
    assert "-n" not in test_script.pytest_arguments(False, ["--pdb"], cpus=2)
    assert "-n" not in test_script.pytest_arguments(False, [], cpus=1)


def test_what_the_person_says_comes_last(test_script: ModuleType) -> None:
    assert test_script.pytest_arguments(True, ["-m", "gpu"], cpus=2)[-2:] == ["-m", "gpu"]


@pytest.mark.parametrize("name", ["quickstart", "test"])
def test_help_names_the_steps_and_their_minutes(name: str) -> None:
    command = [sys.executable, str(SCRIPTS / f"{name}.py"), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "1. make" in done.stdout
    assert "minutes" in done.stdout


@pytest.mark.parametrize("name", ["environment", "quickstart", "test"])
def test_an_old_python_can_read_the_scripts_and_so_be_told(name: str) -> None:
    ast.parse((SCRIPTS / f"{name}.py").read_text(encoding="utf-8"), feature_version=(3, 7))


def test_every_direct_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    pins = [line for line in (ROOT / "constraints.txt").read_text().split("\n") if line and line[0] != "#"]
    assert all(line.count("==") == 1 and "+" not in line for line in pins)
    pinned = {line.split("==")[0] for line in pins}
    assert {name.split(">=")[0] for name in asked if not name.startswith("nmt-attention[")} <= pinned


def test_one_version_everywhere() -> None:
    import nmt

    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert nmt.__version__ == version
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
