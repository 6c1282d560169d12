"""Declarations, shipped YAML and constructors agree; a wrong value is refused in one line that says what is right."""

import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from hydra.utils import get_object
from omegaconf import OmegaConf

from nmt.errors import ConfigError
from nmt.model_settings import (
    ATTENTIONS,
    MODELS,
    AdditiveSettings,
    BahdanauSettings,
    LocalSettings,
    LocationSettings,
    LuongSettings,
    RandomSettings,
    TransformerSettings,
)
from nmt.schema import Component, Settings, check, conf_dir, declared_settings, properties
from nmt.settings import PROGRAMS, SUITES
from nmt.training_settings import (
    CORPORA,
    OPTIMIZERS,
    SCHEDULES,
    TRACKERS,
    HalvingSettings,
    ScheduleSettings,
    TrainingSettings,
)
from tests.models.tiny import composed

POSITIVE = r"give a whole number from 1 to [\d,]+$"


def configured(section: str, overrides: str) -> dict[str, Any]:
    """A section as Hydra composes it for a training."""
    values: Any = OmegaConf.to_container(OmegaConf.select(composed(overrides), section), resolve=True)
    return values


def refuse(declared: type[Settings], section: str, overrides: str, changes: dict[str, Any], message: str) -> None:
    values = configured(section, overrides)
    check(declared, values)
    with pytest.raises(ConfigError, match=message):
        check(declared, values | changes)


@pytest.mark.parametrize(("window", "shown"), [(0, "0"), (1.5, "1.5"), (None, "null"), ("10", "10"), (True, "true")])
@pytest.mark.parametrize("attention", ["local_m", "local_p"])
def test_a_window_is_a_whole_number_of_pieces(attention: str, window: object, shown: str) -> None:
    refuse(
        LocalSettings, "model.attention", f"experiment=luong attention={attention}", {"window": window},
        rf"^window={shown}: give a whole number from 1 to 1,000,000$",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("declared", "attention", "key", "value", "expected"),
    [
        (LocationSettings, "location", "max_pieces", 0, r"give a whole number, 1 or more$"),
        (AdditiveSettings, "additive", "size", 0, POSITIVE),
        (RandomSettings, "random", "seed", -1, r"give a whole number, 0 or more$"),
        (RandomSettings, "random", "sharpness", -1.0, r"give a number, 0 or more$"),
    ],
)
def test_settings_of_an_attention_have_bounds(
    declared: type[Settings], attention: str, key: str, value: object, expected: str
) -> None:
    overrides = f"experiment=luong attention={attention}"
    refuse(declared, "model.attention", overrides, {key: value}, rf"^{key}={value}: {expected}")


@pytest.mark.parametrize(
    ("declared", "experiment", "key", "value", "expected"),
    [
        (BahdanauSettings, "bahdanau", "layers", 0, POSITIVE),
        (BahdanauSettings, "bahdanau", "readout_size", 0, r"give a whole number from 1 to 65,536 or null$"),
        (LuongSettings, "luong", "layers", 2.5, POSITIVE),
        (LuongSettings, "luong", "init_range", 0, r"give a number above 0 to 100$"),
        (LuongSettings, "luong", "cell", "elman", r"give gru or lstm$"),
        (LuongSettings, "luong", "bridge", "tunnel", r"give learned or copy$"),
        (LuongSettings, "luong", "summary", "middle", r"give last_both, last_forward, max or mean$"),
        (LuongSettings, "luong", "init", "he", r"give default, groundhog or uniform$"),
        (LuongSettings, "luong", "tie_embeddings", "some", r"give none, target or all$"),
        (LuongSettings, "luong", "dropout", 1.0, r"give a number from 0 to below 1$"),
        (LuongSettings, "luong", "input_feeding", "no", r"give true or false$"),
        (TransformerSettings, "transformer", "heads", 0, POSITIVE),
        (TransformerSettings, "transformer", "max_positions", 0, POSITIVE),
        (TransformerSettings, "transformer", "norm", "middle", r"give pre or post$"),
        (TransformerSettings, "transformer", "activation", "swish", r"give relu or gelu$"),
        (TransformerSettings, "transformer", "attention_backend", "flash", r"give auto, fused, varlen, explicit, .*$"),
        (TransformerSettings, "transformer", "positions", "absolute", r"give sinusoidal, learned, .* or none$"),
        *[(TransformerSettings, "transformer", "attention_window", width, POSITIVE) for width in (0, -1, 2.5)],
    ],
)
def test_settings_of_a_model_have_bounds_and_choices(
    declared: type[Settings], experiment: str, key: str, value: object, expected: str
) -> None:
    refuse(declared, "model", f"experiment={experiment}", {key: value}, rf"^{key}={value}: {expected}")


