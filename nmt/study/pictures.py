"""The attention of several systems on one sentence, as one picture each."""

import re
from collections.abc import Sequence
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nmt.errors import UserError
from nmt.study.heatmap import draw_attention
from nmt.study.sentence import Example

if TYPE_CHECKING:
    from nmt.decoding.translator import Translator


LONGEST = 120  # bytes of a label in a file name


class Pictures(NamedTuple):
    """Files by system, and what a user should know of those that are not there."""

    files: tuple[tuple[str, str], ...] = ()  # (system, file name in the folder)
    notes: tuple[str, ...] = ()


def draw_pictures(systems: Sequence[tuple[str, "Translator"]], example: Example, folder: Path) -> Pictures:
    """attention-<system>.png for each system that attends; one whose model cannot take the sentence gets a note."""
    reading = "its own translation" if example.reference is None else "the reference"
    files, notes = [], []
    names = file_names([label for label, _ in systems])
    for (label, translator), name in zip(systems, names, strict=True):
        try:
            map = translator.attention(example.source, example.reference)
        except UserError as error:
            notes.append(f"no attention picture of {label}: {error}")
            continue
        if map is not None:
            picture = folder / f"attention-{name}.png"
            draw_attention(map, picture, title=label, gold=example.gold, note=f"target: {reading}")
            files.append((label, picture.name))
    return Pictures(tuple(files), tuple(notes))


def file_name(label: str) -> str:
    """A label without what file names may not hold, and short enough for any file system, with an ending."""
    return re.sub(r"[^\w.-]+", "-", label).encode()[:LONGEST].decode(errors="ignore")


def file_names(labels: Sequence[str]) -> list[str]:
    """One each, none twice, also where case does not count."""
    names: list[str] = []
    for label in labels:
        plain = file_name(label)
        further = (f"{plain}-{n}" for n in count(2))
        taken = {name.lower() for name in names}
        names.append(next(name for name in chain([plain], further) if name.lower() not in taken))
    return names
