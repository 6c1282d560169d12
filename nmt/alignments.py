"""A run's attention as word alignments of a test set, against gold ones where the set has them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nmt.data.text import words
from nmt.errors import ConfigError, UserError, require_flag
from nmt.evaluation.alignment import Gold, Link, by_length, pharaoh, quality, read_alignments, sure
from nmt.evaluation.lengths import source_length
from nmt.evaluation.store import lines_sha256, read_with_lines, require_writable, to_json
from nmt.files import write_text
from nmt.progress import say
from nmt.record import record
from nmt.test_sets import Test, plain_name

MEAN = "mean"

if TYPE_CHECKING:  # torch takes seconds to import, and scoring files needs none
    from nmt.decoding.alignment import Aligned, Looks
    from nmt.decoding.translator import Translator
    from nmt.run import Run


@dataclass(frozen=True)
class AlignmentSettings:
    """Which of the alignments is written where only one can be. ConfigError where a value cannot be used.

    Measured on the grammar corpus shift 0 is right for all of our systems. Which layer of a Transformer aligns best
    depends on its depth, so the default is the mean of all.
    """

    layer: int | str = MEAN  # 1 is the first
    shift: int = 0

    def __post_init__(self) -> None:
        if self.shift not in (0, 1) or isinstance(self.shift, bool):
            raise ConfigError(f"alignment.shift={self.shift}: give 0 or 1")
        if self.layer != MEAN and (not isinstance(self.layer, int) or isinstance(self.layer, bool) or self.layer < 1):
            raise ConfigError(f"alignment.layer={self.layer}: give mean, or a layer's number")

    def way(self, looks: "Looks") -> int:
        """The place of the layer, or of the mean, among looks.ways."""
        if isinstance(self.layer, str):
            return len(looks.ways) - 1
        if self.layer > looks.layers:
            raise ConfigError(f"alignment.layer={self.layer}: this system looks back in {looks.layers} layer(s)")
        return self.layer - 1


@dataclass(frozen=True)
class EvaluationSettings(AlignmentSettings):
    """What is compared: attention or links in a file, with gold in a file or in the test set. ConfigError if bad."""

    score: bool = True
    links: str | None = None
    links_base: int | None = 0
    gold: str | None = None
    base: int | None = None
    reverse: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("base", "links_base"):
            value = getattr(self, name)
            if value not in (None, 0, 1) or isinstance(value, bool):
                raise ConfigError(f"alignment.{name}={value}: give 0, 1 or null")
        if self.links and not self.gold:
            raise ConfigError("alignment.links=FILE are scored against alignment.gold=FILE; give both")
        for name in ("score", "reverse"):
            require_flag(f"alignment.{name}", getattr(self, name))


class GoldAlignments(NamedTuple):
    """One for each sentence pair, and where they are from."""

    name: str
    pairs: list[Gold]


def read_gold(test: Test, settings: EvaluationSettings) -> GoldAlignments | None:
    """Of sources and first references; None where there are none, or none are wanted.

    UserError where they are not of these sentences.
    """
    if not settings.score and not settings.links:
        return None
    if settings.gold:
        pairs = read_alignments(settings.gold, *_word_counts(test), settings.base, settings.reverse)
        return GoldAlignments(plain_name(settings.gold), pairs)
    if test.set.alignments is None:
        return None
    return GoldAlignments(test.set.name, [sure(links) for links in test.set.alignments])


def scored_links(test: Test, gold: GoldAlignments, settings: EvaluationSettings) -> dict[str, Any]:
    """Links of any aligner, from alignment.links, against gold ones: what `with_alignment` adds for a run's own."""
    file, base = str(settings.links), settings.links_base
    links = [one.possible for one in read_alignments(file, *_word_counts(test), base, key="alignment.links_base")]
    name = plain_name(file)
    facts = {"system": name, "way": "", "shift": 0, "default": True}
    lengths = [source_length(line) for line in test.set.sources]
    return {"system": name, "not_aligned": 0, "alignment": [_entry(facts, links, gold, lengths)], "record": record()}


def _word_counts(test: Test) -> tuple[list[int], list[int]]:
    """Of each source and of its first reference."""
    sources, targets = ([len(words(line)) for line in side] for side in (test.set.sources, test.set.references[0]))
    return sources, targets


