"""Program: lines in, their translations out.      python -m nmt.translate checkpoint=RUN < a.en > a.de"""

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, BinaryIO

import torch

from nmt.cli import Composed, program, say
from nmt.data.text import open_bytes
from nmt.decoding.forced_alignment import attention_shape, force_align
from nmt.decoding.line_io import Write, open_output, read_blocks, read_typed_lines
from nmt.decoding.long_lines import Hypothesis
from nmt.decoding.translator import Translator
from nmt.errors import ConfigError, UserError
from nmt.evaluation.alignment_error import pharaoh_line
from nmt.evaluation.attention_alignment import layer_index
from nmt.loading import choose_device, load_run
from nmt.progress import progress
from nmt.settings import AlignmentSettings, SearchSettings, TranslateConfig, search_settings

BATCHES_READ_AHEAD = 16  # sorted by length together
WARNINGS_SHOWN = 20

# (number of the first line, lines, their translations)
LineHandler = Callable[[int, Sequence[str], Sequence[str]], None]


@program("translate")
def main(composed: Composed) -> None:
    config: TranslateConfig = composed.settings
    beam = max(config.beam, config.n_best)
    if beam > config.beam:
        say(f"n_best={config.n_best} needs as wide a beam: beam={beam} is used, not {config.beam}")
    settings = search_settings(config, beam=beam)
    require_own_files(config)
    if config.input is None and sys.stdin is None:
        raise UserError("there is no standard input; use input=FILE")
    if config.threads:
        torch.set_num_threads(config.threads)
    with ExitStack() as files:
        source = files.enter_context(open_bytes(config.input)) if config.input else sys.stdin.buffer
        write = files.enter_context(open_output(config.output))
        device = choose_device(config.device)
        translator = load_run(config.checkpoint, composed.trust).translator(device, config.max_src_pieces)
        handlers = []
        if config.attention_out:
            handlers.append(files.enter_context(attention_writer(config.attention_out, translator)))
        if config.alignment_out:
            writer = alignment_writer(config.alignment_out, config.alignment, translator)
            handlers.append(files.enter_context(writer))
        translate_lines(source, write, handlers, translator, settings, config)


def require_own_files(config: TranslateConfig) -> None:
    """ConfigError where one output would replace the input or another output."""
    names = {key: getattr(config, key) for key in ("input", "output", "attention_out", "alignment_out")}
    paths = {key: Path(name).expanduser().resolve() for key, name in names.items() if name}
    for (one, path), (other, same) in combinations(paths.items(), 2):
        is_same = path.samefile(same) if path.exists() and same.exists() else path == same
        if is_same and (path.is_file() or not path.exists()):  # devices and pipes are not replaced
            raise ConfigError(f"{other}={names[other]} would replace {one}={names[one]}")


def translate_lines(
    source: BinaryIO,
    write: Write,
    handlers: Sequence[LineHandler],
    translator: Translator,
    settings: SearchSettings,
    config: TranslateConfig,
) -> None:
    """All lines of the source, as they come; warnings at once, counts at the end."""
    counts: Counter[str] = Counter()

    def warn(message: str) -> None:
        counts["warnings"] += 1
        if counts["warnings"] <= WARNINGS_SHOWN:
            say(f"warning: {message}")

    interactive = source.isatty()
    has_bar = not interactive and (config.output is not None or not sys.stdout.isatty())
    blocks = read_typed_lines(source) if interactive else read_blocks(source, BATCHES_READ_AHEAD * settings.batch)
    with progress("translated", None, has_bar) as advance:
        for raw in blocks:
            first = counts["lines"] + 1
            lines = [line.removesuffix(b"\r").decode("utf-8", "replace") for line in raw]
            for number, line in enumerate(raw, first):
                try:
                    line.decode("utf-8")
                except UnicodeDecodeError as error:
                    byte = f"byte {error.start + 1} is 0x{line[error.start]:02x}"
                    warn(f"line {number} is not UTF-8 ({byte}); read as U+FFFD")
            translations = translator.hypotheses(lines, settings, advance)
            for number, hypotheses in enumerate(translations, first):
                parts = hypotheses[0].source_split
                if parts > 1:
                    warn(f"line {number} is longer than max_src_pieces and was translated in {parts} parts")
                counts["translations"] += len(hypotheses)
                counts["capped"] += sum(hypothesis.capped for hypothesis in hypotheses)
                counts["fewer"] += len(hypotheses) < settings.n_best and parts > 0  # 0: an empty source
            write("".join(output_lines(hypotheses, settings.n_best, config.scores) for hypotheses in translations))
            for handle in handlers:
                handle(first, lines, [hypotheses[0].text for hypotheses in translations])
            counts["lines"] += len(lines)
    if counts["warnings"] > WARNINGS_SHOWN:
        say(f"warning: {counts['warnings'] - WARNINGS_SHOWN} more warnings of these kinds are not shown")
    if capped := counts["capped"]:
        longest = f"{settings.max_ratio:g} x source + {settings.max_extra} pieces"
        say(f"capped: {capped} of {counts['translations']} translations have the most pieces allowed ({longest})")
    if fewer := counts["fewer"]:
        say(f"fewer than n_best={settings.n_best} different translations exist for {fewer} lines")


def output_lines(hypotheses: Sequence[Hypothesis], n_best: int, scores: bool) -> str:
    """The n_best lines of output that one line of input gives."""
    lines = [f"{h.score:.4f}\t{h.text}\n" if scores else f"{h.text}\n" for h in hypotheses]
    return "".join(lines) + ("\t\n" if scores else "\n") * (n_best - len(hypotheses))


@contextmanager
def attention_writer(name: str, translator: Translator) -> Iterator[LineHandler]:
    """For attention_out: JSON lines, or a figure of the first line.

    A line holds pieces (the last ones end the sentences) and weights [layer][head][target][source], or nulls where a
    source has no pieces, or too many for one map.
    """
    if attention_shape(translator) is None:
        raise UserError("attention_out: this system has no attention to show")
    if Path(name).suffix in (".png", ".svg", ".pdf"):
        yield partial(draw_first_line, name, translator)
        return
    with open_output(name) as write:

        def write_attention(first: int, lines: Sequence[str], translations: Sequence[str]) -> None:
            for number, (line, translation) in enumerate(zip(lines, translations, strict=True), first):
                record: dict[str, Any] = {"line": number, "source": line, "translation": translation}
                record |= dict.fromkeys(("source_pieces", "target_pieces", "weights"))
                with suppress(UserError):
                    if attention := translator.attention(line, translation):
                        weights = attention.weights.double().numpy().round(5).tolist()
                        record |= {**attention._asdict(), "weights": weights}
                write(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")

        yield write_attention


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
def alignment_writer(name: str, settings: AlignmentSettings, translator: Translator) -> Iterator[LineHandler]:
    """For alignment_out: the links between the words of each line and those of its translation."""
    shape = attention_shape(translator)
    if shape is None:
        raise UserError("alignment_out: this system has no attention, so there are no alignments to write")
    layer = layer_index(settings, shape)
    left_out = 0
    with open_output(name) as write:

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
