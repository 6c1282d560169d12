"""Local copies of datasets, with and without the hub's card: the pairs they give, and what is said where they fail."""

import csv
import errno
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nmt.data.corpus import Pair
from nmt.data.hub import HubCorpus
from nmt.errors import ConfigError, UserError

Row = tuple[str | None, str | None]
TRAIN: list[Row] = [("a small boat", "un petit bateau"), ("the sea", "la mer"), ("it rains", "il pleut")]
ODD = "one\u0085two\u2028three\x0cfour\x1cfive\x00six\ufeff"
CARD = """---
license: unknown
dataset_info:
- config_name: fr-en
  splits:
  - name: train
    num_examples: 40000000
    num_bytes: 1
configs:
{configs}---
# Dataset card
"""


def write_parquet(path: Path, rows: Sequence[Row], keys: Row = ("en", "fr")) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    cells = [dict(zip(keys, row, strict=True)) for row in rows]
    pq.write_table(pa.table({"translation": pa.array(cells)}), path)
    return path


@pytest.fixture
def wmt(tmp_path: Path) -> Path:
    """Two configurations as the hub lays them out: a folder each, splits by file name, training in two parts."""
    folder = tmp_path / "wmt14"
    write_parquet(folder / "fr-en" / "train-00000-of-00002.parquet", TRAIN[:2])
    write_parquet(folder / "fr-en" / "train-00001-of-00002.parquet", TRAIN[2:])
    write_parquet(folder / "fr-en" / "validation-00000-of-00001.parquet", [("a cat", "un chat")])
    write_parquet(folder / "fr-en" / "test-00000-of-00001.parquet", [("a dog", "un chien"), ("no", "non")])
    write_parquet(folder / "de-en" / "train-00000-of-00001.parquet", [("the sea", "das Meer")], ("en", "de"))
    return folder


def write_card(folder: Path, *configurations: str) -> None:
    splits = ("train", "validation", "test")
    files = {name: [f"  - split: {split}\n    path: {name}/{split}-*\n" for split in splits] for name in configurations}
    configs = "".join(f"- config_name: {name}\n  data_files:\n{''.join(lines)}" for name, lines in files.items())
    (folder / "README.md").write_text(CARD.format(configs=configs), encoding="utf-8")


@pytest.fixture
def hub(tmp_path: Path) -> Callable[..., HubCorpus]:
    """HubCorpus(...) from English to French, with a cache of the test's own."""

    def make(path: Path | str, source: str = "en", target: str = "fr", **settings: Any) -> HubCorpus:
        return HubCorpus(str(path), source=source, target=target, cache_dir=str(tmp_path / "cache"), **settings)

    return make


def pairs(corpus: HubCorpus) -> list[tuple[str, str]]:
    return [(pair.source, pair.target) for pair in corpus.train()]


@pytest.mark.parametrize("card", [(), ("cs-en", "fr-en", "de-en")])  # the card lists one that was not copied
def test_a_configuration_is_found_with_and_without_a_card(wmt: Path, hub: Any, card: tuple[str, ...]) -> None:
    if card:
        write_card(wmt, *card)
    corpus = hub(wmt, name="fr-en")
    assert pairs(corpus) == TRAIN
    assert list(corpus.valid()) == [Pair("a cat", "un chat")]
    test = corpus.test_sets()["test"]
    assert (test.name, test.sources, test.references) == ("test", ["a dog", "no"], [["un chien", "non"]])
    assert (corpus.name, corpus.source_language, corpus.target_language) == ("wmt14", "en", "fr")


def test_the_two_directions_are_one_dataset_swapped(wmt: Path, hub: Any) -> None:
    assert pairs(hub(wmt, "fr", "en", name="fr-en")) == [(french, english) for english, french in TRAIN]


def test_the_folder_of_a_configuration_may_be_given_alone(wmt: Path, hub: Any) -> None:
    assert pairs(hub(wmt / "fr-en", name="fr-en")) == TRAIN
    assert pairs(hub(wmt / "fr-en")) == TRAIN


