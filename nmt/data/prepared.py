"""Prepared corpora on disk: found by what they are made of, built once, read by any number of processes."""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout

from nmt.data.corpus import Corpus, Pair, TestSet
from nmt.data.encoded import EncodedPairs, Part, Sequences, encode_pairs
from nmt.data.preparation.build import CARD_PAGE, TESTS, VALID, WORK_FILES, Build, Pieces, Preparation
from nmt.data.preparation.journal import map_array
from nmt.data.tokenizer import Tokenizer, load_tokenizers
from nmt.errors import UserError
from nmt.files import write_text
from nmt.progress import say

FORMAT = 1  # raised whenever older folders can no longer be read as they are
MANIFEST = "manifest.json"
FOLDER = "prepared"  # inside data_dir


@dataclass(frozen=True)
class Prepared:
    """What a training reads. The ids stay in files, mapped into memory."""

    folder: Path
    source: Tokenizer
    target: Tokenizer
    train: EncodedPairs
    valid: EncodedPairs
    valid_pairs: list[Pair]
    facts: dict[str, Any]

    @property
    def card(self) -> Path:
        """The data card for a reader."""
        return self.folder / CARD_PAGE


@dataclass(frozen=True)
class HeldOutText:
    """What must not be trained on, read only where a folder is built; `names` tell one choice from another."""

    names: list[str]
    valid: Callable[[], list[Pair]]
    tests: Callable[[], Mapping[str, TestSet]]


def prepare(
    corpus: Corpus,
    settings: Preparation,
    data_dir: Path,
    held_out: HeldOutText,
    pieces: Pieces | None = None,
) -> Prepared:
    """The prepared folder of a corpus under these settings, built where it is missing.

    Another process that builds the same one is waited for. `pieces` are used instead of learning new ones.
    UserError where the text cannot be used; then nothing is left behind.
    """
    content = _content(corpus, settings, held_out.names, pieces)
    folder = data_dir / FOLDER / _name(corpus, content)
    if not (folder / MANIFEST).exists():
        with _lock(folder):
            if not (folder / MANIFEST).exists():
                _build(folder, lambda: Build(corpus, settings, held_out.valid(), held_out.tests()), content, pieces)
    return open_prepared(folder)


def open_prepared(folder: Path) -> Prepared:
    """A prepared folder as it is. UserError where it is none, is damaged, or of another version."""
    manifest = _read_manifest(folder)
    facts = manifest["facts"]
    source, target = load_tokenizers(folder)
    try:
        valid_pairs = [Pair(*pair) for pair in json.loads((folder / VALID).read_text(encoding="utf-8"))]
        train = EncodedPairs(_map(folder, "src", facts), _map(folder, "tgt", facts), _parts(facts))
    except (OSError, ValueError) as error:
        raise UserError(f"{folder} is damaged ({error}); delete it and prepare again") from None
    valid = encode_pairs(valid_pairs, source, target, manifest["max_pieces"])
    return Prepared(folder, source, target, train, valid, valid_pairs, facts)


def stored_test_sets(folder: Path) -> dict[str, TestSet]:
    """The test sets as they were when the folder was made, for a machine that has nothing else; {} without a folder."""
    try:
        stored = json.loads((folder / TESTS).read_text(encoding="utf-8"))
    except OSError:
        return {}
    return {name: TestSet(**content) for name, content in stored.items()}


def identity(facts: Mapping[str, Any]) -> str:
    """A checksum of what was read for training and of the pieces' numbers; the same data give the same one."""
    kept = {key: facts[key] for key in ("train_sha256", "source_vocab", "target_vocab")}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()


def _content(corpus: Corpus, settings: Preparation, names: list[str], pieces: Pieces | None) -> dict[str, Any]:
    """Everything that decides the bytes of the folder."""
    return {
        "format": FORMAT,
        "corpus": corpus.identity(),
        "languages": [corpus.source_language, corpus.target_language],
        "tokenizer": asdict(settings.tokenizer) if pieces is None else None,
        "pieces": [hashlib.sha256(tokenizer.model).hexdigest() for tokenizer in pieces or ()],
        "cleaning": asdict(settings.cleaning),
        "max_pieces": settings.max_pieces,
        "held_out": names,
    }


def _name(corpus: Corpus, content: Mapping[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    words = (corpus.name, corpus.source_language, corpus.target_language, digest[:12])
    return re.sub(r"[^\w.-]+", "-", "-".join(word for word in words if word)).lstrip(".-")


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """One builder at a time; the lock goes with its process, whatever ends that."""
    lock = FileLock(str(folder.with_name(f".{folder.name}.lock")))
    said = False
    while not lock.is_locked:
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            lock.acquire(timeout=1 if said else 0)
        except Timeout:
            if not said:
                say(f"another process is preparing {folder}; waiting for it")
            said = True
        except FileNotFoundError:  # the other one has failed, and cleared away what was there for it
            continue
        except OSError as error:
            raise _unwritable(folder, error) from None
    try:
        yield
    finally:
        lock.release()


def _build(folder: Path, build: Callable[[], Build], content: Mapping[str, Any], pieces: Pieces | None) -> None:
    """Build beside the place and move there. What was begun is gone on with; what failed is removed."""
    unfinished = folder.with_name(f"{folder.name}.unfinished")
    if unfinished.exists():
        say(f"going on with {unfinished}")
    try:
        if not (unfinished / MANIFEST).exists():
            facts = {**build().run(unfinished, pieces), "identity": content["corpus"]}
            manifest = {**content, "facts": facts}
            text = json.dumps(manifest, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
            write_text(unfinished / MANIFEST, text)
        for name in WORK_FILES:
            (unfinished / name).unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)  # no manifest: not a prepared folder
        os.replace(unfinished, folder)
    except UserError:
        _remove(unfinished)
        raise
    except OSError as error:
        _remove(unfinished)
        raise _unwritable(folder, error) from None


def _unwritable(folder: Path, error: OSError) -> UserError:
    return UserError(
        f"cannot write {folder} ({error.strerror or error}); nothing is left of it. "
        f"Free some space, or keep prepared corpora elsewhere: data_dir=FOLDER"
    )


def _remove(folder: Path) -> None:
    """The folder, and those around it that were made for it."""
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        folder.with_name(f".{folder.name.removesuffix('.unfinished')}.lock").unlink()
    for parent in (folder.parent, folder.parent.parent):
        with suppress(OSError):  # not empty
            parent.rmdir()


def _read_manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        version = manifest["format"]
    except FileNotFoundError:
        raise UserError(
            f"{folder} is no prepared corpus: it has no {MANIFEST}; make one: python -m nmt.prepare"
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{folder / MANIFEST} is damaged ({error}); delete {folder} and prepare again") from None
    if version != FORMAT:
        raise UserError(
            f"{folder} was prepared by another version of this program (format {version}, this one reads {FORMAT}); "
            f"delete it and prepare again"
        )
    return manifest


def _map(folder: Path, side: str, facts: Mapping[str, Any]) -> Sequences:
    ids = map_array(folder / f"{side}.ids", np.dtype(facts["ids"]))
    offsets = map_array(folder / f"{side}.offsets", np.dtype("int64"))
    if len(offsets) != facts["train"]["kept"] + 1 or offsets[-1] != len(ids):
        raise ValueError(f"{side}.ids and {side}.offsets are not of the size that {MANIFEST} says")
    return Sequences(ids, offsets)


def _parts(facts: Mapping[str, Any]) -> tuple[Part, ...]:
    return tuple(Part(*part) for part in facts.get("parts", ()))
