"""Attention read as word alignment: links of forced decoding against the gold links of a test set."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nmt.data.corpus import TestSet
from nmt.data.text import words
from nmt.errors import ConfigError, UserError
from nmt.evaluation.alignment_error import (
    AlignmentEntry,
    GoldAlignment,
    alignment_entry,
    all_sure,
    diagonal,
    pharaoh_line,
    read_alignments,
)
from nmt.evaluation.by_length import source_length
from nmt.evaluation.stored import lines_sha256, read_stored, require_writable, write_with_lines
from nmt.progress import say
from nmt.settings import AlignmentSettings, GoldSettings

if TYPE_CHECKING:  # torch takes seconds to import, and scoring files needs none
    from nmt.decoding.forced_alignment import AttentionShape
    from nmt.decoding.translator import Translator


def layer_index(settings: AlignmentSettings, shape: "AttentionShape") -> int:
    """Index of the chosen layer, or of the mean over layers, in shape.layer_names. ConfigError where there is none."""
    if isinstance(settings.layer, str):
        return len(shape.layer_names) - 1
    if settings.layer > shape.layers:
        raise ConfigError(f"alignment.layer={settings.layer}: this system attends in {shape.layers} layer(s)")
    return settings.layer - 1


class GoldAlignmentSet(NamedTuple):
    """The gold links of each sentence pair, and the name of their file or test set."""

    name: str
    pairs: list[GoldAlignment]


def read_gold_alignments(test: TestSet, settings: GoldSettings) -> GoldAlignmentSet | None:
    """Gold links between the sources and the first references; None where there are none, or score=false.

    UserError for a file that does not fit these sentences.
    """
    if not settings.score:
        return None
    if settings.gold and settings.base is not None:
        sources, targets = ([len(words(line)) for line in side] for side in (test.sources, test.references[0]))
        name = Path(settings.gold).name.removesuffix(".gz")
        return GoldAlignmentSet(name, read_alignments(settings.gold, sources, targets, settings.base, settings.reverse))
    if test.alignments is None:
        return None
    return GoldAlignmentSet(test.name, [all_sure(links) for links in test.alignments])


def stored_alignments(
    evaluation: Mapping[str, Any], test: TestSet, gold: GoldAlignmentSet, settings: AlignmentSettings, folder: Path
) -> dict[str, Any] | None:
    """TEST.alignment.json of `folder`; None unless the same weights made it of the same text and gold links."""
    files = read_stored(folder, f"{test.name}.alignment", "txt", "links_sha256")
    inputs = _inputs(evaluation, test, gold, settings)
    return files[0] if files and all(files[0].get(key) == value for key, value in inputs.items()) else None


def _inputs(
    evaluation: Mapping[str, Any], test: TestSet, gold: GoldAlignmentSet, settings: AlignmentSettings
) -> dict[str, Any]:
    """What decides the alignments, as TEST.alignment.json records it."""
    return {
        **{key: evaluation[key] for key in ("weights_sha256", "max_src_pieces")},
        "source_sha256": lines_sha256(test.sources),
        "reference_sha256": lines_sha256(test.references[0]),
        "gold": gold.name,
        "gold_sha256": lines_sha256(
            f"{pharaoh_line(pair.sure)} / {pharaoh_line(pair.possible)}" for pair in gold.pairs
        ),
        "layer": settings.layer,
        "shift": settings.shift,
    }


def add_alignment_scores(
    evaluation: dict[str, Any],
    test: TestSet,
    gold: GoldAlignmentSet,
    settings: AlignmentSettings,
    folder: Path,
    translator: Callable[[], "Translator"],
    provenance: Callable[[], dict[str, Any]],
    force: bool,
) -> dict[str, Any]:
    """The evaluation of a run with the AER of its attention; unchanged where the model has no attention.

    Written to `folder`: the scores of every layer and shift in TEST.alignment.json, the links of one of them in
    TEST.alignment.txt. Files that the same weights made of the same text are reused unless `force`.
    """
    system, name = evaluation["system"], f"{test.name}.alignment"
    stored = None if force else stored_alignments(evaluation, test, gold, settings, folder)
    if stored:
        say(f"{system}: alignments of {test.name} are there ({folder}); made again with force=true")
    else:
        try:
            require_writable(folder)
        except UserError as error:  # a read-only run that is evaluated already
            say(f"no alignments: {error}")
            return evaluation
        lines, not_aligned, entries = _score_layers(system, test, gold, settings, translator())
        stored = {
            **{key: evaluation[key] for key in ("system", "run", "seed")},
            "test": test.name,
            **_inputs(evaluation, test, gold, settings),
            "sentences": len(lines),
            "not_aligned": not_aligned,
            "links_sha256": lines_sha256(lines),
            "alignment": [{key: own for key, own in asdict(entry).items() if key != "seeds"} for entry in entries],
            "provenance": provenance(),
        }
        write_with_lines(folder, name, "txt", lines, stored)
    if not stored["alignment"]:
        return evaluation
    return {**evaluation, "not_aligned": stored["not_aligned"], "alignment": stored["alignment"]}


def _score_layers(
    system: str, test: TestSet, gold: GoldAlignmentSet, settings: AlignmentSettings, translator: "Translator"
) -> tuple[list[str], int, list[AlignmentEntry]]:
    """Pharaoh lines of the layer and shift in the settings; the number of pairs not aligned; the scores.

    They are those of each layer and shift, `default` for the one in the settings; and of the best head of each shift.
    """
    from nmt.decoding.forced_alignment import SHIFTS, force_align

    aligned = force_align(translator, test.sources, test.references[0], show_bar=True)
    if aligned is None:
        say(f"{system} has no attention: no alignments")
        return [""] * len(test.sources), len(test.sources), []
    layers, heads = aligned.shape.layer_names, aligned.shape.head_names
    default = (layer_index(settings, aligned.shape), settings.shift)
    lengths = [source_length(line) for line in test.sources]

    def entry(number: int, name: str, shift: int) -> AlignmentEntry:
        facts = (system, name, shift, (number, shift) == default)
        return alignment_entry(facts, gold.name, aligned.links(number, shift), gold.pairs, lengths)

    entries = [entry(number, name, shift) for number, name in enumerate(layers) for shift in SHIFTS]
    for shift in SHIFTS if heads else ():
        each_head = [entry(number, name, shift) for number, name in enumerate(heads, start=len(layers))]
        best = min(each_head, key=lambda head: 1.0 if head.aer is None else head.aer)
        entries.append(replace(best, attention=f"best head: {best.attention}"))
    return [pharaoh_line(links) for links in aligned.links(*default)], aligned.left_out, entries


def diagonal_entry(test: TestSet, gold: GoldAlignmentSet) -> AlignmentEntry:
    """The baseline: word j of the reference is linked to the source word at the same place in its sentence."""
    links = [
        diagonal(len(words(source)), len(words(target)))
        for source, target in zip(test.sources, test.references[0], strict=True)
    ]
    lengths = [source_length(line) for line in test.sources]
    return alignment_entry(("diagonal (baseline)", "no attention", 0, False), gold.name, links, gold.pairs, lengths)
