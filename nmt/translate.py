"""Program: lines in, their translations out.      python -m nmt.translate checkpoint=RUN < a.en > a.de"""

import dataclasses
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO

import torch
from omegaconf import DictConfig, OmegaConf

from nmt.alignments import AlignmentSettings
from nmt.cli import program, say
from nmt.data.text import open_bytes
from nmt.decoding.alignment import align, looks_of
from nmt.decoding.lines import Hypothesis, split_warnings
from nmt.decoding.search import SearchSettings
from nmt.decoding.streams import Write, arriving, typed, writing
from nmt.decoding.translator import Translator
from nmt.errors import ConfigError, UserError
from nmt.evaluation.alignment import pharaoh
from nmt.progress import progress
from nmt.run import choose_device, load_run

BATCHES_READ_AHEAD = 16  # sorted by length together
WARNINGS_SHOWN = 20
PICTURES = (".png", ".svg", ".pdf")

# Takes the number of the first of some lines, the lines and their translations.
Explain = Callable[[int, Sequence[str], Sequence[str]], None]


@program("translate")
def main(cfg: DictConfig) -> None:
    settings = search_settings(cfg)
    with ExitStack() as files:
        source = files.enter_context(open_bytes(cfg.input)) if cfg.input else standard_input()
        write = files.enter_context(writing(cfg.output))
        translator = load_translator(cfg)
        explain = files.enter_context(explaining(cfg.attention_out, translator))
        link = files.enter_context(linking(cfg.alignment_out, AlignmentSettings(**cfg.alignment), translator))
        translate(source, write, [explain, link], translator, settings, cfg.scores, quiet=not cfg.output)


def translate(
    source: BinaryIO,
    write: Write,
    explain: Sequence[Explain],
    translator: Translator,
    settings: SearchSettings,
    scores: bool,
    quiet: bool,
) -> None:
    """All lines of the source, as they come. quiet: no bar where translations go to the same terminal."""
    report = Report(settings)
    typing = source.isatty()
    blocks = typed(source) if typing else arriving(source, BATCHES_READ_AHEAD * settings.batch)
    with progress("translated", None, not typing and not (quiet and sys.stdout.isatty())) as advance:
        for raw in blocks:
            first = report.lines + 1
            lines = [decode(line, number, report) for number, line in enumerate(raw, first)]
            translations = translator.hypotheses(lines, settings, advance)
            report.add(translations, first)
            write("".join(rows(hypotheses, settings.n_best, scores) for hypotheses in translations))
            for one in explain:
                one(first, lines, [hypotheses[0].text for hypotheses in translations])
    report.close()


def search_settings(cfg: DictConfig) -> SearchSettings:
    """A beam too narrow for n_best is widened, and that is said."""
    values = {field.name: cfg[field.name] for field in dataclasses.fields(SearchSettings)}
    beam, n_best = values["beam"], values["n_best"]
    if isinstance(beam, int) and isinstance(n_best, int) and 1 <= beam < n_best:
        say(f"n_best={n_best} needs as wide a beam: beam={n_best} is used, not {beam}")
        values["beam"] = n_best
    return SearchSettings(**values)


def load_translator(cfg: DictConfig) -> Translator:
    if OmegaConf.is_missing(cfg, "checkpoint"):
        raise ConfigError("checkpoint=RUN is needed: the run directory of a trained system")
    for key in ("threads", "max_src_pieces"):
        if cfg[key] is not None and (not isinstance(cfg[key], int) or cfg[key] < 1):
            raise ConfigError(f"{key}={cfg[key]}: give a whole number, 1 or more, or null")
    if cfg.threads:
        torch.set_num_threads(cfg.threads)
    device = choose_device(cfg.device)
    return load_run(cfg.checkpoint).translator(device, cfg.max_src_pieces)


def standard_input() -> BinaryIO:
    if sys.stdin is None:
        raise UserError("there is no standard input; use input=FILE")
    return sys.stdin.buffer


def decode(raw: bytes, number: int, report: "Report") -> str:
    raw = raw.removesuffix(b"\r")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        byte = f"byte {error.start + 1} is 0x{raw[error.start]:02x}"
        report.warn(f"line {number} is not UTF-8 ({byte}); read as U+FFFD")
        return raw.decode("utf-8", "replace")


