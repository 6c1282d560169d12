"""The documents: links, anchors, examples, lengths, wording; and the site that is built from them."""

import ast
import html.parser
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import pytest
from hydra import compose, initialize_config_dir

from nmt.schema import conf_dir
from tests.conftest import program_environment

ROOT = Path(__file__).resolve().parent.parent
DOCS = sorted((ROOT / "docs").rglob("*.md"))
TOP = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md")]
PAGES = [*TOP, *DOCS]
README_BYTES = 9_000
TASKS = ("installation", "tutorial", "own_text", "wmt", "comparing", "attention", "extending", "benchmarks", "clusters",
         "troubleshooting")  # fmt: skip
FENCE = re.compile(
    r"(?:<!-- (?P<mark>[^\n]*?) -->\n)?^```(?P<kind>[\w{}-]*)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE
)
FILE = re.compile(r"^`([\w/]+\.(?:py|yaml))`:\n\n```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE)
INLINE_CODE = re.compile(r"``.+?``|`[^`\n]*`")


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def prose(path: Path) -> str:
    """A page without code and without the tables that scripts copy into it."""
    text = re.sub(r"<!-- (?:tables|summary): .*?<!-- end -->", "", read(path), flags=re.DOTALL)
    return INLINE_CODE.sub("", FENCE.sub("", text))


# ---- what stands in them


def test_readme_stays_short() -> None:
    assert (ROOT / "README.md").stat().st_size <= README_BYTES


# What a native speaker of the field would not write, with what they would.
WORDS = {
    r"\bgo(es)? on\b": "resume, continue",
    r"\b(a|the|each|one|no) look(s|ing)?\b|\blooks at\b": "attention, attends to",
    r"\b(source|target|predicted|same) places?\b|\bplaces of\b": "position",
    r"\bis said\b|\bsays it at the start\b": "logged, printed, reported",
    r"\bmended\b": "fixed",
    r"\bin the mean\b": "on average",
    r"\bthe luck of chance\b": "chance",
    r"\bwhole of it\b": "all of it",
    r"\bteach(es|ing)?\b": "teacher forcing, training",
    r"\blet away\b|\bleave (it|them|one) away\b": "leave out",
}


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_no_page_has_a_phrase_that_is_not_the_fields_english(path: Path) -> None:
    hits = {pattern: match[0] for pattern in WORDS if (match := re.search(pattern, prose(path), re.IGNORECASE))}
    assert hits == {}


def test_every_page_of_docs_is_in_a_table_of_contents() -> None:
    listed = {"index"}
    for page in DOCS:
        for body in re.findall(r"^```\{toctree\}\n(.*?)^```$", read(page), re.DOTALL | re.MULTILINE):
            names = [line for line in body.split("\n") if line and not line.startswith(":")]
            folder = page.parent.relative_to(ROOT / "docs")
            listed |= {(folder / name).as_posix() for name in names}
    assert {page.relative_to(ROOT / "docs").with_suffix("").as_posix() for page in DOCS} == listed


# ---- links


class Link(NamedTuple):
    page: Path
    target: str


def links(pages: list[Path] = PAGES) -> Iterator[Link]:
    for page in pages:
        text = INLINE_CODE.sub("", FENCE.sub("", read(page)))
        yield from (Link(page, target) for target in re.findall(r"\]\(([^)\s]+)\)", text))
        yield from (Link(page, target) for target in re.findall(r"<(https?://[^>\s]+)>", text))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and MyST make them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", read(page)), re.MULTILINE)
    slugs: set[str] = set()
    for heading in headings:
        kept = "".join(c for c in heading.lower() if c in " -_" or unicodedata.category(c)[0] in "LN")
        slug = count = kept.strip().replace(" ", "-")
        number = 0
        while count in slugs:
            number += 1
            count = f"{slug}-{number}"
        slugs.add(count)
    return slugs


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_relative_link_leads_to_a_file_and_an_anchor_that_exist(page: Path) -> None:
    broken = []
    for _, target in links([page]):
        if urlsplit(target).scheme:
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / unquote(path)).resolve() if path else page
        if not file.exists() or not file.is_relative_to(ROOT) or (anchor and anchor not in anchors(file)):
            broken.append(target)
    assert broken == []


