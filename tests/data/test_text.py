"""Lines end at \\n and \\r\\n only; what is wrong with a file is said with its name and line."""

import gzip
from pathlib import Path

import pytest

from nmt.data.corpus import Pair
from nmt.data.text import TextCorpus, checksum, read_lines, read_parallel, read_tsv, words
from nmt.errors import ConfigError, UserError


def write(path: Path, content: bytes) -> str:
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return str(path)


ODD = "one\u2029two\nthree\x0cfour\nfive\x1csix\x1dsix\nseven\reight\nn\x85i\x0bne\u2028\n"


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_only_a_newline_ends_a_line(tmp_path: Path, name: str) -> None:
    assert list(read_lines(write(tmp_path / name, ODD.encode()))) == ODD.split("\n")[:-1]


def test_windows_line_ends_a_byte_order_mark_and_a_missing_last_newline_leave_no_trace(tmp_path: Path) -> None:
    assert list(read_lines(write(tmp_path / "w", b"\xef\xbb\xbfa b\r\n\r\nc"))) == ["a b", "", "c"]


def test_an_empty_file_has_no_lines(tmp_path: Path) -> None:
    assert list(read_lines(write(tmp_path / "e", b""))) == []


def test_bytes_that_are_not_utf8_are_named_with_file_and_line(tmp_path: Path) -> None:
    path = write(tmp_path / "latin.txt", b"good\ncaf\xe9\n")
    with pytest.raises(UserError, match=r"latin\.txt: line 2 is not UTF-8 \(byte 4 is 0xe9\)"):
        list(read_lines(path))


def test_a_cut_gzip_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "cut.gz"
    path.write_bytes(gzip.compress(b"a line\n" * 5000)[:40])
    with pytest.raises(UserError, match=r"cut\.gz: damaged or cut gzip file"):
        list(read_lines(path))


@pytest.mark.parametrize("name", ["absent.txt", ""])
def test_a_missing_file_or_a_directory_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match=str(tmp_path / name)):
        list(read_lines(tmp_path / name))


@pytest.mark.parametrize(("left", "right", "longer"), [("a\nb\nc\n", "x\ny\n", "s"), ("a\n", "x\ny\nz\n", "t")])
def test_unequal_line_counts_name_both_files_and_counts(tmp_path: Path, left: str, right: str, longer: str) -> None:
    source, target = write(tmp_path / "s", left.encode()), write(tmp_path / "t", right.encode())
    with pytest.raises(UserError, match=rf"{longer} has 3; line \d of \S+{longer} has no partner"):
        list(read_parallel(source, target))


def test_quotes_mean_nothing_in_a_tsv(tmp_path: Path) -> None:
    rows = '"Stop\tArrête\nHe is "here"\tIl est là\n5" nail\tclou de 5"\n'
    pairs = list(read_tsv(write(tmp_path / "q.tsv", rows.encode())))
    assert pairs == [Pair('"Stop', "Arrête"), Pair('He is "here"', "Il est là"), Pair('5" nail', 'clou de 5"')]


@pytest.mark.parametrize(("row", "count"), [("a\tb\tc", "3 columns"), ("no tab", "1 column,")])
def test_a_row_with_another_number_of_tabs_is_named(tmp_path: Path, row: str, count: str) -> None:
    path = write(tmp_path / "t.tsv", f"a\tb\n{row}\n".encode())
    with pytest.raises(UserError, match=rf"t\.tsv: line 2 has {count}"):
        list(read_tsv(path))


def test_tabs_inside_plain_files_are_text(tmp_path: Path) -> None:
    source, target = write(tmp_path / "s", b"the\tman\n"), write(tmp_path / "t", b"der Mann\n")
    assert list(read_parallel(source, target)) == [Pair("the\tman", "der Mann")]


def test_several_references_are_kept_as_one_list_each(tmp_path: Path) -> None:
    files = {name: write(tmp_path / name, f"{name}1\n{name}2\n".encode()) for name in ("s", "r", "q")}
    corpus = TextCorpus(files["s"], files["r"], test_src=files["s"], test_tgt=[files["r"], files["q"]])
    test = corpus.test_sets()["test"]
    assert test.sources == ["s1", "s2"]
    assert test.references == [["r1", "r2"], ["q1", "q2"]]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"train_src": None}, "needs data.train_src"),
        ({"train_src": "a.en"}, "needs data.train_tgt"),
        ({"train_src": "a.tsv", "train_tgt": "a.fr"}, "leave data.train_tgt away"),
        ({"train_src": "a.en", "train_tgt": "a.fr", "valid_tgt": "v.fr"}, "without data.valid_src"),
    ],
)
def test_half_given_files_are_refused_with_the_key(settings: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TextCorpus(**settings)


def test_the_checksum_is_of_the_text_and_not_of_its_packing(tmp_path: Path) -> None:
    assert checksum(write(tmp_path / "a", b"x\ny\n")) == checksum(write(tmp_path / "a.gz", b"x\ny\n"))


def test_provenance_holds_no_directory(tmp_path: Path) -> None:
    corpus = TextCorpus(write(tmp_path / "s", b"x\n"), write(tmp_path / "t", b"y\n"), source="en")
    assert str(tmp_path) not in str(corpus.provenance())


def test_words_are_divided_by_any_white_space() -> None:
    assert words("the  old\tdog\u00a0sleeps ") == ["the", "old", "dog", "sleeps"]


def test_real_lines_with_a_next_line_character_stay_in_step(nmt_data: Path) -> None:
    folder = nmt_data / "newstest"
    assert sum(1 for _ in read_parallel(str(folder / "newstest2009.de.gz"), str(folder / "newstest2009.fr.gz"))) == 2525
