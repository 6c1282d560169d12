"""Copy and reverse say what they promise: right by construction, held out where the space allows, never endless."""

from itertools import islice
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from nmt.cli import conf_dir
from nmt.data.synthetic import SyntheticCorpus, symbol
from nmt.errors import ConfigError
from nmt.schema import check
from nmt.training_settings import SyntheticSettings

SMALL = {"train_pairs": 211, "valid_pairs": 13, "test_pairs": 31}


def test_symbols_are_whole_words_all_different() -> None:
    words = [symbol(i) for i in range(1000)]
    assert words[:3] == ["a", "b", "c"]
    assert words[25:28] == ["z", "aa", "ab"]
    assert len(set(words)) == 1000


def test_copy_copies_and_links_each_word_to_itself() -> None:
    for pair in SyntheticCorpus(symbols=7, min_length=2, max_length=11, train_pairs=211).train():
        assert pair.source == pair.target
        assert pair.alignment == tuple((i, i) for i in range(len(pair.source.split())))


def test_reverse_reverses_and_links_equal_words() -> None:
    for pair in SyntheticCorpus(reverse=True, symbols=7, min_length=2, max_length=11, train_pairs=211).train():
        source, target = pair.source.split(), pair.target.split()
        assert target == source[::-1]
        assert len(pair.alignment) == len(source)
        assert all(source[i] == target[j] for i, j in pair.alignment)


def test_lengths_and_symbols_cover_their_ranges_and_no_more() -> None:
    corpus = SyntheticCorpus(symbols=29, min_length=3, max_length=7, train_pairs=997)
    lengths = {len(pair.source.split()) for pair in corpus.train()}
    words = {word for pair in corpus.train() for word in pair.source.split()}
    assert lengths == {3, 4, 5, 6, 7}
    assert words == {symbol(i) for i in range(29)}


def test_no_held_out_sentence_is_in_training_or_in_another_split() -> None:
    corpus = SyntheticCorpus(symbols=5, min_length=5, max_length=7, **SMALL)
    train = {pair.source for pair in corpus.train()}
    valid = [pair.source for pair in corpus.valid()]
    test = corpus.test_sets()["test"].sources
    assert (len(valid), len(test)) == (13, 31)
    assert len({*valid, *test}) == 44
    assert train.isdisjoint([*valid, *test])
    assert corpus.provenance()["shared_lengths"] == []


def test_a_space_too_small_to_hold_out_ends_and_says_so() -> None:
    corpus = SyntheticCorpus(symbols=1, min_length=1, max_length=2, **SMALL)
    assert len(list(corpus.train())) == 211
    assert len(corpus.test_sets()["test"].sources) == 31
    assert corpus.provenance()["shared_lengths"] == [1, 2]


def test_four_symbols_train_on_every_single_symbol() -> None:
    corpus = SyntheticCorpus(symbols=4)
    assert {"a", "b", "c", "d"} <= {pair.source for pair in corpus.train()}


def test_same_seed_same_pairs_and_another_seed_others() -> None:
    first, again, other = (list(islice(SyntheticCorpus(seed=seed).train(), 50)) for seed in (3, 3, 5))
    assert first == again
    assert first != other


@pytest.mark.parametrize("key", ["symbols", "min_length", "max_length", "train_pairs", "valid_pairs", "test_pairs"])
def test_a_bad_setting_is_named(key: str) -> None:
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        settings: Any = OmegaConf.to_container(compose("prepare", ["data=copy"]).data)
    with pytest.raises(ConfigError, match=rf"data\.{key}=0"):
        check(SyntheticSettings, settings | {key: 0}, "data.")


def test_a_longest_length_below_the_shortest_is_named() -> None:
    with pytest.raises(ConfigError, match=r"data\.max_length=3 is below data\.min_length=4"):
        SyntheticCorpus(min_length=4, max_length=3)
