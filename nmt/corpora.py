"""From the configuration to prepared text: what `train`, `prepare` and `benchmark` share."""

from pathlib import Path
from typing import Any

from hydra.utils import instantiate

from nmt.data.corpus import Corpus, Pair, TestSet
from nmt.data.named import set_names
from nmt.data.preparation.build import Pieces, Preparation
from nmt.data.preparation.cleaning import CleaningSettings
from nmt.data.preparation.workers import available_cpus
from nmt.data.prepared import HeldOutText, Prepared, open_prepared, prepare
from nmt.data.tokenizer import TokenizerSettings
from nmt.errors import require_whole
from nmt.test_sets import chosen_test_sets


def prepared_corpus(config: dict[str, Any], pieces: Pieces | None = None) -> Prepared:
    """What `data=...` names, prepared now if it was not before; or the folder that `prepared=` names, as it is."""
    if config["prepared"]:
        return open_prepared(Path(str(config["prepared"])).expanduser())
    settings = _preparation(config)
    corpus = instantiate(config["data"])
    data_dir = Path(str(config["data_dir"])).expanduser()
    return prepare(corpus, settings, data_dir, _held_out(config, corpus), pieces)


def _held_out(config: dict[str, Any], corpus: Corpus) -> HeldOutText:
    """The corpus's own validation and test text, and sets by sacreBLEU's names in place of it and beside it."""
    valid_names = set_names(config["evaluate"]["valid"])
    test_names = set_names(config["evaluate"]["test"])

    def valid() -> list[Pair]:
        if not valid_names:
            return list(corpus.valid())
        sets = chosen_test_sets(corpus, valid_names).values()
        return [Pair(*both) for one in sets for both in zip(one.sources, one.references[0], strict=True)]

    def tests() -> dict[str, TestSet]:
        return corpus.test_sets() | (chosen_test_sets(corpus, test_names) if test_names else {})

    return HeldOutText([*(f"valid {name}" for name in valid_names), *test_names], valid, tests)


def _preparation(config: dict[str, Any]) -> Preparation:
    max_pieces, workers = config["batching"]["max_pieces"], config["workers"]
    require_whole("batching.max_pieces", max_pieces)
    if workers is not None:
        require_whole("workers", workers)
    return Preparation(
        TokenizerSettings(**config["tokenizer"]),
        CleaningSettings(**config["cleaning"]),
        max_pieces,
        available_cpus() if workers is None else workers,
    )
