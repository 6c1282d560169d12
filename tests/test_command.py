"""The command `nmt`: it starts the programs, lists them, and completes their settings in bash and zsh."""

import os
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.__main__ import PROGRAMS, SHELLS, main
from nmt.cli_help import completion, print_help
from nmt.self_test import SYSTEMS, environment, print_report
from nmt.settings import PROGRAMS as DECLARED
from tests.conftest import program_environment

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def command(tmp_path: Path) -> Run:
    """command("train", "--help") is `nmt train --help`, as the script that pip writes starts it."""
    script = tmp_path / "bin" / "nmt"
    script.parent.mkdir()
    script.write_text("import sys\nfrom nmt.__main__ import main\nsys.exit(main())\n")

    def run(*arguments: str, cwd: Path = tmp_path, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(script), *arguments],
            input=stdin, capture_output=True, text=True, cwd=cwd, env=program_environment(), timeout=300,
        )  # fmt: skip

    return run


def test_every_program_is_listed() -> None:
    assert set(PROGRAMS) == {*DECLARED, "completion"}


def test_help_lists_the_programs(command: Run, run_program: Run) -> None:
    shown = command("--help")
    assert shown.returncode == 0
    assert all(f"  {name} " in shown.stdout for name in PROGRAMS)
    assert run_program("", "--help").stdout == shown.stdout


@pytest.mark.slow
def test_alone_it_lists_the_programs_the_environment_and_what_works_here(command: Run, run_program: Run) -> None:
    alone = run_program("")
    assert alone.returncode == 0, alone.stderr
    assert alone.stdout.startswith(command("--help").stdout.rsplit("\n", 2)[0])
    shown = dict(re.findall(r"(?m)^  (\w+) +(.*)$", alone.stdout.split("For a bug report:")[1]))
    assert set(shown) == {
        "nmt",
        "python",
        "packages",
        "machine",
        "device",
        "precision",
        "attention",
        "folder",
        *SYSTEMS,
    }
    assert all(shown[name].startswith("ok: ") for name in SYSTEMS)


def test_the_environment_names_versions_device_precision_and_free_space() -> None:
    facts = list(environment())
    text = dict(facts)
    assert re.search(r"torch \d.*, hydra-core \d", text["packages"])
    assert "threads" in text["device"]
    assert text["precision"].startswith("fp32")
    assert text["attention"]
    assert [re.sub(r"[\d.]+", "N", fact) for name, fact in facts if name == "folder"] == [
        "here: writable, N GiB free", "temporary: writable, N GiB free",
    ]  # fmt: skip


def test_a_system_that_does_not_learn_is_said_and_gives_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(experiment: str) -> tuple[float, float, int]:
        if experiment == "luong":
            raise RuntimeError("no kernel")
        return 3.0, 0.1, 16

    monkeypatch.setattr("nmt.self_test._learn", broken)
    assert print_report() == 1
    assert re.findall(r"(?m)^  (\w+) +(ok|FAILED): (.{9})", capsys.readouterr().out) == [
        ("rnn", "ok", "nll 3.00 "), ("bahdanau", "ok", "nll 3.00 "), ("luong", "FAILED", "RuntimeEr"),
        ("transformer", "ok", "nll 3.00 "),
    ]  # fmt: skip


def test_its_version_names_the_distribution(command: Run, run_program: Run) -> None:
    version = command("--version").stdout
    assert re.fullmatch(r"nmt-attention \d+\.\d+\.\d+\n", version)
    assert command("train", "--version").stdout == run_program("translate", "--version").stdout == version


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (["trian"], "there is no program trian; did you mean nmt train?"),
        (["nmt.compare"], "there is no program nmt.compare; did you mean nmt compare?"),
        (["experiment=rnn"], "experiment=rnn: name a program first: nmt prepare, train, "),
        (["completion"], "for which shell? nmt completion bash or nmt completion zsh"),
        (["completion", "fish"], "for which shell? nmt completion bash or nmt completion zsh"),
    ],
)
def test_an_unknown_word_gets_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], answer: str
) -> None:
    monkeypatch.setattr("sys.argv", ["nmt", *arguments])
    with pytest.raises(SystemExit, match="2"):
        main()
    printed = capsys.readouterr()
    assert printed.out == ""
    assert re.fullmatch(rf".*error: {re.escape(answer)}.*\n", printed.err)


def test_a_program_gets_its_arguments_and_gives_its_exit_code(command: Run, run_program: Run) -> None:
    arguments = ["experiment=rnn", "training.max_updates=0"]
    done, same = command("train", *arguments), run_program("train", *arguments)
    assert (done.returncode, done.stdout) == (same.returncode, same.stdout) == (2, "")
    assert "training.max_updates=0" in done.stderr


@pytest.mark.parametrize("name", DECLARED)
def test_help_says_that_both_commands_are_the_same(capsys: pytest.CaptureFixture[str], name: str) -> None:
    print_help(name, ["experiment=rnn"] if name == "train" else [])
    shown = capsys.readouterr().out
    assert f"nmt {name} and python -m nmt.{name} are the same." in shown
    assert shown.count("python -m nmt") == 1


