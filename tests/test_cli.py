"""What the door does to arguments and errors. Whole programs are tested in test_train.py."""

import shlex
from collections.abc import Iterator

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given
from hypothesis import strategies as st

from nmt.cli import readable_override
from nmt.errors import ConfigError


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
        readable_override("data.name=l'été (2)")
    suggestion = shlex.split(str(caught.value).split("for the shell: ")[1])[0]
    assert value(suggestion) == "l'été (2)"


@pytest.mark.parametrize("argument", ["--help", "-m", "--cfg", "job", "~data", "experiment=rnn,luong", "+a.b=[1,2]"])
def test_hydras_own_ways_pass_untouched(argument: str) -> None:
    assert readable_override(argument) == argument
