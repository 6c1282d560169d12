"""`python -m nmt.prepare` as a user runs it: what is left out, accounted for, refused, resumed."""

import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from nmt.data.preparation.prepared_corpus import open_prepared
from nmt.data.test_sets import stored_test_sets
from tests.conftest import RunProgram, program_environment
from tests.sacrebleu_folder import write_set
from tests.small_text import SMALL, assert_refused, contents, files

PIECES = "tokenizer.vocab_size=310"


def prepare(run_program: RunProgram, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    given = {argument.split("=")[0] for argument in arguments}
    standard = [setting for setting in files() if setting.split("=")[0] not in given]
    return run_program("prepare", *standard, PIECES, *arguments, **options)


def folder_of(text: Path) -> Path:
    (found,) = (path for path in (text / "data/prepared").iterdir() if path.is_dir())
    return found


def card_of(text: Path) -> dict[str, Any]:
    return json.loads((folder_of(text) / "card.json").read_text(encoding="utf-8"))


def insert(path: Path, line: int, lines: list[str]) -> None:
    """Put lines before the given one, counted from 1."""
    old = path.read_text(encoding="utf-8").split("\n")
    path.write_text("\n".join([*old[: line - 1], *lines, *old[line - 1 :]]), encoding="utf-8", newline="\n")


def test_the_card_tells_what_became_of_every_pair(text: Path, run_program: RunProgram) -> None:
    insert(
        text / "b.en",
        5,
        ["", "the same", "the man", "the man sees it", "the man number 1 sees the dog 1 near the house"],
    )
    insert(
        text / "b.fr",
        5,
        ["rien", "the same", "un " * 60, "человек", "l homme numero 1 voit le chien 1 devant la maison"],
    )
    insert(text / "b.en", 1, ["a woman with 3 cats walks to the market"])
    insert(text / "b.fr", 1, ["elle est encore la"])
    done = prepare(run_program, "data.source=en", "data.target=fr", "data.licence=CC0", "cleaning.max_words=40")
    assert done.returncode == 0, done.stderr
    card = card_of(text)
    assert {reason: content["pairs"] for reason, content in card["dropped"].items()} == {
        "empty": 1, "identical sides": 1, "too many words": 1, "wrong script": 1, "duplicate": 1,
        "in a dev or test set": 1,
    }  # fmt: skip
    assert (card["read"], card["kept"]) == (406, 400)
    assert card["dropped"]["empty"]["examples"] == [{"pair": 6, "source": "", "target": "rien"}]
    assert card["dropped"]["duplicate"]["examples"][0]["pair"] == 10
    assert card["in_held_out_sets"] == {"valid": 1}
    assert card["corpus"]["licence"] == "CC0"
    assert sum(card["sides"]["source"]["histogram"].values()) == 400
    assert card["sides"]["target"]["words"] == 400 * 11
    assert done.stdout == (folder_of(text) / "card.md").read_text(encoding="utf-8") + "\n"
    for shown in ("406 pairs read, 400 kept", "| empty | 1 | 6:  / rien |", "licence: CC0"):
        assert shown in done.stdout


def test_prepared_text_is_what_the_pieces_say(text: Path, run_program: RunProgram) -> None:
    assert prepare(run_program).returncode == 0
    prepared = open_prepared(folder_of(text))
    lines = (text / "b.fr").read_text(encoding="utf-8").split("\n")
    assert len(prepared.train) == 400
    assert [prepared.target.decode(prepared.train.tgt[i].tolist()) for i in (0, 7, 399)] == [
        lines[i] for i in (0, 7, 399)
    ]
    assert isinstance(prepared.train.src.ids, np.memmap)


@pytest.mark.slow
def test_the_same_settings_find_it_and_others_make_another(text: Path, run_program: RunProgram) -> None:
    assert "learning" in prepare(run_program).stderr
    before = contents(text / "data")
    os.rename(text / "b.en", text / "renamed.en")
    again = prepare(run_program, "data.train_src=renamed.en", "workers=1")
    assert "learning" not in again.stderr
    assert contents(text / "data") == before
    assert "learning" in prepare(run_program, "data.train_src=renamed.en", "cleaning.max_words=30").stderr
    trained = run_program(
        "train", "experiment=rnn", *files("renamed.en"), *SMALL, "cleaning.max_words=30", "run_dir=r"
    )  # fmt: skip
    assert trained.returncode == 0, trained.stderr
    assert "learning" not in trained.stderr
    assert len([path for path in (text / "data/prepared").iterdir() if path.is_dir()]) == 2


@pytest.mark.slow
def test_a_copied_folder_needs_no_corpus(text: Path, run_program: RunProgram) -> None:
    assert prepare(run_program).returncode == 0
    shutil.move(folder_of(text), text / "copied")
    for name in ("b.en", "b.fr", "v.en", "v.fr"):
        (text / name).unlink()
    done = run_program("train", "experiment=rnn", *files(), *SMALL, "prepared=copied", "run_dir=r")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_folder_of_another_version_or_damaged_is_refused(text: Path, run_program: RunProgram) -> None:
    assert prepare(run_program).returncode == 0
    folder = folder_of(text)
    manifest = folder / "manifest.json"
    good = manifest.read_text(encoding="utf-8")
    manifest.write_text(good.replace('"format": 1', '"format": 99'), encoding="utf-8")
    assert_refused(prepare(run_program), folder.name, "format 99, this one reads 1", "prepare again")
    manifest.write_text(good[:100], encoding="utf-8")
    assert_refused(prepare(run_program), "manifest.json is damaged")
    manifest.write_text(good, encoding="utf-8")
    os.truncate(folder / "tgt.ids", 100)
    assert_refused(prepare(run_program), folder.name, "damaged", "tgt.ids")
    assert_refused(prepare(run_program, "prepared=b.en"), "b.en")
    assert_refused(prepare(run_program, "prepared=nowhere"), "nowhere is no prepared corpus")


def bad_utf8(text: Path) -> None:
    lines = (text / "b.fr").read_bytes().split(b"\n")
    lines[6] = b"caf\xe9"
    (text / "b.fr").write_bytes(b"\n".join(lines))


def cut_gzip(text: Path) -> None:
    whole = gzip.compress((text / "b.en").read_bytes())
    (text / "b.en").write_bytes(whole[: len(whole) // 2])
    (text / "b.en").rename(text / "b.en.gz")


def one_side_short(text: Path) -> None:
    (text / "b.fr").write_text("l homme\n" * 7, encoding="utf-8")


def no_text(text: Path) -> None:
    (text / "b.en").write_bytes(b"")


def no_text_at_all(text: Path) -> None:
    for name in ("b.en", "b.fr"):
        (text / name).write_bytes(b"")


def swapped_scripts(text: Path) -> None:
    (text / "b.fr").write_text(
        "".join(f"мужчина номер {i} видит собаку возле дома\n" for i in range(400)), encoding="utf-8"
    )


REFUSED = [
    (one_side_short, [], ["b.fr has 7 lines, b.en has 400", "line 8 of b.en has no partner"]),
    (bad_utf8, [], ["b.fr: line 7 is not UTF-8", "iconv"]),
    (cut_gzip, ["data.train_src=b.en.gz"], ["b.en.gz: damaged or cut gzip file after line"]),
    (no_text, [], ["b.en has 0 lines, b.fr has 400"]),
    (no_text_at_all, [], ["b.en", "is empty"]),
    (None, ["data.train_tgt=b.en"], ["400 identical sides", "the same file twice?", "cleaning.identical=false"]),
    (
        None,
        ["data.valid_src=b.en", "data.valid_tgt=b.fr"],
        ["400 in a dev or test set", "cleaning.decontaminate=false"],
    ),
    (swapped_scripts, ["data.source=en", "data.target=fr"], ["400 wrong script", "the right way round?"]),
    (None, ["cleaning.max_words=2"], ["400 too many words", "raise cleaning.max_words"]),
    (None, ["batching.max_pieces=2"], ["400 too long", "raise batching.max_pieces (2)"]),
    (None, ["tokenizer.vocab_size=9000"], ["the largest that works is", "tokenizer.shrink=true"]),
    (None, ["data.max_pairs=0"], ["data.max_pairs=0"]),
    (None, ["data.subset=last"], ["data.subset=last: give first or random"]),
    (None, ["workers=0"], ["workers=0"]),
    (None, ["data.train_src=none.en"], ["cannot read none.en"]),
]


@pytest.mark.parametrize(("spoil", "settings", "parts"), REFUSED)
def test_text_that_cannot_be_used_is_refused_in_a_line_and_leaves_nothing(
    text: Path, run_program: RunProgram, spoil: Any, settings: list[str], parts: list[str]
) -> None:
    if spoil is not None:
        spoil(text)
    assert_refused(prepare(run_program, *settings), *parts)
    assert not (text / "data").exists()


def test_what_only_looks_like_a_line_end_stays_inside_its_line(text: Path, run_program: RunProgram) -> None:
    odd = [
        "one\u2029two",
        "three\x0cfour",
        "five\x1csix\x1dsix",
        "seven\reight",
        "nine\u0085ten\x0beleven\u2028twelve\x00",
    ]
    insert(text / "b.en", 100, odd)
    insert(text / "b.fr", 100, ["ligne"] * 5)
    done = prepare(run_program, "data.subset=first")
    assert done.returncode == 0, done.stderr
    card = card_of(text)
    assert (card["read"], card["kept"]) == (405, 405)
    assert card["sides"]["source"]["lines_with_control_characters"] == 5
    assert "5 source lines hold control characters" in done.stdout
    prepared = open_prepared(folder_of(text))
    assert prepared.target.decode(prepared.train.tgt[404].tolist()).startswith("l homme numero 400 ")


def test_windows_files_and_a_byte_order_mark_are_the_same_text(text: Path, run_program: RunProgram) -> None:
    assert prepare(run_program).returncode == 0
    plain = card_of(text)["train_sha256"]
    shutil.rmtree(text / "data")
    windows = (text / "b.en").read_bytes().replace(b"\n", b"\r\n")
    (text / "b.en").write_bytes(b"\xef\xbb\xbf" + windows)
    assert prepare(run_program).returncode == 0
    assert card_of(text)["train_sha256"] == plain


def test_a_line_of_ten_megabytes_and_a_word_of_20000_letters_are_left_out_and_counted(
    text: Path, run_program: RunProgram
) -> None:
    insert(text / "b.en", 3, ["dog " * 2_500_000, "a" * 20_000])
    insert(text / "b.fr", 3, ["chien", "b"])
    done = prepare(run_program, "cleaning.max_ratio=null")
    assert done.returncode == 0, done.stderr
    assert card_of(text)["dropped"]["too long"]["pairs"] == 2
    assert len(card_of(text)["dropped"]["too long"]["examples"][0]["source"]) < 300


def test_quotes_and_tabs_in_a_table_mean_what_they_say(text: Path, run_program: RunProgram) -> None:
    odd = [
        '"Stop\tArrête',
        "Go on\tContinue",
        'He is "here"\tIl est là',
        '"Wait" she said\tAttends',
        '5" nail\tclou de 5"',
    ]
    rows = [
        f"{a}\t{b}" for a, b in zip(*((text / n).read_text().split("\n")[:-1] for n in ("b.en", "b.fr")), strict=True)
    ]
    (text / "q.tsv").write_text("\n".join(rows + odd) + "\n", encoding="utf-8")
    table = ["data.train_src=q.tsv", "data.train_tgt=null", "tokenizer.vocab_size=330", "tokenizer.shrink=true"]
    done = prepare(run_program, *table)
    assert done.returncode == 0, done.stderr
    prepared = open_prepared(folder_of(text))
    assert len(prepared.train) == 405
    assert prepared.source.decode(prepared.train.src[402].tolist()) == 'He is "here"'
    shutil.rmtree(text / "data")
    rows[8] += "\tthird"
    (text / "q.tsv").write_text("\n".join(rows + odd) + "\n", encoding="utf-8")
    assert_refused(prepare(run_program, *table), "q.tsv: line 9 has 3 columns")
    rows[8], rows[10] = rows[7], "no tab"
    (text / "q.tsv").write_text("\n".join(rows + odd) + "\n", encoding="utf-8")
    assert_refused(prepare(run_program, *table), "q.tsv: line 11 has 1 column")
    assert not (text / "data").exists()
    insert(text / "b.en", 7, ["a\ttab inside"])
    insert(text / "b.fr", 7, ["une tabulation"])
    assert prepare(run_program, "tokenizer.shrink=true").returncode == 0
    assert card_of(text)["kept"] == 401


def test_the_target_comes_back_as_it_was_written(text: Path, run_program: RunProgram) -> None:
    odd = ["x…", "½ tasse", "10\u00a0000 euros", "می\u200cخواهم", "m²", "Ａ１", "👩\u200d🔬", "C™"]
    insert(text / "b.en", 401, [str(i) for i in range(8)])
    insert(text / "b.fr", 401, odd)
    done = prepare(run_program, "tokenizer.shrink=true", "tokenizer.vocab_size=350")
    assert done.returncode == 0, done.stderr
    prepared = open_prepared(folder_of(text))
    assert [prepared.target.decode(prepared.train.tgt[400 + i].tolist()) for i in range(8)] == odd
    assert card_of(text)["sides"]["target"]["lines_rewritten"] == 0


def test_target_lines_that_do_not_come_back_are_counted_with_examples(text: Path, run_program: RunProgram) -> None:
    insert(text / "b.en", 2, ["two spaces here"])
    insert(text / "b.fr", 2, ["deux  espaces ici"])
    done = prepare(run_program, "tokenizer.vocab_size=320")
    assert done.returncode == 0, done.stderr
    card = card_of(text)
    assert card["sides"]["target"]["lines_rewritten"] == 1
    assert card["rewritten_targets"] == [{"pair": 2, "source": "two spaces here", "target": "deux  espaces ici"}]
    assert "1 of 401 target lines do not come back" in done.stdout


def test_many_duplicates_cost_no_more_pieces_and_are_counted(text: Path, run_program: RunProgram) -> None:
    assert prepare(run_program).returncode == 0
    once = (folder_of(text) / "target.model").read_bytes()
    shutil.rmtree(text / "data")
    for name in ("b.en", "b.fr"):
        (text / name).write_bytes((text / name).read_bytes() * 12)
    assert prepare(run_program).returncode == 0
    assert card_of(text)["dropped"]["duplicate"]["pairs"] == 4400
    assert (folder_of(text) / "target.model").read_bytes() == once


def test_swapped_sides_of_a_test_set_are_warned_about(text: Path, run_program: RunProgram) -> None:
    done = prepare(run_program, "data.test_src=v.fr", "data.test_tgt=v.en")
    assert done.returncode == 0, done.stderr
    assert "the sides of test look swapped" in done.stdout
    assert "the sides of valid" not in done.stdout


def test_tokenised_text_is_warned_about(text: Path, run_program: RunProgram) -> None:
    for name in ("b.en", "v.en"):
        (text / name).write_text((text / name).read_text().replace(" the ", " &quot; the "), encoding="utf-8")
    done = prepare(run_program, "tokenizer.vocab_size=320")
    assert "the source side looks tokenised" in done.stdout


def test_a_test_set_inside_the_training_text_is_left_out_of_it(text: Path, run_program: RunProgram) -> None:
    for name in ("b.en", "b.fr"):
        (text / f"t{name}").write_text("\n".join((text / name).read_text().upper().split("\n")[50:80]) + "\n")
    done = prepare(run_program, "data.test_src=tb.en", "data.test_tgt=tb.fr")
    assert done.returncode == 0, done.stderr
    assert card_of(text)["in_held_out_sets"] == {"test": 30}
    assert "30 training pairs are also in test" in done.stdout


@pytest.mark.slow
def test_lines_beyond_the_piece_learners_own_limit_are_learned_from(text: Path, run_program: RunProgram) -> None:
    for name in ("b.en", "b.fr"):
        short = (text / name).read_text(encoding="utf-8").split("\n")[:300]
        lines = [f"{n} " + "long words in a row " * 225 for n in range(29)]
        (text / name).write_text("\n".join([*lines, *short]) + "\n", encoding="utf-8")
    wide = ["batching.max_pieces=50000", "cleaning.identical=false", "tokenizer.shrink=true"]
    done = prepare(run_program, *wide)
    assert done.returncode == 0, done.stderr
    assert "trainer_interface" not in done.stderr
    assert card_of(text)["kept"] == 329
    with (text / "b.fr").open("a", encoding="utf-8") as file:
        file.write("mot " * 20_000 + "\n")
    with (text / "b.en").open("a", encoding="utf-8") as file:
        file.write("word " * 20_000 + "\n")
    done = prepare(run_program, *wide)
    assert "1 lines of over 65,536 bytes were not used to learn pieces from" in done.stderr


@pytest.mark.parametrize("subset", ["first", "random"])
def test_a_subset_is_read(text: Path, run_program: RunProgram, subset: str) -> None:
    done = prepare(
        run_program, "data.max_pairs=97", f"data.subset={subset}", "tokenizer.vocab_size=300", "tokenizer.shrink=true"
    )
    assert done.returncode == 0, done.stderr
    prepared = open_prepared(folder_of(text))
    numbers = [int(prepared.source.decode(prepared.train.src[i].tolist()).split()[3]) for i in range(97)]
    assert card_of(text)["read"] == 97
    assert numbers == sorted(set(numbers))
    assert (numbers == list(range(1, 98))) == (subset == "first")


def test_consecutive_sentences_are_joined_and_a_blank_pair_ends_a_document(text: Path, run_program: RunProgram) -> None:
    for name in ("b.en", "b.fr"):
        insert(text / name, 5, [""])
    done = prepare(run_program, "data.join=3", "cleaning.max_ratio=null")
    assert done.returncode == 0, done.stderr
    prepared = open_prepared(folder_of(text))
    found = [prepared.source.decode(prepared.train.src[i].tolist()) for i in range(3)]
    numbers = [[int(word) for word in line.split()[3::11]] for line in found]
    assert numbers == [[1, 2, 3], [4], [5, 6, 7]]


def test_a_full_disk_is_said_and_leaves_nothing(text: Path) -> None:
    for name in ("b.en", "b.fr"):
        lines = [f"{line} {n}" for n in range(40) for line in (text / name).read_text().split("\n")[:-1]]
        (text / name).write_text("\n".join(lines) + "\n")
    command = f"ulimit -f 64; exec {sys.executable} -m nmt.prepare {' '.join(files())} {PIECES}"
    done = subprocess.run(
        ["bash", "-c", command], cwd=text, env=program_environment(), capture_output=True, text=True, timeout=300
    )  # fmt: skip
    assert_refused(done, "cannot write data/prepared/", "Free some space", "data_dir=")
    assert not (text / "data").exists()


def test_a_folder_that_cannot_be_written_is_named(text: Path, run_program: RunProgram) -> None:
    assert_refused(prepare(run_program, "data_dir=b.en/x"), "cannot write b.en/x/prepared/")


def many_lines(folder: Path, count: int) -> None:
    rng = random.Random(3)
    words = [f"w{n}" for n in range(500)]
    for name in ("big.en", "big.fr"):
        with (folder / name).open("w", encoding="utf-8") as file:
            for n in range(count):
                file.write(f"{' '.join(rng.choices(words, k=12))} {n}\n")


@pytest.mark.slow
def test_killed_at_ten_random_moments_it_ends_with_the_same_bytes(text: Path, run_program: RunProgram) -> None:
    many_lines(text, 120_000)
    settings = [*files("big.en", "big.fr"), "tokenizer.vocab_size=400", "tokenizer.sample=5000", "workers=2"]
    started = time.monotonic()
    assert run_program("prepare", *settings, "data_dir=whole").returncode == 0
    seconds = time.monotonic() - started
    command = [sys.executable, "-m", "nmt.prepare", *settings, "data_dir=parts"]
    moments = random.Random(1)
    kills = 0
    for _ in range(10):
        process = subprocess.Popen(
            command, cwd=text, env=program_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            process.wait(timeout=1 + moments.random() * 0.5 * seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
    assert kills
    assert run_program("prepare", *settings, "data_dir=parts").returncode == 0
    whole, parts = (contents(text / place / "prepared") for place in ("whole", "parts"))
    assert {path.split("/prepared/")[1]: digest for path, digest in whole.items()} == {
        path.split("/prepared/")[1]: digest for path, digest in parts.items()
    }
    assert not [
        p
        for p in psutil.process_iter(["cmdline", "cwd"])
        if "nmt.data.preparation.worker_pool" in " ".join(p.info.get("cmdline") or []) and p.info["cwd"] == str(text)
    ]


@pytest.mark.slow
def test_two_trainings_started_together_prepare_once_and_both_train(text: Path) -> None:
    many_lines(text, 12_000)
    settings = [*files("big.en", "big.fr"), *SMALL, "tokenizer.vocab_size=400"]
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "nmt.train", "experiment=rnn", *settings, f"run_dir=r{n}"],
            cwd=text, env=program_environment(), stderr=subprocess.PIPE, text=True,
        )
        for n in range(2)
    ]  # fmt: skip
    said = [process.communicate(timeout=300)[1] for process in started]
    assert [process.returncode for process in started] == [0, 0], said
    assert sorted("learning" in one for one in said) == [False, True]
    assert sorted(path.name for path in text.iterdir() if path.name in ("r0", "r1")) == ["r0", "r1"]


@pytest.mark.slow
def test_a_run_is_evaluated_on_the_test_text_as_it_was_prepared_where_the_files_are_gone(
    text: Path, run_program: RunProgram
) -> None:
    tests = ["data.test_src=v.fr", "data.test_tgt=v.en"]
    assert run_program("train", "experiment=rnn", *files(), *tests, *SMALL, "run_dir=r").returncode == 0
    for name in ("b.en", "v.en", "v.fr"):
        (text / name).unlink()
    done = run_program("evaluate", "checkpoint=r", "beam=1", "ter=false", "max_extra=5")
    assert done.returncode == 0, done.stderr
    assert "as it was prepared: data/prepared/" in done.stderr
    shutil.rmtree(text / "data")
    assert_refused(run_program("evaluate", "checkpoint=r", "force=true"), "cannot read v.fr")


def test_fifty_sentences_of_a_real_test_set_are_found_in_training_text(
    tmp_path: Path, run_program: RunProgram, nmt_data: Path
) -> None:
    def lines(name: str) -> list[str]:
        return gzip.open(nmt_data / name).read().decode("utf-8").split("\n")[:-1]

    news = list(zip(lines("newstest/newstest2014-fren.en.gz"), lines("newstest/newstest2014-fren.fr.gz"), strict=True))
    long_enough = [pair for pair in news if min(len(side.split()) for side in pair) >= 4]
    changes = (
        lambda pair: (pair[0].upper(), pair[1]),
        lambda pair: (pair[0].replace(" ", "  "), pair[1].lower()),
        lambda pair: (pair[0].replace(",", " ,").rstrip("."), "une autre phrase, sans aucun rapport ici"),
        lambda pair: ("quite another sentence, which has no relation to it", f"« {pair[1]} »"),
        lambda pair: pair,
    )
    hidden = [changes[i % 5](pair) for i, pair in enumerate(random.Random(4).sample(long_enough, 50))]
    train = list(zip(*(lines(f"europarl-fren/train.{side}.gz")[:3000] for side in ("en", "fr")), strict=True))
    for i, pair in enumerate(hidden):
        train.insert(17 + 60 * i, pair)
    for side, name in enumerate(("t.en", "t.fr")):
        (tmp_path / name).write_text("".join(f"{pair[side]}\n" for pair in train), encoding="utf-8", newline="\n")
    tests = (
        f"data.test_{key}={nmt_data}/newstest/newstest2014-fren.{s}.gz" for key, s in (("src", "en"), ("tgt", "fr"))
    )
    settings = ["data.source=en", "data.target=fr", "cleaning.max_ratio=null", "tokenizer.vocab_size=1000"]
    done = run_program("prepare", "data=text", "data.train_src=t.en", "data.train_tgt=t.fr", *tests, *settings)
    assert done.returncode == 0, done.stderr
    card = card_of(tmp_path)
    assert card["in_held_out_sets"] == {"test": 50}
    assert card["dropped"]["in a dev or test set"]["examples"][0]["pair"] == 18
    assert "50 training pairs are also in test" in done.stdout


def test_sets_by_sacrebleus_names_are_kept_out_of_training_and_with_the_text(
    text: Path, run_program: RunProgram, tmp_path: Path
) -> None:
    wet = ["it rains in the old town again", "we stay at home and read"]
    nass = ["il pleut encore dans la vieille ville", "nous restons a la maison et lisons"]
    write_set(tmp_path / "sacrebleu", "wmt13", "en-fr", {"src": wet[:1], "ref": nass[:1]})
    environment = write_set(tmp_path / "sacrebleu", "wmt14/full", "en-fr", {"src": wet, "ref": nass})
    insert(text / "b.en", 9, [wet[1].upper()])
    insert(text / "b.fr", 9, ["autre chose"])
    named = ["evaluate.test=wmt14/full", "evaluate.valid=wmt13", "data.source=en", "data.target=fr"]
    done = prepare(run_program, *named, env=environment)
    assert done.returncode == 0, done.stderr
    assert card_of(text)["in_held_out_sets"] == {"wmt14-full": 1}
    prepared = open_prepared(folder_of(text))
    assert [pair.source for pair in prepared.valid_pairs] == wet[:1]
    assert stored_test_sets(folder_of(text))["wmt14-full"].sources == wet
    shutil.rmtree(text / "data")
    assert_refused(prepare(run_program, *named[:1], env=environment), "data.source and data.target")
    assert not (text / "data").exists()


@pytest.mark.slow
def test_corpora_are_mixed_by_weight(text: Path, run_program: RunProgram) -> None:
    def part(name: str, src: str, tgt: str) -> list[str]:
        return [f"+data.parts.{name}.train_src={src}", f"+data.parts.{name}.train_tgt={tgt}"]

    mix = ["data=mix", *part("few", "v.en", "v.fr"), *part("many", "b.en", "b.fr"), PIECES]
    done = run_program("prepare", *mix, "+data.weights.few=1", "+data.weights.many=3")
    assert done.returncode == 0, done.stderr
    prepared = open_prepared(folder_of(text))
    assert [tuple(part) for part in prepared.train.parts] == [("few", 0, 40, 1.0), ("many", 40, 440, 3.0)]
    shutil.rmtree(text / "data")
    done = run_program("train", "experiment=rnn", *mix, "training.max_updates=2", "size.embedding=16", "run_dir=r")
    assert done.returncode == 0, done.stderr
    assert "440 pairs" in done.stderr
    assert open_prepared(folder_of(text)).train.parts == ()


HUB_REFUSED = [
    (["data.name=de-en"], ["no configuration de-en", "one of: fr-en"]),
    (["data.name=fr-en", "data.train_split=training"], ["data.train_split=training", "there are: train"]),
    (["data.name=fr-en", "data.target=de"], ["no column de", "there are:", "fr", "en"]),
    (["data.name=fr-en", "data.subset=last"], ["data.subset=last: give first or random"]),
    (
        ["data.path=nobody/nothing", "data.name=null"],
        ["cannot reach the hub for nobody/nothing", "nmt.prepare", "copy"],
    ),
]


@pytest.mark.parametrize(("settings", "parts"), HUB_REFUSED)
def test_a_dataset_that_lacks_what_is_asked_for_is_refused_with_what_it_has(
    text: Path, run_program: RunProgram, settings: list[str], parts: list[str]
) -> None:
    folder = text / "hub" / "fr-en"
    folder.mkdir(parents=True)
    rows = [json.dumps({"translation": {"en": f"a cat {n}", "fr": f"un chat {n}"}}) for n in range(9)]
    (folder / "train.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    given = ["data=hub", "data.path=hub", "data.source=en", "data.target=fr", *settings]
    environment = {"HF_HOME": str(text / "hf"), "HF_ENDPOINT": "http://127.0.0.1:9"}
    assert_refused(run_program("prepare", *given, env=environment), *parts)
    assert not (text / "data").exists()
