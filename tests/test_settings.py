"""Wrong values of declared settings are refused in one line that says what would be right."""

from typing import Any

import pytest
from omegaconf import OmegaConf

from nmt.errors import ConfigError
from nmt.model_settings import (
    AdditiveSettings,
    BahdanauSettings,
    LocalSettings,
    LocationSettings,
    LuongSettings,
    RandomSettings,
    TransformerSettings,
)
from nmt.schema import Settings, check
from nmt.training_settings import HalvingSettings, ScheduleSettings
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
        (LuongSettings, "luong", "dropout", 1.0, r"give a number from 0 to below 1$"),
        (LuongSettings, "luong", "input_feeding", "no", r"give true or false$"),
        (TransformerSettings, "transformer", "heads", 0, POSITIVE),
        (TransformerSettings, "transformer", "max_positions", 0, POSITIVE),
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


def test_the_error_names_the_setting_with_its_section() -> None:
    values = configured("model", "experiment=luong attention=local_p")
    values["attention"]["window"] = 0
    with pytest.raises(ConfigError, match=r"^model\.attention\.window=0: give a whole number"):
        check(LuongSettings, values, "model.")


def test_an_unknown_setting_is_refused_with_the_nearest_one() -> None:
    values = configured("model", "experiment=luong")
    with pytest.raises(ConfigError, match=r"^there is no setting model\.layer here; did you mean model\.layers\?$"):
        check(LuongSettings, values | {"layer": 2}, "model.")
