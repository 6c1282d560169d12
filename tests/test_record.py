"""A record names no place on the machine that made it."""

import pytest

from nmt.record import without_absolute_paths


@pytest.mark.parametrize(
    ("typed", "recorded"),
    [
        ("input=/home/me/a.en", "input=a.en"),
        ("input=/data/sets/a.en", "input=$NMT_DATA/sets/a.en"),
        ("runs=[/home/me/rnn,runs/luong,/data/x.hyp]", "runs=[rnn,runs/luong,$NMT_DATA/x.hyp]"),
        ("runs=/home/me/rnn,/home/me/luong", "runs=rnn,luong"),
        ("evaluate.test=wmt14/full", "evaluate.test=wmt14/full"),
        ("sentence=either/or", "sentence=either/or"),
        ("/home/me/script.py", "script.py"),
    ],
)
def test_absolute_paths_keep_their_last_part(monkeypatch: pytest.MonkeyPatch, typed: str, recorded: str) -> None:
    monkeypatch.setenv("NMT_DATA", "/data")
    assert without_absolute_paths(typed) == recorded