def rows(hypotheses: Sequence[Hypothesis], n_best: int, scores: bool) -> str:
    """The n_best lines of output that one line of input gives."""
    lines = [f"{h.score:.4f}\t{h.text}\n" if scores else f"{h.text}\n" for h in hypotheses]
    return "".join(lines) + ("\t\n" if scores else "\n") * (n_best - len(hypotheses))


class Report:
    """What a person should know: warnings as they come, counts at the end."""

    def __init__(self, settings: SearchSettings) -> None:
        self.settings = settings
        self.lines = self.outputs = self.capped = self.short = self.warnings = 0

    def warn(self, message: str) -> None:
        self.warnings += 1
        if self.warnings <= WARNINGS_SHOWN:
            say(f"warning: {message}")

    def add(self, translations: Sequence[Sequence[Hypothesis]], first_line: int) -> None:
        for message in split_warnings(translations, first_line):
            self.warn(message)
        self.lines += len(translations)
        for hypotheses in translations:
            self.outputs += len(hypotheses)
            self.capped += sum(hypothesis.capped for hypothesis in hypotheses)
            nothing_there = hypotheses[0].source_split == 0
            self.short += len(hypotheses) < self.settings.n_best and not nothing_there

    def close(self) -> None:
        if self.warnings > WARNINGS_SHOWN:
            say(f"warning: {self.warnings - WARNINGS_SHOWN} more warnings of these kinds are not shown")
        if self.capped:
            longest = f"{self.settings.max_ratio:g} x source + {self.settings.max_extra} pieces"
            say(f"capped: {self.capped} of {self.outputs} translations have the most pieces allowed ({longest})")
        if self.short:
            say(f"fewer than n_best={self.settings.n_best} different translations exist for {self.short} lines")


@contextmanager
def explaining(name: str | None, translator: Translator) -> Iterator[Explain]:
    """What attention_out asks for: JSON lines, a picture, or nothing."""
    if name is None:
        yield lambda first, lines, translations: None
        return
    if looks_of(translator) is None:
        raise UserError("attention_out: this system has no attention to show")
    if Path(name).suffix in PICTURES:
        yield partial(draw, name, translator)
        return
    with writing(name) as write:

        def explain(first: int, lines: Sequence[str], translations: Sequence[str]) -> None:
            for number, (line, translation) in enumerate(zip(lines, translations, strict=True), first):
                write(attention_json(translator, number, line, translation))

        yield explain


def attention_json(translator: Translator, number: int, line: str, translation: str) -> str:
    """One line: pieces (the last ones end the sentences) and weights [layer][head][target][source].

    They are null where the line has no pieces, or too many for one map.
    """
    try:
        found = translator.attention(line, translation)
    except UserError:
        found = None
    record = {
        "line": number,
        "source": line,
        "translation": translation,
        "source_pieces": found and found.source_pieces,
        "target_pieces": found and found.target_pieces,
        "weights": found
        and [[[[round(w, 5) for w in row] for row in head] for head in layer] for layer in found.weights.tolist()],
    }
    return json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n"


def draw(name: str, translator: Translator, first: int, lines: Sequence[str], translations: Sequence[str]) -> None:
    if first <= 2 < first + len(lines):
        say(f"attention_out: {name} shows line 1 alone; attention_out=FILE.jsonl writes the weights of all")
    if first == 1:
        from nmt.study.heatmap import draw_attention  # matplotlib takes a second to import

        found = translator.attention(lines[0], translations[0])
        if found is not None:
            draw_attention(found, Path(name).expanduser(), title=lines[0])


@contextmanager
def linking(name: str | None, settings: AlignmentSettings, translator: Translator) -> Iterator[Explain]:
    """What alignment_out asks for: of each line the links between its words and those of its translation."""
    if name is None:
        yield lambda first, lines, translations: None
        return
    looks = looks_of(translator)
    if looks is None:
        raise UserError("alignment_out: this system has no attention, so there are no alignments to write")
    way = settings.way(looks)
    left_out = 0
    with writing(name) as write:

        def link(first: int, lines: Sequence[str], translations: Sequence[str]) -> None:
            nonlocal left_out
            aligned = align(translator, lines, translations)
            assert aligned is not None
            left_out += aligned.left_out
            write("".join(f"{pharaoh(links)}\n" for links in aligned.links(way, settings.shift)))

        yield link
    if left_out:
        lines = "1 line is" if left_out == 1 else f"{left_out:,} lines are"
        say(f"alignment_out: {lines} left blank: over {translator.max_src_pieces} pieces, or so its translation has")


if __name__ == "__main__":
    main()