def test_external_links_are_well_formed_and_few() -> None:
    external = {target for _, target in links() if urlsplit(target).scheme}
    assert external
    for target in external:
        parts = urlsplit(target)
        assert parts.scheme == "https", target
        assert re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+", parts.netloc), target
    assert {urlsplit(target).netloc for target in external} <= {"arxiv.org", "github.com", "aclanthology.org"}


# ---- the site


class Targets(html.parser.HTMLParser):
    """The ids of a page, and what it links to."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for key, value in attributes:
            if key == "id" and value:
                self.ids.add(value)
            elif (key == "href" and tag == "a") or (key == "src" and tag == "img"):
                self.links.append(value or "")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-n", "-d", str(out / "doctrees"),
               str(ROOT / "docs"), str(out / "html")]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, env=program_environment(), timeout=600)
    assert done.returncode == 0, done.stderr
    return out / "html"


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_its_links_hold(site: Path) -> None:
    pages: dict[Path, Targets] = {}
    for file in site.rglob("*.html"):
        if "_downloads" not in file.parts:
            pages[file] = Targets()
            pages[file].feed(read(file))
    assert len(pages) > len(DOCS)
    broken = []
    for file, page in pages.items():
        for target in page.links:
            parts = urlsplit(target)
            if parts.scheme or not target:
                continue
            other = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            missing = parts.fragment and other in pages and unquote(parts.fragment) not in pages[other].ids
            if not other.exists() or missing:
                broken.append(f"{file.relative_to(site)}: {target}")
    assert broken == []


@pytest.mark.slow
def test_the_api_page_describes_what_it_names(site: Path) -> None:
    text = read(site / "api.html")
    for name in (
        "nmt.load",
        "Translator.translate",
        "Seq2Seq.step",
        "Attention.forward",
        "corpus_bleu",
        "Corpus.train",
    ):
        assert f'id="{name}"' in text or f".{name}" in text, name


# ---- the commands


class Block(NamedTuple):
    """A block of commands, what is remarked above it, and the block of text after it."""

    page: str
    mark: str
    commands: str
    answer: str


def blocks(page: Path) -> list[Block]:
    found = list(FENCE.finditer(read(page)))
    return [
        Block(page.stem, fence["mark"] or "", fence["body"], after["body"] if after and after["kind"] == "text" else "")
        for fence, after in zip(found, [*found[1:], None], strict=True)
        if fence["kind"] == "sh"
    ]


COMMANDS = {page: blocks(ROOT / "docs" / f"{page}.md") for page in TASKS} | {"README": blocks(ROOT / "README.md")}


def test_every_block_is_run_or_says_why_not() -> None:
    marks = [block.mark for page in COMMANDS.values() for block in page]
    assert all(mark in ("", "fails") or re.match(r"not run: \w", mark) for mark in marks), marks
    assert sum(mark in ("", "fails") for mark in marks) > 25


def skipped_commands() -> list[tuple[str, list[str]]]:
    """The commands of the programs in blocks that are not run."""
    found = []
    for page in COMMANDS.values():
        for block in page:
            if block.mark.startswith("not run"):
                for line in block.commands.replace("\\\n", " ").split("\n"):
                    words = shlex.split(line, comments=True)
                    if words[:1] == ["nmt"] and len(words) > 1:
                        found.append((words[1], words[2:]))
    return found


@pytest.mark.parametrize(("program", "arguments"), skipped_commands(), ids=lambda value: str(value)[:60])
def test_a_command_that_is_not_run_composes(program: str, arguments: list[str]) -> None:
    if program == "compare":
        pytest.skip("its settings are checked where it is run")
    overrides = [word.split(",")[0] if word.startswith(("experiment=", "seed=")) else word for word in arguments]
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        assert compose(program, [word for word in overrides if "=" in word])


# A training of some seconds in place of minutes, and the shortest outputs, as it learns nothing.
SMALL = ["training.max_updates=4", "training.bleu_sentences=0", "training.max_epochs=null"]
SMALL_GRAMMAR = ["data.train_pairs=300", "data.valid_pairs=5", "data.test_pairs=12"]
SHORT = ["max_ratio=1", "max_extra=0"]
QUICK = ["bootstrap.resamples=40"]
NMT = """\
import os, sys
from nmt.__main__ import main
small, grammar, short, quick = {settings}
program, given = sys.argv[1] if len(sys.argv) > 1 else "", sys.argv[2:]
runs = next((one for one in given if one.startswith("study.runs=")), "")
if "--help" not in given and "--cfg" not in given:
    trains = program in ("train", "compare") and not runs
    if trains and any(one.startswith("training.max_updates=") for one in given):
        small.remove("training.max_updates=4")
    if (trains or "suite=training" in given) and not any(one.startswith("data=") for one in given):
        sys.argv += grammar
    sys.argv += small * trains
    if (trains or program == "prepare") and not os.environ.get("MUST_FAIL"):
        sys.argv.append("tokenizer.shrink=true")
    if program in ("translate", "evaluate"):
        sys.argv += short
    if program == "compare" and (not runs or "outputs/" in runs):
        sys.argv += ["evaluate." + one for one in short]
    sys.argv += quick * (program == "evaluate") + ["study." + one for one in quick] * (program == "compare")
