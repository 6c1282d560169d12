"""The program, as a user runs it: lines in, lines out, whatever comes, from an untrained run."""

import gzip
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf

import nmt.loading
from nmt.cli import composed
from nmt.decoding.line_io import open_output, read_blocks
from nmt.errors import ConfigError, UserError
from nmt.schema import check, declared_settings
from nmt.settings import SearchSettings, TranslateConfig
from nmt.translate import require_own_files
from tests.conftest import ROOT, RunProgram, program_environment
from tests.program_server import run_module

CONF = ROOT / "conf"
WOMEN = [f"a woman with {i} cats walks to the market" for i in range(1, 8)]


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run after three updates, trained by the program."""
    folder = tmp_path_factory.mktemp("translate")
    numbers = range(1, 101)
    (folder / "b.en").write_text("".join(f"the man number {i} sees the dog near the house\n" for i in numbers))
    (folder / "b.fr").write_text("".join(f"l homme numero {i} voit le chien devant la maison\n" for i in numbers))
    command = "experiment=bahdanau data=text data.train_src=b.en data.train_tgt=b.fr "
    command += "run_dir=run training.max_updates=3 tokenizer.vocab_size=310 tokenizer.shrink=true size.embedding=32"
    done = run_module("nmt.train", command.split(), folder)
    assert done.returncode == 0, done.stderr
    (folder / "b.en").unlink()
    return folder / "run"


@pytest.fixture
def translate(run_program: RunProgram, run: Path):
    def translated(*arguments: str, stdin: str | bytes = b"", **where):
        return run_program("translate", f"checkpoint={run}", *arguments, stdin=stdin, **where)

    return translated


ODD = (
    b"the old dog sleeps\r\n"
    b"\n \n\t\n\xc2\xa0\n\xe2\x80\x8b\n\xe2\x96\x81\n"
    b"a \xe2\x96\x81 b\n"
    b"one\xe2\x80\xa9two\nthree\x0cfour\nfive\x1csix\x1dsix\nseven\reight\n"
    b'a < b & c > d "e" <b>f</b>\n'
    b"the old\tdog\n"
    b"caf\xe9 noir\n"
    b"\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x94\xac\n"
    b"last line, no end"
)


def test_every_line_gives_one_line_whatever_it_holds(translate):
    done = translate("beam=2", stdin=ODD)
    lines = done.stdout.split("\n")
    assert done.returncode == 0
    assert len(lines) - 1 == ODD.count(b"\n") + 1
    assert lines[-1] == ""
    assert "".join(lines[1:7]) == ""
    assert not set(done.stdout) & set("\u2581\ufffd\r\t\x0c\x1c\u2028\u2029")
    assert not any(made in done.stdout for made in ("&lt;", "&amp;", "&quot;", "@-@", "<pad>", "<s>", "<unk>"))
    assert "line 15 is not UTF-8 (byte 4 is 0xe9)" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_lines_of_any_bytes_give_as_many_lines(translate):
    generator = random.Random(7)
    lines = [generator.randbytes(generator.randrange(60)).replace(b"\n", b"") for _ in range(2_000)]
    done = translate("beam=1", "max_ratio=0", "max_extra=2", stdin=b"".join(line + b"\n" for line in lines))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 2_000
    assert "more warnings of these kinds are not shown" in done.stderr


@pytest.mark.slow
def test_it_is_the_same_translation_as_from_python_and_in_any_locale(translate, run):
    expected = nmt.loading.load(run).translate(WOMEN)
    done = translate(stdin="\n".join(WOMEN) + "\n", env={"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"})
    assert done.stdout == "".join(f"{line}\n" for line in expected)


@pytest.mark.slow
def test_n_best_gives_as_many_lines_for_each_and_widens_the_beam(translate):
    done = translate("n_best=5", "beam=2", "scores=true", "max_extra=9", stdin="the dog\n\nthe cat\n")
    rows = [line.split("\t") for line in done.stdout.split("\n")[:-1]]
    assert "beam=5 is used, not 2" in done.stderr
    assert len(rows) == 15
    assert all(text == "" for _, text in rows[5:10])
    for five in (rows[:5], rows[10:]):
        scores = [float(score) for score, _ in five]
        assert scores == sorted(scores, reverse=True)
        assert len({text for _, text in five}) == 5


@pytest.mark.slow
def test_fewer_translations_than_asked_for_are_said_and_lines_stay_in_step(translate):
    done = translate("n_best=3", "beam=3", "max_ratio=0", "max_extra=0", stdin="the dog\nthe cat\n")
    assert done.stdout == "\n" * 6
    assert "fewer than n_best=3 different translations exist for 2 lines" in done.stderr


@pytest.mark.slow
def test_capped_outputs_are_counted(translate, run):
    settings = SearchSettings.defaults(beam=1, max_extra=9)
    capped = sum(best.capped for [best] in nmt.loading.load(run).hypotheses(WOMEN, settings))
    done = translate("beam=1", "max_extra=9", stdin="\n".join(WOMEN))
    assert capped > 0
    assert f"capped: {capped} of 7 " in done.stderr


@pytest.mark.slow
def test_long_lines_are_named(translate):
    lines = ["the dog", "a" * 2_000, "http://example.org/?q=" + "x%20" * 200, "the cat"]
    done = translate("beam=1", "max_ratio=0", "max_extra=2", stdin="\n".join(lines) + "\n")
    assert done.stdout.count("\n") == 4
    warnings = [line for line in done.stderr.split("\n") if "max_src_pieces" in line]
    assert [line.split()[:3] for line in warnings] == [["warning:", "line", "2"], ["warning:", "line", "3"]]
    assert all(re.search(r" in \d+ parts$", line) for line in warnings)


@pytest.mark.slow
def test_files_are_read_and_written_whole(translate, tmp_path, run):
    with gzip.open(tmp_path / "in, (1).gz", "wt") as file:
        file.write("\n".join(WOMEN))
    done = translate("input=in, (1).gz", "output=out.txt", "beam=1")
    assert (done.returncode, done.stdout) == (0, "")
    expected = nmt.loading.load(run).translate(WOMEN, SearchSettings.defaults(beam=1))
    assert (tmp_path / "out.txt").read_bytes() == "".join(f"{line}\n" for line in expected).encode()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in, (1).gz", "out.txt"]


def test_a_missing_input_is_one_clear_line_and_leaves_nothing(translate, tmp_path):
    done = translate("input=missing.txt", "output=out")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: cannot read missing.txt: No such file or directory\n"
    assert list(tmp_path.iterdir()) == []


def configured(run: Path, **changes: object) -> TranslateConfig:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        values: Any = OmegaConf.to_container(compose("translate", [f"checkpoint={run}"]))
    return check(TranslateConfig, values | changes)


@pytest.mark.parametrize("wrong", [{"beam": 0}, {"n_best": 0}, {"beam": "many"}, {"batch": 0}, {"length_penalty": -1}])
def test_a_search_that_cannot_work_is_refused_by_its_key(run, wrong):
    [(key, value)] = wrong.items()
    with pytest.raises(ConfigError, match=f"{key}={value}"):
        configured(run, **wrong)


@pytest.mark.parametrize("name", ["own.html", "own", "own.jsonl.gz"])
def test_attention_is_not_written_into_a_file_of_another_kind(run, name):
    with pytest.raises(ConfigError, match=rf"attention_out={name}: give FILE.jsonl, or a picture"):
        configured(run, attention_out=name)


@pytest.mark.parametrize("wrong", [{"threads": "many"}, {"threads": 0}, {"max_src_pieces": 0}, {"device": "tpu"}])
def test_a_setting_that_cannot_work_is_refused_by_its_key(run, wrong):
    [(key, value)] = wrong.items()
    with pytest.raises(ConfigError, match=f"{key}={value}"):
        configured(run, **wrong)


def test_an_output_that_cannot_be_written_is_refused_by_its_name(tmp_path):
    with pytest.raises(UserError, match="cannot write"), open_output(str(tmp_path / "no/such/folder")):
        pass


def test_what_another_run_has_left_unfinished_is_not_overwritten(tmp_path):
    (tmp_path / "out.part").write_text("hours of work\n")
    with pytest.raises(UserError, match=r"out\.part is there: another run writes it"), open_output(f"{tmp_path}/out"):
        pass
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"out.part": "hours of work\n"}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"input": "a", "output": "a"}, "output=a would replace input=a"),
        ({"input": "a", "output": "link"}, "output=link would replace input=a"),
        ({"input": "a", "output": "hard"}, "output=hard would replace input=a"),
        ({"input": "a", "output": "b", "attention_out": "a.jsonl"}, "attention_out=a.jsonl would replace input=a"),
        ({"input": "a", "output": "b", "alignment_out": "./b"}, r"alignment_out=\./b would replace output=b"),
    ],
)
def test_no_output_replaces_the_input_or_another_output(run, tmp_path, monkeypatch, files, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").write_text("the dog\n")
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "a.jsonl").symlink_to("a")
    (tmp_path / "hard").hardlink_to(tmp_path / "a")
    with pytest.raises(ConfigError, match=message):
        require_own_files(configured(run, **files))
    require_own_files(configured(run, input="a", output="b", attention_out="c.jsonl", alignment_out="d"))
    require_own_files(configured(run, input=os.devnull, output=os.devnull))


class Chunks:
    """A stream whose bytes arrive in these chunks."""

    def __init__(self, chunks: list[bytes]) -> None:
        self.chunks = list(chunks)

    def read1(self, size: int) -> bytes:
        return self.chunks.pop(0) if self.chunks else b""


@given(st.lists(st.binary(min_size=1, max_size=9) | st.just(b"\n") | st.just(b"a\nb\n"), max_size=9), st.integers(1, 4))
def test_lines_are_those_of_the_bytes_however_they_arrive(chunks, max_lines):
    blocks: list[list[bytes]] = list(read_blocks(Chunks(chunks), max_lines))  # type: ignore[arg-type]
    expected = b"".join(chunks).split(b"\n")
    assert [line for block in blocks for line in block] == expected[: -1 if expected[-1] == b"" else None]
    assert all(1 <= len(block) <= max_lines for block in blocks)


def test_an_output_that_is_no_ordinary_file_is_written_as_it_is():
    with open_output(os.devnull) as write:
        write("text")
    assert not Path(os.devnull).is_file()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_said_by_the_name_of_the_output():
    with pytest.raises(UserError, match="cannot write /dev/full: No space left"), open_output("/dev/full") as write:
        write("text")


def test_without_a_checkpoint_it_says_what_is_missing():
    with (
        initialize_config_dir(str(CONF), version_base="1.3"),
        pytest.raises(ConfigError, match=r"checkpoint=\.\.\. is needed"),
    ):
        composed("translate", compose("translate"))


@pytest.mark.slow
def test_help_names_every_setting(run_program):
    explained = run_program("translate", "--help").stdout
    keys = [setting.key for setting in declared_settings(TranslateConfig) if not setting.is_section]
    missing = [key for key in keys if f"\n  {key}=" not in explained]
    assert missing == []


@pytest.mark.slow
def test_a_copied_read_only_run_translates_from_elsewhere(run_program, run, tmp_path):
    copy = tmp_path / "a copy"
    shutil.copytree(run, copy)
    before = {path: path.stat().st_mtime_ns for path in copy.iterdir()}
    for path in [*copy.iterdir(), copy]:
        path.chmod(path.stat().st_mode & ~0o222)
    try:
        done = run_program("translate", f"checkpoint={copy}", "beam=1", stdin="the dog\n", cwd=Path("/"))
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("\n") == 1
        assert {path: path.stat().st_mtime_ns for path in copy.iterdir()} == before
    finally:
        copy.chmod(0o755)


@pytest.mark.slow
def test_attention_is_an_object_a_line(translate, tmp_path):
    translate("beam=1", "max_extra=5", "attention_out=a.jsonl", stdin="the dog sleeps\n\nthe cat\n")
    first, empty, last = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().split("\n")[:-1]]
    assert (first["line"], empty["line"], last["line"]) == (1, 2, 3)
    assert empty["weights"] is None
    [[weights]] = first["weights"]
    assert len(weights) == len(first["target_pieces"])
    assert all(len(row) == len(first["source_pieces"]) for row in weights)
    assert all(sum(row) == pytest.approx(1, abs=1e-3) for row in weights)


@pytest.mark.slow
def test_links_are_a_line_for_each_line_and_stay_inside_the_words(translate, tmp_path):
    lines = ["unbelievableness dog", "the  old\tdog", "", "a\u00a0b c", "x", "dog " * 400]
    done = translate("n_best=2", "beam=2", "max_extra=5", "alignment_out=links", stdin="\n".join(lines) + "\n")
    assert done.returncode == 0, done.stderr
    found = (tmp_path / "links").read_text().split("\n")
    assert found.pop() == ""
    translations = done.stdout.split("\n")[0:-1:2]  # the best of two
    for links, line, translation in zip(found, lines, translations, strict=True):
        for source, target in (link.split("-") for link in links.split()):
            assert int(source) < len(line.split())
            assert int(target) < len(translation.split())
    assert any(found[:2])
    assert (found[2], found[5]) == ("", "")
    assert "alignment_out: 1 line is left blank" in done.stderr


def started(run: Path, *arguments: str, **options) -> subprocess.Popen:
    command = [sys.executable, "-m", "nmt.translate", f"checkpoint={run}", "beam=1", *arguments]
    return subprocess.Popen(command, env=program_environment(), **options)


@pytest.mark.slow
def test_a_writer_that_waits_for_its_translation_gets_it(run):
    with started(run, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for line in (b"the dog\n", b"the old cat\n"):
            process.stdin.write(line)
            process.stdin.flush()
            assert process.stdout.readline().endswith(b"\n")
        process.stdin.close()
        assert process.wait(60) == 0


@pytest.mark.slow
def test_named_pipes_are_read_and_written_as_they_are(run, tmp_path):
    for name in ("in", "out"):
        os.mkfifo(tmp_path / name)
    with (
        subprocess.Popen(["timeout", "60", "sh", "-c", "yes the dog | head -n 7 > in"], cwd=tmp_path) as writer,
        subprocess.Popen(["timeout", "60", "cat", "out"], cwd=tmp_path, stdout=subprocess.PIPE) as reader,
        started(run, "max_ratio=0", "max_extra=2", "input=in", "output=out", cwd=tmp_path) as process,
    ):
        assert reader.stdout is not None
        assert reader.stdout.read().count(b"\n") == 7
        assert (process.wait(60), reader.wait(60), writer.wait(60)) == (0, 0, 0)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]


@pytest.mark.slow
def test_a_reader_that_leaves_ends_it_quietly(run):
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with started(run, "max_ratio=0", "max_extra=3", **pipes) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b"the dog\n")
        process.stdin.flush()
        process.stdout.readline()
        process.stdout.close()
        process.stdin.write(b"the cat\n" * 3)
        process.stdin.close()
        said = process.stderr.read().decode()
        assert process.wait(60) == 0
    assert "Traceback" not in said
    assert "Broken" not in said


@pytest.mark.slow
def test_ctrl_c_says_where_the_lines_done_so_far_are(run, tmp_path):
    with started(run, "output=out", cwd=tmp_path, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b"the dog\n")
        process.stdin.flush()
        partial = tmp_path / "out.part"
        end = time.monotonic() + 60
        while not (partial.exists() and partial.stat().st_size) and time.monotonic() < end:
            time.sleep(0.02)
        process.send_signal(2)
        said = process.stderr.read().decode()
        assert process.wait(60) == 130
    assert "out is not written; what was done so far is in out.part" in said
    assert "Traceback" not in said
    assert not (tmp_path / "out").exists()


def typed_into(run: Path, *keys: bytes) -> tuple[str, int]:
    """The screen and the exit code of a session at a terminal; each key is typed at the next prompt."""
    pty = pytest.importorskip("pty", reason="needs a pseudo-terminal")
    ours, theirs = pty.openpty()
    process = started(run, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True, preexec_fn=take_terminal)
    os.close(theirs)
    screen = b""
    prompts = 0
    while True:
        try:
            screen += os.read(ours, 1024)
        except OSError:  # the other side is closed
            break
        if screen.endswith(b"> ") and prompts < len(keys):
            os.write(ours, keys[prompts])
            prompts += 1
    os.close(ours)
    return screen.decode(), process.wait(60)


def take_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def test_at_a_terminal_it_prompts_and_ctrl_d_ends(run):
    screen, code = typed_into(run, b"the dog\n", b"\n", b"\x04")
    assert code == 0
    assert screen.count("> ") == 3
    assert "error" not in screen
    assert "Traceback" not in screen


def test_at_a_terminal_ctrl_c_leaves(run):
    screen, code = typed_into(run, b"the dog\n", b"\x03")
    assert code == 130
    assert "Traceback" not in screen
