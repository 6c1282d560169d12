"""Prepared corpora on disk: identified by their content, built once, read by any number of processes."""

import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout

from nmt.data.corpus import Corpus, Pair
from nmt.data.encoded_pairs import EncodedPairs, PartRange, Sequences, encode_pairs
from nmt.data.preparation.corpus_builder import CARD_PAGE, VALID, WORK, CorpusBuilder
from nmt.data.preparation.encoding import TokenizerPair
from nmt.data.test_sets import PREPARED_FOLDER, select_test_sets, set_names
from nmt.data.tokenizer import Tokenizer, load_tokenizers
from nmt.errors import UserError
from nmt.files import write_text
from nmt.progress import say
from nmt.schema import check
from nmt.training_settings import CleaningSettings, TokenizerSettings

FORMAT = 1  # raised whenever older folders can no longer be read as they are
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class PreparedCorpus:
    """What a training reads. The ids stay in memory-mapped files."""

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


def prepare_from_config(
    config: Mapping[str, Any], make_corpus: Callable[[], Corpus], tokenizers: TokenizerPair | None = None
) -> PreparedCorpus:
    """The corpus of `data=...`, prepared now unless it was before; or the folder named by `prepared=`, as it is.

    Another process that builds the same one is waited for. `tokenizers` are used instead of learning new ones.
    UserError where the text cannot be used; then nothing is left behind.
    """
    if config["prepared"]:
        return open_prepared(Path(str(config["prepared"])).expanduser())
    cpus = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    tokenizer = check(TokenizerSettings, config["tokenizer"], "tokenizer.")
    cleaning = check(CleaningSettings, config["cleaning"], "cleaning.")
    max_pieces, workers = config["batching"]["max_pieces"], config["workers"] or cpus
    corpus = make_corpus()
    valid_names, test_names = (set_names(config["evaluate"][key]) for key in ("valid", "test"))

    def builder() -> CorpusBuilder:
        """The corpus's validation and test text is kept out; sacreBLEU's sets replace the one and join the other."""
        valid_sets = select_test_sets(corpus, valid_names).values() if valid_names else ()
        pairs = (Pair(*pair) for test in valid_sets for pair in zip(test.sources, test.references[0], strict=True))
        tests = corpus.test_sets() | (select_test_sets(corpus, test_names) if test_names else {})
        valid = list(pairs if valid_names else corpus.valid())
        return CorpusBuilder(corpus, valid, tests, tokenizer, cleaning, max_pieces, workers)

    content = {  # everything that decides the bytes of the folder
        "format": FORMAT,
        "corpus": corpus.identity(),
        "languages": [corpus.source_language, corpus.target_language],
        "tokenizer": tokenizer.model_dump() if tokenizers is None else None,
        "pieces": [hashlib.sha256(pieces.model).hexdigest() for pieces in tokenizers or ()],
        "cleaning": cleaning.model_dump(),
        "max_pieces": max_pieces,
        "held_out": [*(f"valid {name}" for name in valid_names), *test_names],
    }
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    words = (corpus.name, corpus.source_language, corpus.target_language, digest[:12])
    name = re.sub(r"[^\w.-]+", "-", "-".join(word for word in words if word)).lstrip(".-")
    folder = Path(str(config["data_dir"])).expanduser() / PREPARED_FOLDER / name
    if not (folder / MANIFEST).exists():
        with _lock(folder):
            if not (folder / MANIFEST).exists():
                _build(folder, builder, content, tokenizers)
    return open_prepared(folder)


def open_prepared(folder: Path) -> PreparedCorpus:
    """A prepared folder as it is. UserError where it is none, is damaged, or of another version."""
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
    facts = manifest["facts"]
    source, target = load_tokenizers(folder)
    try:
        valid_pairs = [Pair(*pair) for pair in json.loads((folder / VALID).read_text(encoding="utf-8"))]
        src, tgt = (_map_sequences(folder, side, facts) for side in ("src", "tgt"))
        train = EncodedPairs(src, tgt, tuple(PartRange(*part) for part in facts.get("parts", ())))
    except (OSError, ValueError) as error:
        raise UserError(f"{folder} is damaged ({error}); delete it and prepare again") from None
    valid = encode_pairs(valid_pairs, source, target, manifest["max_pieces"])
    return PreparedCorpus(folder, source, target, train, valid, valid_pairs, facts)


def _map_sequences(folder: Path, side: str, facts: Mapping[str, Any]) -> Sequences:
    ids, offsets = (
        np.memmap(path, dtype=kind, mode="r") if path.stat().st_size else np.zeros(0, dtype=kind)
        for path, kind in ((folder / f"{side}.ids", facts["ids"]), (folder / f"{side}.offsets", "int64"))
    )
    if len(offsets) != facts["train"]["kept"] + 1 or offsets[-1] != len(ids):
        raise ValueError(f"{side}.ids and {side}.offsets are not of the size that {MANIFEST} says")
    return Sequences(ids, offsets)


def data_identity(facts: Mapping[str, Any]) -> str:
    """A checksum of what was read for training and of the pieces' numbers; the same data give the same one."""
    facts_of_text = {key: facts[key] for key in ("train_sha256", "source_vocab", "target_vocab")}
    return hashlib.sha256(json.dumps(facts_of_text, sort_keys=True).encode()).hexdigest()


def _lock(folder: Path) -> AbstractContextManager[Any]:
    """Held by one builder at a time; the lock goes with its process, whatever ends that."""
    lock = FileLock(str(folder.with_name(f".{folder.name}.lock")))
    seconds = 0
    while True:
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            return lock.acquire(timeout=seconds)
        except Timeout:
            if not seconds:
                say(f"another process is preparing {folder}; waiting for it")
            seconds = 1
        except FileNotFoundError:  # the other process has failed and removed the folder
            continue
        except OSError as error:
            raise _unwritable(folder, error) from None


def _build(
    folder: Path, builder: Callable[[], CorpusBuilder], content: Mapping[str, Any], tokenizers: TokenizerPair | None
) -> None:
    """Build under another name, then rename. An interrupted build is resumed; a failed one is removed."""
    unfinished = folder.with_name(f"{folder.name}.unfinished")
    if unfinished.exists():
        say(f"resuming {unfinished}")
    try:
        if not (unfinished / MANIFEST).exists():
            facts = {**builder().run(unfinished, tokenizers), "identity": content["corpus"]}
            manifest = {**content, "facts": facts}
            text = json.dumps(manifest, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
            write_text(unfinished / MANIFEST, text)
        shutil.rmtree(unfinished / WORK, ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)  # no manifest: not a prepared folder
        os.replace(unfinished, folder)
    except (UserError, OSError) as error:
        shutil.rmtree(unfinished, ignore_errors=True)
        folder.with_name(f".{folder.name}.lock").unlink(missing_ok=True)
        for parent in (folder.parent, folder.parent.parent):
            with suppress(OSError):  # not empty
                parent.rmdir()
        raise error if isinstance(error, UserError) else _unwritable(folder, error) from None


def _unwritable(folder: Path, error: OSError) -> UserError:
    return UserError(
        f"cannot write {folder} ({error.strerror or error}); nothing is left of it. "
        f"Free some space, or keep prepared corpora elsewhere: data_dir=FOLDER"
    )
