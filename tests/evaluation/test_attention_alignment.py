"""Attention as alignment through the programs: evaluate scores it against gold links, translate writes it."""

import json
from pathlib import Path

import pytest

from nmt.data.synthetic import SyntheticCorpus
from nmt.errors import ConfigError, UserError
from nmt.evaluation.alignment_error import all_sure, score_alignments
from nmt.evaluation.evaluation_report import text_report
from nmt.settings import AlignmentSettings, GoldSettings
from nmt.translate import alignment_writer
from tests.decoding.conftest import untrained
from tests.program_server import run_module
from tests.test_evaluate import evaluate

QUICK = ("beam=1", "max_ratio=0", "max_extra=2", "ter=false", "bootstrap.resamples=40")
SIZES = {"train_pairs": 50, "valid_pairs": 3, "test_pairs": 11, "max_length": 5}


@pytest.fixture(autouse=True)
def in_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Transformer that has hardly learned anything, with a test set whose alignments are known."""
    folder = tmp_path_factory.mktemp("runs")
    command = "experiment=transformer data=copy training.max_updates=2 device=cpu run_dir=transformer"
    command += " size.embedding=32 " + " ".join(f"data.{key}={size}" for key, size in SIZES.items())
    run_module("nmt.train", command.split(), folder).check_returncode()
    return folder / "transformer"


def links_in(path: Path) -> list[list[tuple[int, int]]]:
    lines = path.read_text().split("\n")
    assert lines.pop() == ""
    return [[(int(i), int(j)) for i, j in (link.split("-") for link in line.split())] for line in lines]


def test_attention_is_scored_where_the_test_set_has_alignments(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (first,) = evaluate(f"checkpoint={run}", *QUICK, "output=o")
    assert "AER" in text_report(first)
    stored = json.loads(Path("o/test.alignment.json").read_text())
    assert stored["alignment"] == first["alignment"]
    assert (stored["system"], stored["test"], stored["sentences"], stored["not_aligned"]) == (
        "transformer",
        "test",
        11,
        0,
    )
    ways = [(entry["attention"], entry["shift"]) for entry in first["alignment"]]
    layers, heads = ([way for way in ways if way[0].startswith("best head: ") is best] for best in (False, True))
    assert len(set(layers)) == len(layers) == 2 * (layers[-1][0] == "mean of layers and heads") + 4
    assert [shift for _, shift in heads] == [0, 1]
    [default] = [entry for entry in first["alignment"] if entry["default"]]
    assert (default["attention"], default["shift"]) == ("mean of layers and heads", 0)

    # the links in the file have the error that is given
    gold = SyntheticCorpus(**SIZES).test_sets()["test"].alignments
    assert gold is not None
    links = links_in(Path("o/test.alignment.txt"))
    assert score_alignments([set(line) for line in links], [all_sure(line) for line in gold])[0] == default["aer"]
    assert sum(row["n"] for row in default["by_length"]) == 11

    # again: nothing is computed; other settings, other links
    capsys.readouterr()
    before = Path("o/test.alignment.json").stat().st_mtime_ns
    (second,) = evaluate(f"checkpoint={run}", *QUICK, "output=o")
    assert second == first
    assert "made again with force=true" in capsys.readouterr().err
    assert Path("o/test.alignment.json").stat().st_mtime_ns == before
    (other,) = evaluate(f"checkpoint={run}", *QUICK, "output=o", "alignment.layer=1", "alignment.shift=1")
    [default] = [entry for entry in other["alignment"] if entry["default"]]
    assert (default["attention"], default["shift"]) == ("layer 1, mean of heads", 1)
    assert Path("o/test.alignment.json").stat().st_mtime_ns > before

    (without,) = evaluate(f"checkpoint={run}", *QUICK, "output=p", "alignment.score=false")
    assert "alignment" not in without
    assert "AER" not in text_report(without)
    assert not list(Path("p").glob("*alignment*"))


def test_gold_links_may_be_in_a_file_of_either_direction(run: Path) -> None:
    Path("s").write_text("a b c\n\nd\n")
    Path("t").write_text("a b\nb\nd e\n")
    Path("gold").write_text("1-1 3p2\n\n1-2\n")
    Path("turned").write_text("1-1 2p3\n\n2-1\n")
    pair = (f"checkpoint={run}", *QUICK, "test.src=s", "test.ref=t", "alignment.base=1", "output=o")
    (there,) = evaluate(*pair, "alignment.gold=gold")
    (back,) = evaluate(*pair, "alignment.gold=turned", "alignment.reverse=true")
    assert [entry["aer"] for entry in there["alignment"]] == [entry["aer"] for entry in back["alignment"]]
    assert {entry["gold"] for entry in there["alignment"]} == {"gold"}
    blank = links_in(Path("o/s.alignment.txt"))[1]
    assert blank == []


def test_wrong_gold_is_refused_before_anything_is_translated(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("s").write_text("a b c\n")
    Path("gold").write_text("1-1 3-3\n")
    pair = (f"checkpoint={run}", *QUICK, "test.src=s", "test.ref=s", "output=o", "alignment.gold=gold")
    with pytest.raises(UserError, match="gold: line 1: link 3-3 leaves the sentence"):
        evaluate(*pair, "alignment.base=0")
    assert not Path("o").exists()
    with pytest.raises(ConfigError, match=r"alignment\.gold=FILE needs alignment\.base=0 or 1"):
        evaluate(*pair)
    with pytest.raises(ConfigError, match=r"alignment\.gold goes with checkpoint="):
        evaluate("hypotheses=s", "references=s", "alignment.gold=gold", "alignment.base=0")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"base": 2}, "alignment.base=2"),
        ({"base": "1"}, "alignment.base=1"),
        ({"shift": 2}, "alignment.shift=2"),
        ({"layer": 0}, "alignment.layer=0"),
        ({"layer": "last"}, "alignment.layer=last"),
        ({"reverse": "no"}, "alignment.reverse=no"),
    ],
)
def test_settings_that_cannot_be_used_are_refused_by_their_key(settings: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        GoldSettings.defaults(**settings)


def test_translate_refuses_what_cannot_be_aligned() -> None:
    with (
        pytest.raises(UserError, match="has no attention"),
        alignment_writer("links", AlignmentSettings.defaults(), untrained("rnn")),
    ):
        pass
    with (
        pytest.raises(ConfigError, match=r"alignment\.layer=2"),
        alignment_writer("links", AlignmentSettings.defaults(layer=2), untrained("luong")),
    ):
        pass
    assert not Path("links").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "src", "ref", "gold", "base"),
    [
        ("align-hansards-enfr", "test.en.gz", "test.fr.gz", "test.en-fr.gold.gz", 1),
        ("align-europarl-deen-100", "test.de.gz", "test.en.gz", "test.de-en.gold.gz", 0),
    ],
)
def test_the_gold_sets_of_real_text_fit(
    run: Path, nmt_data: Path, folder: str, src: str, ref: str, gold: str, base: int
) -> None:
    def settings(first: str, second: str) -> list[str]:
        files = {"test.src": first, "test.ref": second, "alignment.gold": gold}
        return [f"checkpoint={run}", *QUICK, "output=o", "max_src_pieces=300"] + [
            f"{key}={nmt_data / folder / f}" for key, f in files.items()
        ]

    (there,) = evaluate(*settings(src, ref), f"alignment.base={base}")
    assert there["not_aligned"] < there["alignment"][0]["n"] / 2
    assert all(0.5 < entry["aer"] < 1 for entry in there["alignment"])  # untrained
    (back,) = evaluate(*settings(ref, src), f"alignment.base={base}", "alignment.reverse=true")
    assert back["alignment"][0]["n"] == there["alignment"][0]["n"]
    with pytest.raises(UserError, match=r"gold.*line"):
        evaluate(*settings(src, ref), f"alignment.base={1 - base}")
