"""The built package where there is no checkout: it has its configuration, and finds a user's own parts."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.slow

MY_ATTENTION = '''
import torch
from torch import Tensor, nn

from nmt.models.attention import Attention, Memory, attend_softmax


class Bilinear(Attention):
    """score(s, h) = (P s) . (Q h): a low-rank form of Luong's general score."""

    def __init__(self, query_size: int, encoder_size: int, rank: int) -> None:
        super().__init__()
        self.context_size = encoder_size
        self.P = nn.Linear(query_size, rank, bias=False)
        self.Q = nn.Linear(encoder_size, rank, bias=False)

    def keys(self, states: Tensor) -> Tensor:
        return self.Q(states)

    def forward(self, query: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        return attend_softmax(torch.matmul(self.P(query), memory.keys.mT), memory)
'''
MY_YAML = """
# @package model.attention
_target_: my_attention.Bilinear
_partial_: true
rank: 13
""".lstrip()


class Installed(NamedTuple):
    python: Path
    folder: Path  # where the user works: none of the checkout's folders
    wheel: Path
    sdist: Path

    def run(self, *arguments: str, stdin: str = "") -> str:
        """Standard output of `python ARGUMENTS`, which must succeed."""
        env = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
        done = subprocess.run(
            [str(self.python), *arguments],
            input=stdin.encode(),
            capture_output=True,
            cwd=self.folder,
            env=env | {"PYTHONUTF8": "1"},
            timeout=300,
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel of this checkout in an environment of its own, which borrows the libraries of this one."""
    top = tmp_path_factory.mktemp("wheel")
    folder, venv, dist = top / "elsewhere", top / "venv", top / "dist"
    folder.mkdir()
    call(sys.executable, "-m", "build", "--no-isolation", "--outdir", dist, ROOT)
    (wheel,), (sdist,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    call(sys.executable, "-m", "venv", venv)
    python = venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    call(python, "-m", "pip", "install", "--no-deps", "--no-index", wheel)
    # After the wheel, or pip would find this environment's package and take it for the one asked for.
    own = call(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    libraries = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (Path(own) / "borrowed.pth").write_text("\n".join(sorted(libraries)) + "\n")
    return Installed(python, folder, wheel, sdist)


def call(*command: object) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_wheel_holds_the_package_and_its_configuration_and_nothing_else(installed: Installed) -> None:
    names = zipfile.ZipFile(installed.wheel).namelist()
    assert {name.split("/")[0] for name in names} == {"nmt", "nmt_attention-0.1.0.dist-info"}
    shipped = {name.removeprefix("nmt/") for name in names if name.startswith("nmt/conf/")}
    assert shipped == {path.relative_to(ROOT).as_posix() for path in (ROOT / "conf").rglob("*.yaml")}


def test_the_source_archive_holds_the_tests_and_the_pins(installed: Installed) -> None:
    with tarfile.open(installed.sdist) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    assert {"constraints.txt", "tests/conftest.py", "scripts/test.py", "conf/train.yaml", "LICENSE"} <= names
    assert not {name for name in names if name.startswith(("outputs", "data", ".venv"))}


def test_training_and_translating_use_the_wheels_own_configuration(installed: Installed) -> None:
    installed.run("-m", "nmt.train", "experiment=bahdanau", "training.max_updates=20", "run_dir=run")
    assert '"nmt-attention": "0.1.0"' in (installed.folder / "run" / "status.json").read_text(encoding="utf-8")
    translated = installed.run("-m", "nmt.translate", "checkpoint=run", stdin="the old dog sleeps\n")
    assert translated.count("\n") == 1

    package = Path(installed.run("-c", "import nmt; print(nmt.__file__)").strip()).parent
    assert ROOT not in package.parents
    shipped = package / "conf" / "train.yaml"
    shipped.write_text(shipped.read_text(encoding="utf-8").replace("\nseed: 1\n", "\nseed: 77\n"), encoding="utf-8")
    assert "seed: 77\n" in installed.run("-m", "nmt.train", "experiment=bahdanau", "--cfg", "job")


def test_the_command_stands_beside_the_wheels_python(installed: Installed) -> None:
    command = installed.python.with_name("nmt.exe" if os.name == "nt" else "nmt")
    done = subprocess.run([command, "--version"], cwd=installed.folder, capture_output=True, text=True)
    assert done.stdout == "nmt-attention 0.1.0\n"
    done = subprocess.run([command, "train", "--help"], cwd=installed.folder, capture_output=True, text=True)
    assert "training.max_updates=" in done.stdout


def test_a_users_own_attention_is_one_class_and_one_file(installed: Installed) -> None:
    (installed.folder / "my_attention.py").write_text(MY_ATTENTION)
    (installed.folder / "my_conf" / "attention").mkdir(parents=True)
    (installed.folder / "my_conf" / "attention" / "mine.yaml").write_text(MY_YAML)
    own = ["--config-dir", "my_conf", "attention=mine", "run_dir=own", "training.max_updates=20"]
    installed.run("-m", "nmt.train", *own, "experiment=bahdanau", "data.train_pairs=1000")
    translated = installed.run(
        "-m", "nmt.translate", "checkpoint=own", "trust=my_attention", stdin="the old dog sleeps\na bird\n"
    )
    assert translated.count("\n") == 2


def test_a_comparison_from_the_wheel_has_its_page_whole(installed: Installed) -> None:
    for name, text in (("s", "the old dog sleeps"), ("r", "der alte Hund schläft"), ("A.hyp", "der alte Hund")):
        (installed.folder / name).write_text(f"{text}\n" * 3, encoding="utf-8")
    (installed.folder / "B.hyp").write_text("der alte Hund schläft\n" * 3, encoding="utf-8")
    few = ["study.bootstrap.resamples=99", "study.bootstrap.trials=9"]
    files = ["study.runs=A.hyp,B.hyp", "evaluate.test.src=s", "evaluate.test.ref=r", "study.output=cmp"]
    assert "B - A" in installed.run("-m", "nmt.compare", *files, *few)
    page = (installed.folder / "cmp" / "comparison.html").read_text(encoding="utf-8")
    assert "@media (prefers-color-scheme" in page  # the style sheet
    assert page.count("<script>") == 2  # Vega and the figures; nothing is to be explored here