def _entry(
    facts: dict[str, Any], links: Sequence[Collection[Link]], gold: GoldAlignments, lengths: Sequence[int]
) -> dict[str, Any]:
    """What is reported of one alignment of the whole set."""
    return {
        **facts,
        "gold": gold.name,
        "n": len(links),
        **quality(links, gold.pairs)._asdict(),
        "by_length": by_length(links, gold.pairs, lengths),
    }


def with_alignment(
    evaluation: dict[str, Any],
    run: "Run",
    test: Test,
    gold: GoldAlignments,
    settings: EvaluationSettings,
    folder: Path,
    translator: Callable[[], "Translator"],
    force: bool,
) -> dict[str, Any]:
    """The evaluation with the quality of the run's alignments; as it is where the run has no attention.

    Written to `folder`: every way and shift in TEST.alignment.json, the links of one in TEST.alignment.txt. Not
    computed again where the same weights did so before (`force`: in any case).
    """
    made_by = {
        **{key: evaluation[key] for key in ("weights_sha256", "max_src_pieces")},
        "source_sha256": lines_sha256(test.set.sources),
        "reference_sha256": lines_sha256(test.set.references[0]),
        "gold": gold.name,
        "gold_sha256": lines_sha256(f"{pharaoh(true.sure)} / {pharaoh(true.possible)}" for true in gold.pairs),
        "layer": settings.layer,
        "shift": settings.shift,
    }
    json_file, lines = (folder / f"{test.set.name}.alignment.{suffix}" for suffix in ("json", "txt"))
    kept = None if force else read_with_lines(json_file, lines, "links_sha256")
    stored = kept[0] if kept else None
    if stored is not None and all(stored.get(key) == value for key, value in made_by.items()):
        say(f"{run.name}: alignments of {test.set.name} are there ({folder}); made again with force=true")
    else:
        stored = _align(run, test, gold, settings, folder, translator(), made_by)
    if stored is None or not stored["alignment"]:
        return evaluation
    return {**evaluation, "not_aligned": stored["not_aligned"], "alignment": stored["alignment"]}


def _align(
    run: "Run",
    test: Test,
    gold: GoldAlignments,
    settings: EvaluationSettings,
    folder: Path,
    translator: "Translator",
    made_by: Mapping[str, Any],
) -> dict[str, Any] | None:
    from nmt.decoding.alignment import align

    name = test.set.name
    try:
        require_writable(folder)
    except UserError as error:  # a read-only run that is evaluated already
        say(f"no alignments: {error}")
        return None
    aligned = align(translator, test.set.sources, test.set.references[0], shown=True)
    if aligned is None:
        say(f"{run.name} has no attention: no alignments")
        lines = [""] * len(test.set.sources)
    else:
        lines = [pharaoh(pair) for pair in aligned.links(settings.way(aligned.looks), settings.shift)]
    found = {
        "system": run.name,
        "run": run.path.resolve().name,
        "seed": run.seed,
        "test": name,
        **made_by,
        "sentences": len(lines),
        "not_aligned": aligned.left_out if aligned else len(lines),
        "links_sha256": lines_sha256(lines),
        "alignment": _entries(run.name, test, aligned, gold, settings) if aligned else [],
        "record": record(),
    }
    write_text(folder / f"{name}.alignment.txt", "".join(f"{line}\n" for line in lines))
    write_text(folder / f"{name}.alignment.json", to_json(found) + "\n")
    say(f"written: {folder / name}.alignment.json and .alignment.txt")
    return found


def _entries(
    system: str, test: Test, aligned: "Aligned", gold: GoldAlignments, settings: AlignmentSettings
) -> list[dict[str, Any]]:
    """One for each way and shift; `default` marks that of the settings."""
    lengths = [source_length(line) for line in test.set.sources]
    chosen = (settings.way(aligned.looks), settings.shift)
    entries = []
    for way, what in enumerate(aligned.looks.ways):
        for shift in (0, 1):
            facts = {"system": system, "way": what, "shift": shift, "default": (way, shift) == chosen}
            entries.append(_entry(facts, aligned.links(way, shift), gold, lengths))
    return entries