main()
"""


def write_examples(folder: Path) -> None:
    """The files that the pages name."""
    numbers = range(1, 121)
    english = [f"the man number {i} sees the dog {i % 17} near the house" for i in numbers]
    french = [f"l homme numero {i} voit le chien {i % 17} devant la maison" for i in numbers]
    short = (["the dog sleeps", "a cat runs", "we eat"], ["le chien dort", "un chat court", "nous mangeons"])
    valid = ([f"a woman with {i} cats" for i in range(9)], [f"une femme avec {i} chats" for i in range(9)])
    news = ([f"news number {i} of the day" for i in range(30)], [f"nouvelle {i} du jour" for i in range(30)])
    files = {
        "train.en": english, "train.fr": french, "valid.en": valid[0], "valid.fr": valid[1],
        "test.en": short[0], "test.fr": short[1], "new.en": short[0], "new.ref.fr": short[1],
        "new.de": ["der Hund schläft", "eine Katze rennt", "wir essen"], "new.gold": ["1-1 2p2"] * 3,
        "news.en": news[0], "news.fr": news[1], "news2.fr": news[1],
        "pairs.tsv": [f"{one}\t{other}" for one, other in zip(english, french, strict=True)],
        "pairs.jsonl": [json.dumps({"en": a, "fr": b}) for a, b in zip(english, french, strict=True)],
        "t.en": short[0], "t.fr": short[1], "A.fr": short[1], "B.fr": [*short[1][:2], "nous dormons"],
        "three.txt": ["a b", "c d", "e f"], "two.txt": ["a b", "c d"],
    }  # fmt: skip
    for name, lines in files.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (folder / "latin1.txt").write_bytes("été\n".encode("latin-1"))


class Workshop(NamedTuple):
    """A folder with the pages' files and a short training, and a shell in it."""

    folder: Path
    environment: dict[str, str]

    def run(self, commands: str, must_fail: bool = False) -> subprocess.CompletedProcess[str]:
        environment = self.environment | ({"MUST_FAIL": "1"} if must_fail else {})
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", commands],
            cwd=self.folder, env=environment, capture_output=True, text=True, timeout=600,
        )  # fmt: skip


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    folder = tmp_path_factory.mktemp("docs")
    (folder / "bin").mkdir()
    wrapper = folder / "bin" / "start.py"  # not nmt.py, which would hide the package
    wrapper.write_text(NMT.format(settings=(SMALL, SMALL_GRAMMAR, SHORT, QUICK)), encoding="utf-8")
    for name, command in (("nmt", f"{sys.executable} {wrapper}"), ("python", sys.executable)):
        script = folder / "bin" / name
        script.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
    write_examples(folder)
    environment = program_environment() | {"PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    environment["PYTHONPATH"] = os.pathsep.join([str(folder), environment["PYTHONPATH"]])
    shop = Workshop(folder, environment)
    done = shop.run("nmt train experiment=bahdanau && nmt train experiment=rnn")
    assert done.returncode == 0, done.stderr
    shutil.copytree(folder / "outputs/grammar/bahdanau", folder / "outputs/own")
    config = folder / "outputs/own/config.yaml"
    config.write_text(read(config).replace("nmt.models.attention.Additive", "somebody.Additive"), encoding="utf-8")
    return shop


@pytest.mark.slow
@pytest.mark.parametrize("page", COMMANDS)
def test_the_commands_of_a_page_do_what_it_says(page: str, workshop: Workshop) -> None:
    source = ROOT / "README.md" if page == "README" else ROOT / "docs" / f"{page}.md"
    for name, content in FILE.findall(read(source)):
        (workshop.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (workshop.folder / name).write_text(content, encoding="utf-8")
    for block in COMMANDS[page]:
        if block.mark.startswith("not run"):
            continue
        done = workshop.run(block.commands, must_fail=block.mark == "fails")
        if block.mark == "fails":
            assert done.returncode in (1, 2), (block.commands, done.stderr)
            assert block.answer.strip() in done.stderr, (block.commands, done.stderr)
        else:
            assert done.returncode == 0, (block.commands, done.stderr)


# ---- what CONTRIBUTING and ARCHITECTURE say of the code


def defined(path: Path) -> set[str]:
    """Whatever a file defines: classes, functions, methods, fields and constants."""
    if path.suffix != ".py":
        return set(re.findall(r"\w+", read(path)))
    names: set[str] = set()
    for node in ast.walk(ast.parse(read(path))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.attr)
    return names


QUESTION = re.compile(r"^\d+\. \*\*(.+?\?)\*\*(.*?)(?=^\d+\. |\Z|^#)", re.DOTALL | re.MULTILINE)


def questions() -> list[tuple[str, str]]:
    text = read(ROOT / "CONTRIBUTING.md")
    return QUESTION.findall(text[text.index("## Where does") :])


def test_there_are_ten_questions() -> None:
    assert len(questions()) >= 10


@pytest.mark.parametrize(("question", "answer"), questions(), ids=lambda value: value[:50])
def test_a_question_is_answered_by_two_files_at_most_that_define_what_it_names(question: str, answer: str) -> None:
    quoted = re.findall(r"`([^`]+)`", answer)
    files = [name for name in quoted if re.fullmatch(r"(?:nmt|conf|scripts)/[\w/]+\.\w+", name)]
    assert 1 <= len(files) <= 2, files
    assert all((ROOT / name).exists() for name in files), files
    names = {part for name in quoted if re.fullmatch(r"[A-Za-z_]\w*(\.\w+)?", name) for part in name.split(".")}
    known = set().union(*(defined(ROOT / name) for name in files))
    assert names
    assert names <= known, names - known


@pytest.mark.parametrize("page", TOP[1:], ids=name_of)
def test_every_file_that_a_page_names_exists(page: Path) -> None:
    named = re.findall(r"`((?:nmt|conf|tests|scripts|docs)/[\w/.]+?)/?`", read(page))
    assert len(named) > 15
    assert [path for path in named if "NAME" not in path and not (ROOT / path).exists()] == []


def room_lines(room: str) -> int:
    """Lines of Python in a folder of nmt/, of the files beside the folders where there is no such folder."""
    folder = ROOT / "nmt" / room
    files = folder.rglob("*.py") if folder.is_dir() and room else (ROOT / "nmt").glob("*.py")
    return sum(read(file).count("\n") for file in files)


@pytest.mark.parametrize(("walk", "most"), [("Bahdanau's equation", 5), ("a gradient", 14), ("the report's table", 8)])
def test_a_walk_is_as_short_as_architecture_says(walk: str, most: int) -> None:
    text = read(ROOT / "ARCHITECTURE.md")
    section = text[text.index("## Three walks") : text.index("## Contracts")]
    (paragraph,) = (part for part in section.split("**From")[0:1] + section.split("**From")[1:] if walk in part)
    files = set(re.findall(r"`(nmt/[\w/]+\.py)`", paragraph))
    assert most - 1 <= len(files - {"nmt/decoding/beam_search.py"}) <= most, sorted(files)


BUDGET = re.compile(r"^\| `nmt/(\w*)/?`[^\n]*\| ([\d,]+) \|$", re.MULTILINE)


def test_every_room_keeps_to_the_lines_that_architecture_allows() -> None:
    budgets = {room: int(lines.replace(",", "")) for room, lines in BUDGET.findall(read(ROOT / "ARCHITECTURE.md"))}
    folders = {path.name for path in (ROOT / "nmt").iterdir() if (path / "__init__.py").exists()}
    assert set(budgets) == folders | {""}
    over = {room: (room_lines(room), limit) for room, limit in budgets.items() if room_lines(room) > limit}
    assert over == {}
