"""What the door does to arguments and errors. Whole programs are tested in test_train.py."""

import shlex
from collections.abc import Iterator

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import InstantiationException
from hypothesis import given
from hypothesis import strategies as st

from nmt.cli import error_line, readable_override
from nmt.errors import ConfigError, ModelError


def value(argument: str) -> object:
    return OverridesParser.create().parse_override(readable_override(argument)).value()


@pytest.fixture(autouse=True, scope="module")
def no_sweep() -> Iterator[None]:
    """pytest's own -m would be read as Hydra's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["nmt"])
        yield


NAMES = [
    "données.en",
    "fr#1.fr",
    "it's.en",
    "out/日本",
    "out/{a}",
    "a,b",
    "a(1).en",
    "x=y",
    'say "hi".en',
    "a\\b",
    "[a",
    "a b",
    "~/x",
]
KEYS = ["run_dir", "checkpoint", "test.name", "data.train_src", "+data.test_tgt", "init_from", "alignment.gold"]
NUMBERS = ["20261129", "1_1_1", "1e3", "007", "true"]


@pytest.mark.parametrize("name", NAMES + NUMBERS)
@pytest.mark.parametrize("key", KEYS)
def test_a_name_arrives_as_it_was_typed(key: str, name: str) -> None:
    assert value(f"{key}={name}") == name


@given(
    st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1).filter(lambda t: t not in ("None", "null"))
)
def test_any_file_name_arrives_or_is_a_list_or_quoted(name: str) -> None:
    if name[0] not in "[\"'" and "${" not in name:
        assert value(f"data.train_src={name}") == name


def test_lists_and_quoted_names_are_left_to_hydra() -> None:
    assert value("data.test_tgt=[a.fr,b.fr]") == ["a.fr", "b.fr"]
    assert value('data.train_src="données.en"') == "données.en"
    assert value("data.train_src='a, b'") == "a, b"


@pytest.mark.parametrize("key", ["run_dir", "seed", "batching.max_pieces", "init_from"])
def test_none_is_null(key: str) -> None:
    assert value(f"{key}=None") is None


def test_an_environment_variable_is_left_for_later() -> None:
    assert value("data_dir=${oc.env:CORPORA}") == "${oc.env:CORPORA}"


def test_what_cannot_be_read_comes_back_with_the_text_to_type() -> None:
    with pytest.raises(ConfigError, match="quote the value") as caught:
        readable_override("+model.note=l'été (2)")
    suggestion = shlex.split(str(caught.value).split("for the shell: ")[1])[0]
    assert value(suggestion) == "l'été (2)"


@pytest.mark.parametrize(
    ("raised", "shown"),
    [
        ("heads=3 does not divide embedding_size=64", "model.heads=3 does not divide model.embedding_size=64"),
        (
            "attention=location: train with a larger max_pieces=..., or translate with max_src_pieces=9",
            "attention=location: train with a larger model.attention.max_pieces=..., "
            "or translate with max_src_pieces=9",
        ),
        (
            "attention=dot: hidden_size = 2 x encoder_size if bidirectional",
            "attention=dot: model.hidden_size = 2 x model.encoder_size if bidirectional",
        ),
        (
            "attention_backend=tiled has no dropout (attention_dropout=0.1)",
            "attention_backend=tiled has no dropout (model.attention_dropout=0.1)",
        ),
        ("use attention@model.attention.score=dot", "use attention@model.attention.score=dot"),
        ("tokenizer.joint=true or tie_embeddings=target", "tokenizer.joint=true or model.tie_embeddings=target"),
    ],
)
def test_a_model_error_is_shown_with_the_keys_of_its_arguments(raised: str, shown: str) -> None:
    wrapped = InstantiationException(f"Error in call to target 'nmt.models.transformer.Transformer': {raised}")
    wrapped.__cause__ = ModelError(raised)
    assert error_line(ModelError(raised), "train") == error_line(wrapped, "train") == shown


@pytest.mark.parametrize("argument", ["--help", "-m", "--cfg", "job", "~data", "experiment=rnn,luong", "+a.b=[1,2]"])
def test_hydras_own_ways_pass_untouched(argument: str) -> None:
    assert readable_override(argument) == argument