def write_jsonl(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def test_jsonl_with_plain_columns_and_splits_by_file_name(tmp_path: Path, hub: Any) -> None:
    for name, row in (("train", ("ein Hund", "a dog")), ("val", ("eine Katze", "a cat")), ("test", ("nein", "no"))):
        write_jsonl(tmp_path / "m" / f"{name}.jsonl", [{"en": row[1], "de": row[0]}])
    corpus = hub(tmp_path / "m", "de", "en")
    assert pairs(corpus) == [("ein Hund", "a dog")]
    assert [*corpus.valid()] == [Pair("eine Katze", "a cat")]
    assert corpus.test_sets()["test"].sources == ["nein"]


@pytest.mark.parametrize(("suffix", "tab"), [("csv", ","), ("tsv", "\t")])
def test_in_a_table_numbers_and_the_words_for_nothing_are_text(tmp_path: Path, hub: Any, suffix: str, tab: str) -> None:
    rows = [("NA", "None"), ("007", "1.50"), ('say "no", please', "null"), ("", "nan"), (ODD, "x")]
    with (tmp_path / f"pairs.{suffix}").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=tab).writerows([("en", "fr"), *rows])
    assert pairs(hub(tmp_path / f"pairs.{suffix}")) == rows


def test_only_line_ends_are_changed_and_missing_cells_are_empty(tmp_path: Path, hub: Any) -> None:
    rows: list[Row] = [(ODD, "a\nb\r\nc\rd"), (None, "x"), ("y", None), ("\u3000z ", "")]
    file = write_parquet(tmp_path / "a.parquet", rows)
    assert pairs(hub(file)) == [(ODD, "a b c d"), ("", "x"), ("y", ""), ("\u3000z ", "")]
    write_jsonl(tmp_path / "a.jsonl", [{"en": source, "fr": target} for source, target in rows])
    assert pairs(hub(tmp_path / "a.jsonl")) == pairs(hub(file))


def test_columns_may_be_called_otherwise_than_their_languages(tmp_path: Path, hub: Any) -> None:
    file = write_jsonl(tmp_path / "t.jsonl", [{"premise": "yes", "meta": {"other": "oui"}, "id": 7}])
    corpus = hub(file, source_column="premise", target_column="other")
    assert pairs(corpus) == [("yes", "oui")]
    assert (corpus.source_language, corpus.target_language) == ("en", "fr")


def test_a_split_may_be_cut_from_another(tmp_path: Path, hub: Any) -> None:
    rows: list[Row] = [(f"line {number}", f"ligne {number}") for number in range(13)]
    corpus = hub(write_parquet(tmp_path / "a.parquet", rows), train_split="train[3:]", valid_split="train[:3]")
    assert pairs(corpus) == rows[3:]
    assert [pair.source for pair in corpus.valid()] == ["line 0", "line 1", "line 2"]
    assert corpus.expected_pairs() == 10


def test_splits_that_are_usual_may_be_missing_and_others_may_not(tmp_path: Path, hub: Any) -> None:
    file = write_parquet(tmp_path / "a.parquet", TRAIN)
    assert list(hub(file).valid()) == []
    assert hub(file).test_sets() == {}
    assert list(hub(file, valid_split=None).valid()) == []
    with pytest.raises(ConfigError, match=r"data\.test_split=held_out: .* no such split; there are: train$"):
        hub(file, test_split="held_out").test_sets()
    with pytest.raises(ConfigError, match=r"data\.valid_split=other\[:1%\]: .*; there are: train$"):
        hub(file, valid_split="other[:1%]").valid()


def test_a_selection_is_taken_of_the_training_pairs_alone(wmt: Path, hub: Any) -> None:
    corpus = hub(wmt, name="fr-en", max_pairs=1, join=2)
    assert pairs(corpus) == [("a small boat the sea", "un petit bateau la mer")]
    assert len(corpus.test_sets()["test"].sources) == 2
    random = hub(wmt, name="fr-en", max_pairs=2, subset="random", seed=7)
    assert pairs(random) == pairs(random)
    assert len(pairs(random)) == 2
    assert random.expected_pairs() == 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, r"wmt14 has several configurations; choose data\.name, one of: de-en, fr-en$"),
        ({"name": "ru-en"}, r"wmt14 has no configuration ru-en; choose data\.name, one of: de-en, fr-en$"),
        ({"name": "fr-en", "source": "xx"}, r"no column xx; there are: en \(in translation\), fr \(in translation\)"),
        ({"name": "fr-en", "source_column": "translation"}, "no column translation; there are: en"),
    ],
)
def test_what_is_not_there_is_said_with_what_is(wmt: Path, hub: Any, settings: dict[str, Any], message: str) -> None:
    for card in (False, True):
        if card:
            write_card(wmt, "de-en", "fr-en")
        with pytest.raises(ConfigError, match=message):
            hub(wmt, **settings).train()