@pytest.mark.slow
def test_a_training_by_the_command_finds_a_users_class_and_records_the_command(command: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("from nmt.models.attention import Dot\n\n\nclass Own(Dot):\n    pass\n")
    (tmp_path / "my_conf" / "attention").mkdir(parents=True)
    (tmp_path / "my_conf" / "attention" / "mine.yaml").write_text(
        "# @package model.attention\n_target_: mine.Own\n_partial_: true\n"
    )
    tiny = ["data=copy", "data.train_pairs=50", "data.valid_pairs=3", "training.max_updates=2", "run_dir=run"]
    tiny += ["size.luong.hidden=128", "size.luong.encoder=64"]
    done = command("train", "--config-dir", "my_conf", "experiment=luong", "attention=mine", *tiny)
    assert done.returncode == 0, done.stderr
    assert '"command": "nmt train --config-dir my_conf experiment=luong ' in (tmp_path / "run/status.json").read_text()


# ---- completion

BASH, ZSH = shutil.which("bash"), shutil.which("zsh")
needs_bash = pytest.mark.skipif(not BASH, reason="needs bash")
needs_zsh = pytest.mark.skipif(not ZSH, reason="needs zsh")
COMPLETED = [
    ("nmt tra", {"train", "translate"}),
    ("nmt ", {*PROGRAMS, "--help", "--version"}),
    ("nmt completion ", {"bash", "zsh"}),
    ("nmt train training.max_", {"training.max_updates=", "training.max_epochs=", "training.max_minutes="}),
    ("nmt train exp", {"experiment="}),
    ("nmt train data=te", {"text"}),
    ("nmt train -m experiment=rnn,ba", {"rnn,bahdanau"}),
    ("nmt train seed=1 training.monitor=", {"bleu", "nll"}),
    ("nmt evaluate force=", {"true", "false"}),
    ("nmt evaluate search=g", {"greedy"}),
    ("nmt compare study.experiments=[rnn,lu", {"[rnn,luong"}),
    ("nmt compare evaluate.tes", {"evaluate.test=", "evaluate.test.src=", "evaluate.test.ref=", "evaluate.test.name="}),
    ("nmt compare evaluate.p", {"evaluate.pool="}),
    ("nmt compare evaluate.v", {"evaluate.valid="}),
    ("nmt benchmark suite=", {"attention", "training"}),
    ("nmt prepare data.source=", set()),
    ("nmt translate checkpoint=run-", {"run-a b", "run-c"}),
    ("nmt train --c", {"--cfg", "--config-dir"}),
    ("nmt nothing se", set()),
]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for shell in SHELLS:
        (tmp_path / f"complete.{shell}").write_text(completion(shell), encoding="utf-8")
    for name in ("run-a b", "run-c"):
        (tmp_path / name).mkdir()
    return tmp_path


@needs_bash
@pytest.mark.parametrize(("typed", "completed"), COMPLETED)
def test_bash_completes(files: Path, typed: str, completed: set[str]) -> None:
    lines = f'. ./complete.bash; COMP_WORDBREAKS=" =:"; COMP_LINE={typed!r} COMP_POINT={len(typed)}; _nmt'
    show = 'for reply in "${COMPREPLY[@]}"; do echo "$reply"; done'
    shown = subprocess.run([str(BASH), "-c", f"{lines}; {show}"], cwd=files, capture_output=True, text=True, check=True)
    assert set(shown.stdout.split("\n")) - {""} == completed
    assert shown.stderr == ""


@needs_bash
def test_bash_completes_a_whole_word_where_the_user_breaks_none_at_an_equals_sign(files: Path) -> None:
    lines = '. ./complete.bash; COMP_WORDBREAKS=" "; COMP_LINE="nmt train data=te" COMP_POINT=17; _nmt; echo $COMPREPLY'
    shown = subprocess.run([str(BASH), "-c", lines], cwd=files, capture_output=True, text=True, check=True)
    assert shown.stdout == "data=text\n"


@needs_bash
def test_tab_in_a_bash_at_a_terminal(files: Path) -> None:
    keys = "nmt tran\tcheckp\trun-c\t beam=4 sear\tgr\t"
    line = "nmt translate checkpoint=run-c/ beam=4 search=greedy "
    assert typed_at_a_terminal([str(BASH), "--norc", "--noprofile", "-i"], "bash", keys, files) == line


@needs_zsh
@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ("nmt tran\tcheckp\trun-c\t", "nmt translate checkpoint=run-c/"),
        ("nmt train -m exper\trnn,ba\tdata=te\t", "nmt train -m experiment=rnn,bahdanau data=text "),
        ("nmt compare study.seeds=1,2 training.moni\tnl\t", "nmt compare study.seeds=1,2 training.monitor=nll "),
    ],
)
def test_tab_in_a_zsh_at_a_terminal(files: Path, keys: str, line: str) -> None:
    assert typed_at_a_terminal([str(ZSH), "-f", "-i"], "zsh", keys, files) == line


def typed_at_a_terminal(shell: list[str], name: str, keys: str, folder: Path) -> str:
    """The command line that these keys give; every part of them ends in a tab."""
    import pty  # which Windows has not

    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.environ.update(TERM="dumb", PS1="$ ", HOME=str(folder), HISTFILE="", ZDOTDIR=str(folder))
        os.execv(shell[0], shell)
    try:
        for line in (f". ./complete.{name}; echo rea''dy", 'nmt() { printf "%s\\n" "<nmt $*>"; }; echo rea""dy'):
            os.write(terminal, f"{line}\n".encode())
            read_until(terminal, "ready")
        for part in re.findall(r"[^\t]*\t", keys):
            os.write(terminal, part.encode())
            time.sleep(0.3)  # the shell answers a tab before it reads what follows
        os.write(terminal, b"'|'\n")
        seen = read_until(terminal, ">")
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(terminal)
    return seen.rsplit("<", 1)[1].split("|")[0]


def read_until(terminal: int, text: str, seconds: float = 20) -> str:
    seen = ""
    end = time.monotonic() + seconds
    while text not in seen and time.monotonic() < end:
        if select.select([terminal], [], [], 0.1)[0]:
            seen += os.read(terminal, 4096).decode(errors="replace")
    assert text in seen, seen
    return seen