@pytest.mark.parametrize(
    ("declared", "schedule", "key", "value", "expected"),
    [
        (ScheduleSettings, "constant", "warmup_updates", -1, r"give a whole number, 0 or more$"),
        (HalvingSettings, "halving", "halvings", 0, POSITIVE),
        (HalvingSettings, "halving", "steady", 1.5, r"give a number above 0 to below 1$"),
    ],
)
def test_settings_of_a_schedule_have_bounds(
    declared: type[Settings], schedule: str, key: str, value: object, expected: str
) -> None:
    refuse(declared, "schedule", f"experiment=rnn schedule={schedule}", {key: value}, rf"^{key}={value}: {expected}")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, r"give a budget: training\.max_updates, training\.max_epochs or training\.max_minutes$"),
        ({"max_updates": 0}, r"training\.max_updates=0: give a whole number, 1 or more or null$"),
        ({"max_epochs": -1}, r"training\.max_epochs=-1: give a number"),
        ({"max_updates": 1, "accumulate": 0}, rf"training\.accumulate=0: {POSITIVE}"),
        ({"max_updates": 1, "label_smoothing": 1.0}, r"training\.label_smoothing=1\.0: give a number"),
        ({"max_updates": 1, "monitor": "loss"}, r"training\.monitor=loss: give bleu or nll$"),
        ({"max_updates": 1, "mean_over": "words"}, r"training\.mean_over=words: give pieces or sentences$"),
    ],
)
def test_a_training_needs_a_budget_and_values_within_bounds(changes: dict[str, object], message: str) -> None:
    values = configured("training", "experiment=rnn training.max_updates=null training.max_epochs=null")
    with pytest.raises(ConfigError, match=f"^{message}"):
        check(TrainingSettings, values | changes, "training.")


def test_the_error_names_the_setting_with_its_section() -> None:
    values = configured("model", "experiment=luong attention=local_p")
    values["attention"]["window"] = 0
    with pytest.raises(ConfigError, match=r"^model\.attention\.window=0: give a whole number"):
        check(LuongSettings, values, "model.")


def test_an_unknown_setting_is_refused_with_the_nearest_one() -> None:
    values = configured("model", "experiment=luong")
    with pytest.raises(ConfigError, match=r"^there is no setting model\.layer here; did you mean model\.layers\?$"):
        check(LuongSettings, values | {"layer": 2}, "model.")


GROUPS = {  # of a program, as they are overridden
    "prepare": ["data", "cleaning"],
    "train": ["experiment", "data", "model", "attention", "optimizer", "schedule", "tracker", "size", "cleaning"],
    "evaluate": ["search"],
    "translate": ["search"],
    "compare": [],
    "benchmark": ["suite", "experiment"],
}
NEEDED = {"train": {"experiment": "luong"}, "translate": {"checkpoint": "run"}}
CLASSES = MODELS | ATTENTIONS | CORPORA | OPTIMIZERS | SCHEDULES | TRACKERS | SUITES
SUPPLIED = {  # by the code that builds the object, never by the configuration
    **{name: {"src_vocab_size", "tgt_vocab_size", "pad_id"} for name in MODELS},
    **{name: {"encoder_size", "query_size"} for name in ATTENTIONS},
    **{name: {"total_updates"} for name in SCHEDULES},
}


def configurations(program: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The settings of a program by default, and with each choice of each of its groups."""
    choices = [("", "")]
    for group in GROUPS[program]:
        folder = conf_dir() / group
        choices += [(group, path.relative_to(folder).with_suffix("").as_posix()) for path in folder.rglob("*.yaml")]
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        for group, name in choices:
            given = NEEDED.get(program, {}) | ({group: name} if group else {})
            if name in ("transformer", "multihead"):
                given |= {"experiment": "transformer", "attention": "multihead"}
            config = compose(program, [f"{key}={value}" for key, value in given.items()])
            values: Any = OmegaConf.to_container(config, resolve=True)
            yield f"{group}={name}", values


def without_hydras_keys(values: Any) -> Any:
    """Less _target_, _partial_ and _convert_."""
    if isinstance(values, dict):
        return {key: without_hydras_keys(value) for key, value in values.items() if not key.startswith("_")}
    return values


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_choice_of_every_group_composes_the_declared_settings_and_no_other(program: str) -> None:
    for choice, values in configurations(program):
        read = check(PROGRAMS[program], values).model_dump(by_alias=True)
        if "attention_backend" in read and "attention_backend" not in values:
            assert read.pop("attention_backend") is None  # a setting of attention=multihead alone
        assert without_hydras_keys(read) == without_hydras_keys(values), choice


def test_every_declared_class_is_a_choice_and_every_choice_is_declared() -> None:
    shipped = "\n".join(path.read_text(encoding="utf-8") for path in conf_dir().rglob("*.yaml"))
    assert set(re.findall(r"^ *_target_: (\S+)$", shipped, re.MULTILINE)) == set(CLASSES)


@pytest.mark.parametrize(("name", "declared"), CLASSES.items(), ids=CLASSES)
def test_a_declared_class_has_the_arguments_of_its_constructor(name: str, declared: type[Component]) -> None:
    arguments = set(inspect.signature(get_object(name)).parameters)
    if "shared" in arguments:  # those of the base class, which takes them as **shared
        arguments |= set(inspect.signature(get_object(name).__base__).parameters) - {"readout_size"}
        arguments -= {"shared"}
    settings = {key for key in properties(declared) if not key.startswith("_")}
    if name.startswith("torch."):  # which has more, each with a default
        assert settings < arguments
    else:
        assert settings == arguments - SUPPLIED.get(name, set())


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_setting_has_a_meaning(program: str) -> None:
    for setting in declared_settings(PROGRAMS[program]):
        assert setting.field.description, setting.key
