"""Several corpora as one: in order, by weight, with the languages and held-out text of the right part."""

from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from nmt.cli import conf_dir
from nmt.data.mixed_corpus import MixedCorpus
from nmt.data.synthetic import SyntheticCorpus
from nmt.data.text import TextCorpus
from nmt.errors import ConfigError
from nmt.schema import check
from nmt.training_settings import MixSettings


@pytest.fixture
def parts(tmp_path: Path) -> dict[str, Any]:
    for name, lines in {"a": ["one", "two"], "b": ["three"], "v": ["four"]}.items():
        for side in ("en", "fr"):
            (tmp_path / f"{name}.{side}").write_text("".join(f"{line} {side}\n" for line in lines))

    def files(split: str, name: str) -> dict[str, str]:
        return {f"{split}_src": str(tmp_path / f"{name}.en"), f"{split}_tgt": str(tmp_path / f"{name}.fr")}

    return {"first": files("train", "a"), "second": files("train", "b") | files("valid", "v")}


def test_parts_are_read_one_after_the_other(parts: dict[str, Any]) -> None:
    corpus = MixedCorpus(parts, source="en", target="fr")
    assert [pair.source for pair in corpus.train()] == ["one en", "two en", "three en"]
    assert [(source.name, source.weight) for source in corpus.parts()] == [("first", None), ("second", None)]
    assert (corpus.source_language, corpus.target_language) == ("en", "fr")
    assert [pair.target for pair in corpus.valid()] == ["four fr"]


def test_with_weights_every_part_has_one(parts: dict[str, Any]) -> None:
    sources = MixedCorpus(parts, weights={"second": 3}).parts()
    assert [(source.name, source.weight) for source in sources] == [("first", 1.0), ("second", 3)]


def test_a_part_may_be_any_corpus_and_gives_the_held_out_text(parts: dict[str, Any]) -> None:
    copies = SyntheticCorpus(train_pairs=3, valid_pairs=2, test_pairs=2)
    corpus = MixedCorpus({**parts, "copies": copies}, held_out="copies")
    assert len(list(corpus.train())) == 6
    assert list(corpus.valid()) == list(copies.valid())
    assert corpus.test_sets()["test"].sources == copies.test_sets()["test"].sources


def test_the_identity_changes_with_each_part_and_weight(parts: dict[str, Any]) -> None:
    corpora = [MixedCorpus(parts), MixedCorpus(parts, weights={"first": 2}), MixedCorpus({"first": parts["first"]})]
    assert len({str(corpus.identity()) for corpus in corpora}) == 3
    assert (
        MixedCorpus(parts).identity() == MixedCorpus({k: TextCorpus(**p, name=k) for k, p in parts.items()}).identity()
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"parts": {}}, "data.parts.news.train_src"),
        ({"weights": {"third": 1}}, "names third; the parts are first, second"),
        ({"held_out": "third"}, "names third"),
        ({"parts": {"first": {"licence": "a"}}}, "needs data.train_src"),
    ],
)
def test_what_cannot_be_mixed_is_refused_by_its_key(
    parts: dict[str, Any], change: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        MixedCorpus(**({"parts": parts} | change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": {"first": 0}}, "data.weights.first=0"),
        ({"parts": {"first": {"train_source": "a"}}}, "data.parts.first.train_source"),
        ({"parts": {"first": {"path": "x", "splits": "a"}}}, "data.parts.first.splits"),
    ],
)
def test_settings_of_a_mixture_are_checked_by_their_key(change: dict[str, Any], message: str) -> None:
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        settings: Any = OmegaConf.to_container(compose("prepare", ["data=mix"]).data)
    with pytest.raises(ConfigError, match=message):
        check(MixSettings, settings | {"parts": {"first": {"train_src": "a"}}} | change, "data.")
