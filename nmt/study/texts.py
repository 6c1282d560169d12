"""What of the test set's text a report shows: samples, the attention explorer, and pictures for one sentence."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.data.corpus import TestSet
from nmt.evaluation.lengths import source_length
from nmt.study.explorer import explorer_data
from nmt.study.headline import Ends
from nmt.study.pictures import Pictures, draw_pictures
from nmt.study.report import Texts
from nmt.study.results import System
from nmt.study.sentence import example_at, example_of, spread

if TYPE_CHECKING:
    from nmt.decoding.translator import Translator

Translators = Sequence[tuple[str, "Translator"]]


def texts_of(
    systems: Sequence[System], translators: Translators, test: TestSet, ends: Ends, samples: int, explorable: int
) -> Texts:
    """`samples` short and as many long sentences with what each system made of them, `explorable` for the explorer."""
    lengths = [source_length(source) for source in test.sources]
    shown = []
    for group, where in zip(("short", "long"), ends.ranges, strict=True):
        inside = [place for place, length in enumerate(lengths) if length in where]
        for place in spread(lengths, samples, inside):
            outputs = {system.label: system.results[0].hypotheses[place] for system in systems}
            shown.append({
                "source": test.sources[place],
                "reference": test.references[0][place],
                "words": lengths[place],
                "outputs": outputs,
                "group": group,
            })  # fmt: skip
    places = spread(lengths, explorable)
    own = {system.label: [system.results[0].hypotheses[place] for place in places] for system in systems}
    examples = [example_at(test, place) for place in places]
    explorer = explorer_data(examples, translators, own) if translators and explorable else None
    return Texts(shown, explorer)


def drawn_attention(translators: Translators, test: TestSet, sentence: str | None, output: Path) -> Pictures:
    """A picture of each system that attends, for the user's sentence or one of the test set."""
    example = example_of(test, sentence)
    return draw_pictures(translators, example, output) if translators and example else Pictures()
