"""A folder or a file as the hub lays them out: what of it `datasets` is to load.

A folder copied from the hub may hold a part of it only: one configuration, with or without the card (README.md)
that lists the others. `datasets` itself would fail at the first configuration that is not there.
"""

import re
from collections.abc import Iterable
from glob import iglob
from pathlib import Path
from typing import Any

from nmt.errors import ConfigError, UserError

SUFFIXES = ("parquet", "jsonl", "json", "csv", "tsv", "arrow")
_ABOUT = ("README.md", "dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json", "config.json")
_SPLIT_FOLDER = re.compile(r"(data|train(ing)?|valid(ation)?|val|dev|test(ing)?|eval(uation)?)(?![A-Za-z])")


def local_path(path: str) -> Path | None:
    """The absolute path where there is such a file or folder; None for a name that can be one on the hub."""
    local = Path(path).expanduser()
    if local.exists():
        return local.resolve()
    suffixes = Path(path).name.split(".")[1:]
    if path.count("/") > 1 or path[0] in "./~" or "\\" in path or any(suffix in SUFFIXES for suffix in suffixes):
        raise UserError(f"there is no file or folder {path}; data.path is one, or a name on the hub: wmt/wmt14")
    return None


def local_request(local: Path, path: str, name: str | None) -> dict[str, Any]:
    """Arguments for `load_dataset_builder`: a file, or one configuration of a folder."""
    if set(local.as_posix()) & set("*?["):
        raise UserError(f"{path}: rename what has one of * ? [ in its name; `datasets` takes them for patterns")
    if local.is_file():
        if not _is_data(local):
            raise UserError(f"{path} is no parquet, jsonl or csv file; for plain text there is data=text")
        return {"path": local.parent.as_posix(), "data_files": {"train": [local.name]}}
    if card := _card(local):
        return _request_by_card(local, path, name, card)
    request = {"path": local.as_posix()}
    if any(_is_data(file) for file in local.iterdir()):
        if name not in (None, local.name):
            raise ConfigError(f"{path} has no configuration {name}; its files lie in it directly: data.name=null")
        return request
    visible = sorted(sub for sub in local.iterdir() if sub.is_dir() and not sub.name.startswith((".", "__")))
    folders = [sub.name for sub in visible if any(_is_data(file) for file in sub.rglob("*"))]
    if not folders:
        raise UserError(f"{path} holds no data: no parquet, jsonl or csv file")
    if name in folders:
        return {**request, "data_dir": name}
    are_splits = any(_SPLIT_FOLDER.match(folder) for folder in folders)
    if name == local.name or (name is None and (len(folders) == 1 or are_splits)):
        return request
    raise unknown_configuration(path, name, folders)


def _request_by_card(folder: Path, path: str, name: str | None, card: Any) -> dict[str, Any]:
    """What the card lists for one configuration, as far as its files exist."""
    from datasets.data_files import sanitize_patterns

    chosen = name or card.get_default_config_name() or (next(iter(card)) if len(card) == 1 else None)
    if chosen not in card:
        raise unknown_configuration(path, name, card)
    request = {"path": folder.as_posix(), "name": chosen}
    settings = card[chosen]
    if settings.get("data_files") is None:
        return request
    inside = f"{settings['data_dir']}/" if settings.get("data_dir") else ""
    listed = {
        split: [f"{inside}{pattern}" for pattern in patterns]
        for split, patterns in sanitize_patterns(settings["data_files"]).items()
    }
    present = {
        split: [pattern for pattern in patterns if _matches(folder, pattern)] for split, patterns in listed.items()
    }
    if not any(present.values()):
        every = ", ".join(pattern for patterns in listed.values() for pattern in patterns)
        raise UserError(f"{path} holds no file of the configuration {chosen}: {every}")
    return {**request, "data_files": {split: patterns for split, patterns in present.items() if patterns}}


def _card(folder: Path) -> Any:
    """Configurations by name, as the card (README.md) lists them; empty where it lists none."""
    from datasets.utils.metadata import MetadataConfigs
    from huggingface_hub import DatasetCard
    from yaml import YAMLError

    file = folder / "README.md"
    try:
        return MetadataConfigs.from_dataset_card_data(DatasetCard.load(file).data) if file.is_file() else {}
    except (YAMLError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"{file}: the head of this card is not as `datasets` wants it ({reason}); mend it") from None


def _matches(folder: Path, pattern: str) -> bool:
    return any((folder / file).is_file() for file in iglob(pattern, root_dir=folder, recursive=True))


def _is_data(file: Path) -> bool:
    named = file.name not in _ABOUT and not file.name.startswith(".")
    return named and any(suffix in SUFFIXES for suffix in file.name.lower().split(".")[1:]) and file.is_file()


def unknown_configuration(path: str, name: str | None, available: Iterable[str]) -> ConfigError:
    """Which configurations there are, and how to name one."""
    listed = ", ".join(available)
    if not listed:
        return ConfigError(f"{path} has no configuration {name}, and no others: data.name=null")
    what = f"has no configuration {name}" if name else "has several configurations"
    return ConfigError(f"{path} {what}; choose data.name, one of: {listed}")