@pytest.mark.parametrize("cell", [7, ["a"], True])
def test_a_column_that_is_no_text_is_refused(tmp_path: Path, hub: Any, cell: Any) -> None:
    file = write_jsonl(tmp_path / "t.jsonl", [{"en": cell, "fr": "x"}])
    with pytest.raises(ConfigError, match=r"column en of train of \S+ is not text but "):
        hub(file).train()


def test_text_mixed_with_other_values_is_refused_rather_than_quoted(tmp_path: Path, hub: Any) -> None:
    file = write_jsonl(tmp_path / "t.jsonl", [{"en": "a", "fr": "x"}, {"en": 5, "fr": "y"}])
    with pytest.raises(UserError, match=r"column en of train .* is not text|cannot read"):
        hub(file).train()


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("absent/folder/of/mine", "there is no file or folder absent/folder/of/mine"),
        ("absent.parquet", r"there is no file or folder absent\.parquet"),
        ("empty", "empty holds no data"),
        ("notes.txt", r"notes\.txt is no parquet, jsonl or csv file; for plain text there is data=text"),
        ("odd[1]", "rename what has one of"),
    ],
)
def test_a_path_without_data_is_named(
    tmp_path: Path, hub: Any, monkeypatch: pytest.MonkeyPatch, path: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("empty", "odd[1]"):
        Path(folder).mkdir()
    Path("notes.txt").write_text("a\n")
    with pytest.raises(UserError, match=message):
        hub(path).train()


def cut(content: bytes) -> bytes:
    return content[:-40]


def scratched(content: bytes) -> bytes:
    return content[:4000] + b"\xff" * 2000 + content[6000:]


@pytest.mark.parametrize("damage", [cut, scratched])
def test_a_damaged_parquet_file_is_named(tmp_path: Path, hub: Any, damage: Callable[[bytes], bytes]) -> None:
    rows: list[Row] = [(f"line {number * 7919}", "x") for number in range(5000)]
    for name in ("train-00000-of-00002", "train-00001-of-00002"):
        file = write_parquet(tmp_path / "d" / f"{name}.parquet", rows)
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(UserError, match=r"train-00001-of-00002\.parquet.* damaged or cut") as caught:
        hub(tmp_path / "d").train()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text"), [("a.jsonl", '{"en":"a","fr":"b"}\n{"en":"a'), ("a.csv", "en,fr\na,b\nc,d,e\n")]
)
def test_a_damaged_text_file_is_named(tmp_path: Path, hub: Any, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(UserError, match=rf"cannot read .*{name}") as caught:
        hub(tmp_path / name).train()
    assert "\n" not in str(caught.value)


def test_a_card_that_is_no_yaml_is_named(wmt: Path, hub: Any) -> None:
    (wmt / "README.md").write_text("---\nconfigs: [\n---\n")
    with pytest.raises(UserError, match=r"README\.md: the head of this card"):
        hub(wmt, name="fr-en").train()


def test_a_card_without_the_files_of_its_configuration_is_said(wmt: Path, hub: Any) -> None:
    write_card(wmt, "cs-en", "fr-en")
    with pytest.raises(UserError, match=r"holds no file of the configuration cs-en: cs-en/train-\*"):
        hub(wmt, name="cs-en").train()


def test_a_full_disk_is_said_with_what_to_do(wmt: Path, hub: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from datasets.arrow_writer import ArrowWriter

    def fails(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(ArrowWriter, "write_table", fails)
    with pytest.raises(UserError, match=r"the disk is full: .*data\.cache_dir=FOLDER .*HF_HOME"):
        hub(wmt, name="fr-en").train()


def test_the_identity_of_local_files_is_their_content(wmt: Path, hub: Any, tmp_path: Path) -> None:
    before = hub(wmt, name="fr-en").identity()
    moved = wmt.rename(tmp_path / "elsewhere")
    assert hub(moved, name="fr-en").identity() == before
    assert hub(moved, "fr", "en", name="fr-en").identity() != before
    assert hub(moved, name="fr-en", max_pairs=2).identity() != before
    write_parquet(moved / "fr-en" / "train-00001-of-00002.parquet", [("it snows", "il neige")])
    assert hub(moved, name="fr-en").identity() != before


def test_provenance_holds_sizes_and_no_directory(wmt: Path, hub: Any, tmp_path: Path) -> None:
    corpus = hub(wmt, name="fr-en", licence="for research", test_split=None)
    facts = corpus.provenance()
    assert facts["pairs"] == {"train": 3, "validation": 1, "test": 2}
    assert (facts["corpus"], facts["config"], facts["licence"]) == ("wmt14", "fr-en", "for research")
    assert "test_split" not in facts
    assert str(tmp_path) not in json.dumps(facts)
