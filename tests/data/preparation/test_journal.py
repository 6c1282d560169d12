"""What was saved is there after a crash, and nothing else."""

from pathlib import Path

import numpy as np

from nmt.data.preparation.journal import Journal

ARRAYS = {"a": np.uint16, "b": np.int64}


def test_what_was_not_saved_is_cut_off_when_the_journal_is_opened_again(tmp_path: Path) -> None:
    journal = Journal(tmp_path, ARRAYS, "note.json")
    journal.state = {"read": 3}
    journal.append(a=np.array([1, 2, 3]), b=np.array([7]))
    journal.save()
    journal.append(a=np.array([4, 5]))
    journal.close()

    again = Journal(tmp_path, ARRAYS, "note.json")
    assert again.state == {"read": 3}
    np.testing.assert_array_equal(again.array("a"), [1, 2, 3])
    again.append(a=np.array([6]), b=np.array([8]))
    again.save()
    np.testing.assert_array_equal(again.array("a"), [1, 2, 3, 6])
    np.testing.assert_array_equal(again.array("b"), [7, 8])


def test_a_note_half_written_before_a_crash_is_no_note(tmp_path: Path) -> None:
    journal = Journal(tmp_path, ARRAYS, "note.json")
    journal.append(a=np.array([1]))
    journal.close()
    again = Journal(tmp_path, ARRAYS, "note.json")
    assert again.state == {}
    assert len(again.array("a")) == 0
    again.append(a=np.array([2]))
    again.save()
    np.testing.assert_array_equal(again.array("a"), [2])
