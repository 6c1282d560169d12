"""What was saved is there after a crash, and nothing else."""

from pathlib import Path

import numpy as np

from nmt.data.preparation.resumable_arrays import ResumableArrays

ARRAYS = {"a": np.uint16, "b": np.int64}


def test_what_was_not_saved_is_cut_off_when_the_arrays_are_opened_again(tmp_path: Path) -> None:
    arrays = ResumableArrays(tmp_path, ARRAYS, "state.json")
    arrays.state = {"read": 3}
    arrays.append(a=np.array([1, 2, 3]), b=np.array([7]))
    arrays.save()
    arrays.append(a=np.array([4, 5]))
    arrays.close()

    again = ResumableArrays(tmp_path, ARRAYS, "state.json")
    assert again.state == {"read": 3}
    np.testing.assert_array_equal(again.array("a"), [1, 2, 3])
    again.append(a=np.array([6]), b=np.array([8]))
    again.save()
    np.testing.assert_array_equal(again.array("a"), [1, 2, 3, 6])
    np.testing.assert_array_equal(again.array("b"), [7, 8])


def test_without_saved_state_nothing_is_there(tmp_path: Path) -> None:
    arrays = ResumableArrays(tmp_path, ARRAYS, "state.json")
    arrays.append(a=np.array([1]))
    arrays.close()
    again = ResumableArrays(tmp_path, ARRAYS, "state.json")
    assert again.state == {}
    assert len(again.array("a")) == 0
    again.append(a=np.array([2]))
    again.save()
    np.testing.assert_array_equal(again.array("a"), [2])
