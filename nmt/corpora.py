"""From the configuration to prepared text: what `train`, `prepare` and `benchmark` share."""

from pathlib import Path
from typing import Any

from hydra.utils import instantiate

from nmt.data.corpus import Corpus, TestSet
from nmt.data.named import set_names
from nmt.data.preparation.build import Pieces, Preparation
from nmt.data.preparation.cleaning import CleaningSettings
from nmt.data.preparation.workers import available_cpus
from nmt.data.prepared import Prepared, open_prepared, prepare
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
    names = test_names(config)
    return prepare(corpus, settings, data_dir, lambda: test_sets(corpus, names), names, pieces)


def test_names(config: dict[str, Any]) -> list[str]:
    """evaluate.test as a list."""
    return set_names(config["evaluate"]["test"])


def test_sets(corpus: Corpus, names: list[str]) -> dict[str, TestSet]:
    """The corpus's own and those by sacreBLEU's names: all that must not be trained on."""
    return {**corpus.test_sets(), **(chosen_test_sets(corpus, names) if names else {})}


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
