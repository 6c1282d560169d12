"""What `datasets` is to load: a name on the hub, a file, or one configuration of a local folder.

A folder copied from the hub may hold a part of it only: one configuration, with or without the card
(README.md) that lists the others. `datasets` itself would fail at the first configuration that is not there.
"""

import re
from collections.abc import Iterable
from glob import iglob
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from nmt.errors import ConfigError, UserError

SUFFIXES = ("parquet", "jsonl", "json", "csv", "tsv", "arrow")
CONVERTED = "refs/convert/parquet"  # the hub's own conversion of a dataset: a folder for each configuration
_ABOUT = ("README.md", "dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json", "config.json")
_SPLIT_FOLDER = re.compile(r"(data|train(ing)?|valid(ation)?|val|dev|test(ing)?|eval(uation)?)(?![A-Za-z])")


class LoadRequest(NamedTuple):
    """Arguments of `datasets.load_dataset_builder`."""

    path: str
    name: str | None = None
    data_dir: str | None = None
    data_files: dict[str, list[str]] | None = None
    revision: str | None = None


def load_request(path: str, name: str | None, revision: str | None) -> LoadRequest:
    """ConfigError where a configuration has to be named or is not there; UserError where no such path can be."""
    local = local_path(path)
    if local is None:
        if revision == CONVERTED:
            return LoadRequest(path, data_dir=name or "default", revision=revision)
        return LoadRequest(path, name=name, revision=revision)
    if set(local.as_posix()) & set("*?["):
        raise UserError(f"{path}: rename what has one of * ? [ in its name; `datasets` takes them for patterns")
    if local.is_file():
        if not _is_data(local):
            raise UserError(f"{path} is no parquet, jsonl or csv file; for plain text there is data=text")
        return LoadRequest(local.parent.as_posix(), data_files={"train": [local.name]})
    return _of_folder(local, path, name)


def local_path(path: str) -> Path | None:
    """The absolute path where there is such a file or folder; None for a name that can be one on the hub."""
    local = Path(path).expanduser()
    if local.exists():
        return local.resolve()
    suffixes = Path(path).name.split(".")[1:]
    if path.count("/") > 1 or path[0] in "./~" or "\\" in path or any(suffix in SUFFIXES for suffix in suffixes):
        raise UserError(f"there is no file or folder {path}; data.path is one, or a name on the hub: wmt/wmt14")
    return None


def unknown_configuration(path: str, name: str | None, available: Iterable[str]) -> ConfigError:
    """Which configurations there are, and how to name one."""
    listed = ", ".join(available)
    if not listed:
        return ConfigError(f"{path} has no configuration {name}, and no others: data.name=null")
    what = f"has no configuration {name}" if name else "has several configurations"
    return ConfigError(f"{path} {what}; choose data.name, one of: {listed}")


def _of_folder(folder: Path, path: str, name: str | None) -> LoadRequest:
    if card := _card(folder):
        return _by_card(folder, path, name, card)
    direct = any(_is_data(file) for file in folder.iterdir())
    holders = [] if direct else _folders_with_data(folder)
    if not direct and not holders:
        raise UserError(f"{path} holds no data: no parquet, jsonl or csv file")
    if name is None:
        if len(holders) > 1 and not any(_SPLIT_FOLDER.match(holder) for holder in holders):
            raise unknown_configuration(path, None, holders)
        return LoadRequest(folder.as_posix())
    if name in holders:
        return LoadRequest(folder.as_posix(), data_dir=name)
    if folder.name == name:  # the configuration's own folder
        return LoadRequest(folder.as_posix())
    if direct:
        raise ConfigError(f"{path} has no configuration {name}; its files lie in it directly: data.name=null")
    raise unknown_configuration(path, name, holders)


def _by_card(folder: Path, path: str, name: str | None, card: Any) -> LoadRequest:
    """What the card lists for one configuration, as far as its files exist."""
    from datasets.data_files import sanitize_patterns

    chosen = name or card.get_default_config_name() or (next(iter(card)) if len(card) == 1 else None)
    if chosen not in card:
        raise unknown_configuration(path, name, card)
    settings = card[chosen]
    if settings.get("data_files") is None:
        return LoadRequest(folder.as_posix(), name=chosen)
    inside = f"{settings['data_dir']}/" if settings.get("data_dir") else ""
    patterns_by_split = {
        split: [f"{inside}{pattern}" for pattern in patterns]
        for split, patterns in sanitize_patterns(settings["data_files"]).items()
    }
    matched = {
        split: [pattern for pattern in patterns if _matches(folder, pattern)]
        for split, patterns in patterns_by_split.items()
    }
    present = {split: patterns for split, patterns in matched.items() if patterns}
    if not present:
        listed = ", ".join(pattern for patterns in patterns_by_split.values() for pattern in patterns)
        raise UserError(f"{path} holds no file of the configuration {chosen}: {listed}")
    return LoadRequest(folder.as_posix(), name=chosen, data_files=present)


def _card(folder: Path) -> Any:
    """Configurations by name, as the card (README.md) lists them; empty where it lists none."""
    from datasets.utils.metadata import MetadataConfigs
    from huggingface_hub import DatasetCard

    file = folder / "README.md"
    try:
        return MetadataConfigs.from_dataset_card_data(DatasetCard.load(file).data) if file.is_file() else {}
    except (yaml.YAMLError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"{file}: the head of this card is not as `datasets` wants it ({reason}); mend it") from None


def _matches(folder: Path, pattern: str) -> bool:
    return any((folder / file).is_file() for file in iglob(pattern, root_dir=folder, recursive=True))


def _folders_with_data(folder: Path) -> list[str]:
    """Subfolders that hold data, at any depth."""
    subfolders = sorted(sub for sub in folder.iterdir() if sub.is_dir() and not sub.name.startswith((".", "__")))
    return [sub.name for sub in subfolders if any(_is_data(file) for file in sub.rglob("*"))]


def _is_data(file: Path) -> bool:
    named = file.name not in _ABOUT and not file.name.startswith(".")
    return named and any(suffix in SUFFIXES for suffix in file.name.lower().split(".")[1:]) and file.is_file()
