"""Program: lines in, their translations out.      python -m nmt.translate checkpoint=RUN < a.en > a.de"""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO

import torch

from nmt.cli import Composed, program, say
from nmt.data.text import open_bytes
from nmt.decoding.forced_alignment import attention_shape, force_align
from nmt.decoding.line_io import Write, open_output, read_blocks, read_typed_lines
from nmt.decoding.long_lines import Hypothesis, split_warnings
from nmt.decoding.translator import Translator
from nmt.errors import UserError
from nmt.evaluation.alignment_error import pharaoh_line
from nmt.evaluation.attention_alignment import layer_index
from nmt.loading import choose_device, load_run
from nmt.progress import progress
from nmt.settings import AlignmentSettings, SearchSettings, TranslateConfig, search_settings

BATCHES_READ_AHEAD = 16  # sorted by length together
WARNINGS_SHOWN = 20
FIGURE_SUFFIXES = (".png", ".svg", ".pdf")

# (number of the first line, lines, their translations)
LineHandler = Callable[[int, Sequence[str], Sequence[str]], None]


@program("translate")
def main(composed: Composed) -> None:
    config: TranslateConfig = composed.settings
    beam = max(config.beam, config.n_best)
    if beam > config.beam:
        say(f"n_best={config.n_best} needs as wide a beam: beam={beam} is used, not {config.beam}")
    settings = search_settings(config, beam=beam)
    with ExitStack() as files:
        source = files.enter_context(open_bytes(config.input)) if config.input else standard_input()
        write = files.enter_context(open_output(config.output, [config.input]))
        translator = load_translator(config, composed.trust)
        attention = files.enter_context(
            attention_writer(config.attention_out, [config.input, config.output], translator)
        )
        kept = [config.input, config.output, config.attention_out]
        alignments = files.enter_context(alignment_writer(config.alignment_out, kept, config.alignment, translator))
        handlers = [attention, alignments]
        translate_lines(source, write, handlers, translator, settings, config.scores, quiet=not config.output)


def translate_lines(
    source: BinaryIO,
    write: Write,
    handlers: Sequence[LineHandler],
    translator: Translator,
    settings: SearchSettings,
    scores: bool,
    quiet: bool,
) -> None:
    """All lines of the source, as they come. quiet: no bar where translations go to the same terminal."""
    summary = Summary(settings)
    interactive = source.isatty()
    blocks = read_typed_lines(source) if interactive else read_blocks(source, BATCHES_READ_AHEAD * settings.batch)
    with progress("translated", None, not interactive and not (quiet and sys.stdout.isatty())) as advance:
        for raw in blocks:
            first = summary.lines + 1
            lines = [decode_line(line, number, summary) for number, line in enumerate(raw, first)]
            translations = translator.hypotheses(lines, settings, advance)
            summary.add(translations, first)
            write("".join(output_lines(hypotheses, settings.n_best, scores) for hypotheses in translations))
            for handle in handlers:
                handle(first, lines, [hypotheses[0].text for hypotheses in translations])
    summary.close()


def load_translator(config: TranslateConfig, trust: Sequence[str]) -> Translator:
    if config.threads:
        torch.set_num_threads(config.threads)
    device = choose_device(config.device)
    return load_run(config.checkpoint, trust).translator(device, config.max_src_pieces)


def standard_input() -> BinaryIO:
    if sys.stdin is None:
        raise UserError("there is no standard input; use input=FILE")
    return sys.stdin.buffer


def decode_line(raw: bytes, number: int, summary: "Summary") -> str:
    raw = raw.removesuffix(b"\r")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        byte = f"byte {error.start + 1} is 0x{raw[error.start]:02x}"
        summary.warn(f"line {number} is not UTF-8 ({byte}); read as U+FFFD")
        return raw.decode("utf-8", "replace")


def output_lines(hypotheses: Sequence[Hypothesis], n_best: int, scores: bool) -> str:
    """The n_best lines of output that one line of input gives."""
    lines = [f"{h.score:.4f}\t{h.text}\n" if scores else f"{h.text}\n" for h in hypotheses]
    return "".join(lines) + ("\t\n" if scores else "\n") * (n_best - len(hypotheses))


