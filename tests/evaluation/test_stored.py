"""Evaluations on disk."""

from pathlib import Path

import pytest

from nmt.data.text import checksum
from nmt.errors import UserError
from nmt.evaluation.stored import lines_sha256, read_stored, require_writable, to_json
from nmt.files import write_text


def test_the_checksum_of_lines_is_that_of_a_file_of_them(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one\ntwo \xc3\xa9\n")
    assert lines_sha256(["one", "two é"]) == checksum(tmp_path / "a")


def test_nan_never_reaches_a_file() -> None:
    with pytest.raises(ValueError):
        to_json({"score": float("nan")})


def test_a_folder_that_cannot_be_written_is_one_line_naming_output(tmp_path: Path) -> None:
    (tmp_path / "evaluation").write_text("a file where a folder should be")
    with pytest.raises(UserError, match="output=FOLDER"):
        require_writable(tmp_path / "evaluation")


def test_a_write_leaves_the_new_file_alone(tmp_path: Path) -> None:
    write_text(tmp_path / "a.json", "old")
    write_text(tmp_path / "a.json", "new\n")
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]
    assert (tmp_path / "a.json").read_bytes() == b"new\n"


@pytest.mark.parametrize("damage", ["other hypotheses\n", None])
def test_an_evaluation_whose_hypotheses_changed_counts_as_absent(tmp_path: Path, damage: str | None) -> None:
    write_text(tmp_path / "t.json", to_json({"hypotheses_sha256": lines_sha256(["a"])}))
    write_text(tmp_path / "t.hyp.txt", "a\n")
    stored = read_stored(tmp_path, "t")
    assert stored is not None
    assert stored[1] == ["a"]
    if damage is None:
        (tmp_path / "t.hyp.txt").unlink()
    else:
        write_text(tmp_path / "t.hyp.txt", damage)
    assert read_stored(tmp_path, "t") is None