class Summary:
    """Messages to the user: warnings as they come, counts at the end."""

    def __init__(self, settings: SearchSettings) -> None:
        self.settings = settings
        self.lines = self.translations = self.capped = self.fewer_than_n_best = self.warnings = 0

    def warn(self, message: str) -> None:
        self.warnings += 1
        if self.warnings <= WARNINGS_SHOWN:
            say(f"warning: {message}")

    def add(self, translations: Sequence[Sequence[Hypothesis]], first_line: int) -> None:
        for message in split_warnings(translations, first_line):
            self.warn(message)
        self.lines += len(translations)
        for hypotheses in translations:
            self.translations += len(hypotheses)
            self.capped += sum(hypothesis.capped for hypothesis in hypotheses)
            empty_source = hypotheses[0].source_split == 0
            self.fewer_than_n_best += len(hypotheses) < self.settings.n_best and not empty_source

    def close(self) -> None:
        if self.warnings > WARNINGS_SHOWN:
            say(f"warning: {self.warnings - WARNINGS_SHOWN} more warnings of these kinds are not shown")
        if self.capped:
            longest = f"{self.settings.max_ratio:g} x source + {self.settings.max_extra} pieces"
            say(f"capped: {self.capped} of {self.translations} translations have the most pieces allowed ({longest})")
        if self.fewer_than_n_best:
            lines, n_best = self.fewer_than_n_best, self.settings.n_best
            say(f"fewer than n_best={n_best} different translations exist for {lines} lines")


@contextmanager
def attention_writer(name: str | None, keep: Sequence[str | None], translator: Translator) -> Iterator[LineHandler]:
    """For attention_out: JSON lines, a figure, or nothing."""
    if name is None:
        yield lambda first, lines, translations: None
        return
    if attention_shape(translator) is None:
        raise UserError("attention_out: this system has no attention to show")
    if Path(name).suffix in FIGURE_SUFFIXES:
        yield partial(draw_first_line, name, translator)
        return
    with open_output(name, keep) as write:

        def write_attention(first: int, lines: Sequence[str], translations: Sequence[str]) -> None:
            for number, (line, translation) in enumerate(zip(lines, translations, strict=True), first):
                write(attention_json(translator, number, line, translation))

        yield write_attention


def attention_json(translator: Translator, number: int, line: str, translation: str) -> str:
    """One line: pieces (the last ones end the sentences) and weights [layer][head][target][source].

    They are null where the line has no pieces, or too many for one map.
    """
    try:
        attention = translator.attention(line, translation)
    except UserError:
        attention = None
    record = {
        "line": number,
        "source": line,
        "translation": translation,
        "source_pieces": attention and attention.source_pieces,
        "target_pieces": attention and attention.target_pieces,
        "weights": attention
        and [[[[round(w, 5) for w in row] for row in head] for head in layer] for layer in attention.weights.tolist()],
    }
    return json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n"


def draw_first_line(
    name: str, translator: Translator, first: int, lines: Sequence[str], translations: Sequence[str]
) -> None:
    if first <= 2 < first + len(lines):
        say(f"attention_out: {name} shows line 1 alone; attention_out=FILE.jsonl writes the weights of all")
    if first == 1:
        from nmt.study.attention_maps import draw_attention  # Altair takes a second to import

        attention = translator.attention(lines[0], translations[0])
        if attention is not None:
            draw_attention(attention, Path(name).expanduser(), title=lines[0])


@contextmanager
def alignment_writer(
    name: str | None, keep: Sequence[str | None], settings: AlignmentSettings, translator: Translator
) -> Iterator[LineHandler]:
    """For alignment_out: the links between the words of each line and those of its translation."""
    if name is None:
        yield lambda first, lines, translations: None
        return
    shape = attention_shape(translator)
    if shape is None:
        raise UserError("alignment_out: this system has no attention, so there are no alignments to write")
    layer = layer_index(settings, shape)
    left_out = 0
    with open_output(name, keep) as write:

        def write_alignments(first: int, lines: Sequence[str], translations: Sequence[str]) -> None:
            nonlocal left_out
            aligned = force_align(translator, lines, translations)
            assert aligned is not None
            left_out += aligned.left_out
            write("".join(f"{pharaoh_line(links)}\n" for links in aligned.links(layer, settings.shift)))

        yield write_alignments
    if left_out:
        lines = "1 line is" if left_out == 1 else f"{left_out:,} lines are"
        say(f"alignment_out: {lines} left blank: over {translator.max_src_pieces} pieces, or so its translation has")


if __name__ == "__main__":
    main()
