"""Compares the behaviour of two commits on this machine: python scripts/compare_commits.py BASE [NEW] [--parts A,B]

For a refactoring that must change no behaviour. BASE and NEW are commits; without NEW it is the working tree as it is,
changes that are not committed included. Each is unpacked into the work folder, its programs are run there, and what
they write is compared: one line for each result, equal or DIFFERENT; exit status 0 where all are equal, else 1.

  updates     trainings: every weight bit for bit, whatever the parameters are called, and the logged metrics
  beam        translations, scores, attention and evaluation of trained systems
  prepared    ids, offsets and piece models of prepared corpora, and their data cards
  grammar     sentences and alignments of the embedded corpus
  comparison  what nmt.compare makes of WMT21 outputs, and of each folder of outputs/reference with a comparison.json

NMT_DATA names the folder of data; what needs it is left out without it. The results of a commit are kept in the work
folder and used again on the same machine, those of the working tree never; logs and outputs stay there too. One
program at a time may use a work folder. Run it by the Python of an environment that fits both commits.
"""

import argparse
import hashlib
import importlib.metadata
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DATA = os.environ.get("NMT_DATA", "")
DEFINITION = 2  # raise it with each change to what is run: results kept from before are then not used
SHOWN = 4  # differences shown of a result

# Values left out of the comparison, by the pattern of their path PART/RESULT/KEY/... (* stands for / too), and why.
DROPPED = {
    "*/metrics.jsonl/*seconds": "time",
    "*/metrics.jsonl/*_per_second": "speed",
    "beam/*evaluated/*/seconds": "time",
    "prepared/*/manifest.json/*": "the settings, in their names",
    **dict.fromkeys(
        ("*/record/*", "*/provenance/*"),
        "command, commit, date, machine and versions are of the run, not of the program",
    ),
}
# Settings below (KEY or KEY=VALUE) with another name in those commits that have a certain file: the name and the file.
RENAMED: dict[str, tuple[str, str]] = {"size=base": ("size=d192", "conf/size/d192.yaml")}

SYSTEMS = ("rnn", "bahdanau", "luong", "transformer")
ATTENTIONS = ("initial_state", "dot", "scaled_dot", "concat", "local_m", "local_p", "location", "random", "mean")
# Trainings of 10 updates, as experiment and settings; what follows "then" goes on in the same run directory.
VARIANTS = [
    *(f"luong attention={name}" for name in ATTENTIONS),
    *(f"bahdanau attention={name}" for name in ("general", "local_p", "random")),
    *(f"transformer attention_backend={name}" for name in ("explicit", "fused", "tiled", "linear")),
    *(f"transformer model.positions={name}" for name in ("learned", "rotary", "alibi", "none")),
    *(f"{name} size=base batching.tokens=500" for name in SYSTEMS),
    "bahdanau model.cell=lstm model.layers=2 model.dropout=0.2 model.tie_embeddings=target model.bridge=copy",
    "bahdanau model.init=uniform model.bidirectional=false model.reverse_source=true model.summary=last_forward",
    "bahdanau model.init=groundhog model.summary=max model.context_in_readout=false model.readout_size=48",
    "rnn model.layers=2 model.summary=mean model.dropout=0.1",
    "luong model.input_feeding=false",
    "luong model.cell=lstm model.layers=2 model.dropout=0.2",
    "transformer attention_backend=window model.attention_window=8",
    "transformer model.norm=post model.activation=gelu model.dropout=0.1 model.attention_dropout=0.1",
    "transformer tokenizer.joint=true tokenizer.model_type=bpe model.tie_embeddings=all",
    "transformer precision=bf16",
    "bahdanau optimizer=sgd optimizer.lr=1 schedule=halving training.mean_over=sentences training.accumulate=2",
    "rnn optimizer=adadelta optimizer.lr=1 schedule=constant training.label_smoothing=0",
    "transformer optimizer=adamw schedule=inverse_sqrt training.average_last=2 training.validate_every=5",
    "luong training.max_updates=4 then luong",
]
TRANSLATIONS = (  # of so many test sentences; {0}: a folder for files
    (200, "beam=5 scores=true n_best=2"),
    (40, "beam=3 scores=true length_penalty=0 max_ratio=0.5 max_extra=5 batch=7"),
    (40, "beam=1 max_src_pieces=25"),
    (5, "beam=5 attention_out={0}/attention.jsonl"),
    (20, "beam=5 alignment_out={0}/links"),
)
WMT21 = ("Facebook-AI", "UEdin", "Online-A", "happypoet", "SMU")
GRAMMAR = """# writes the embedded corpus into a folder: train, valid and test as .en, .de and .links
import pathlib, sys
from nmt.data.grammar import GrammarCorpus
corpus = GrammarCorpus()
test = corpus.test_sets()["test"]
tests = zip(test.sources, test.references[0], test.alignments)
splits = {"train": corpus.train(), "valid": corpus.valid(), "test": tests}
for split, rows in splits.items():
    rows = [(source, target, " ".join(f"{i}-{j}" for i, j in links)) for source, target, links in rows]
    for suffix, lines in zip(("en", "de", "links"), zip(*rows)):
        pathlib.Path(sys.argv[1], f"{split}.{suffix}").write_text("\\n".join(lines) + "\\n", encoding="utf-8")
"""
Results = Iterator[tuple[str, Any]]  # of a part: name and value


class ProgramFailed(Exception):
    """A program ended with an error: the end of what it said, and where the rest is."""


@dataclass(frozen=True)
class Checkout:
    """The files of a commit or a copy of those of the working tree, and the folder for what its programs write."""

    code: Path
    out: Path

    def run(self, program: str, *settings: str) -> str:
        """The standard output of `python -m program settings` (or -c program) with the checkout as current folder."""
        how = "-m" if program.startswith("nmt.") else "-c"
        command = [sys.executable, how, program, *map(self._renamed, settings)]
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "NMT_CONF"))}
        environment |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
        log = self.out / "log.txt"
        with log.open("a", encoding="utf-8") as file:
            print(f"\n$ {shlex.join(command)}", file=file, flush=True)
            done = subprocess.run(
                command, cwd=self.code, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=file
            )
        if done.returncode != 0:
            said = log.read_text(encoding="utf-8", errors="replace").split()
            raise ProgramFailed(f"{' '.join(said[-30:])} (see {log})")
        return self.neutral(done.stdout).decode("utf-8")

    def _renamed(self, setting: str) -> str:
        """The setting by the name that it has in this checkout."""
        for name, (other, file) in RENAMED.items():
            if f"{setting}=".startswith(f"{name}=") and (self.code / file).exists():
                return other + setting.removeprefix(name)
        return setting

    def neutral(self, content: bytes) -> bytes:
        """Without dates and without the name of the folder for outputs."""
        return re.sub(rb"\d{4}-\d\d-\d\dT[\d:]+[+.:\d]*", b"DATE", content.replace(str(self.out).encode(), b"OUT"))

    def files(self, folder: Path, *patterns: str) -> dict[str, Any]:
        """What the files of a folder hold: JSON as values, weights as hashes of the tensors, else a hash."""
        found: dict[str, Any] = {}
        for file in sorted({file for pattern in patterns for file in folder.rglob(pattern) if file.is_file()}):
            content = self.neutral(file.read_bytes())
            name = re.sub("^prepared/[^/]+/", "", file.relative_to(folder).as_posix())
            if file.suffix == ".safetensors":
                found[name] = tensor_hashes(file.read_bytes())
            elif file.suffix in (".json", ".jsonl"):
                found[name] = [json.loads(own) for own in (content.splitlines() if name.endswith("l") else [content])]
            elif file.suffix not in (".log", ".lock"):
                found[name] = hashlib.sha256(content).hexdigest()
        return found

    def outcome(self, name: str, program: str, settings: str, *patterns: str) -> dict[str, Any]:
        """What a program prints and the files it leaves in a folder of its own, {0} in its settings.

        Of several settings, joined by " then ", the last one's. {"failed": reason} where the program fails.
        """
        folder = self.out / re.sub(r"\W+", "-", name)[:100]
        folder.mkdir()
        try:
            for command in settings.split(" then "):
                printed = self.run(program, *command.format(folder).split())
        except ProgramFailed as error:
            return {"failed": str(error)}
        return {"printed": printed.split("\n"), **self.files(folder, *(patterns or ("*",)))}


def tensor_hashes(content: bytes) -> list[str]:
    """SHA-256 of the type, shape and bytes of each tensor in a safetensors file, sorted; names do not count."""
    start = 8 + int.from_bytes(content[:8], "little")
    hashes = []
    for name, tensor in json.loads(content[8:start]).items():
        if name != "__metadata__":
            begin, end = tensor["data_offsets"]
            described = f"{tensor['dtype']} {tensor['shape']} ".encode()
            hashes.append(hashlib.sha256(described + content[start + begin : start + end]).hexdigest())
    return sorted(hashes)


def train(checkout: Checkout, name: str, updates: int, settings: str) -> dict[str, Any]:
    """The weights and the metrics of a training, perhaps by several commands."""
    common = f"seed=1 threads=1 device=cpu workers=1 run_dir={{0}} data_dir={checkout.out}/data training.log_every=5"
    common += f" training.max_updates={updates} training.validate_every=1000 training.bleu_sentences=16"
    commands = " then ".join(f"{common} experiment={own}" for own in settings.split(" then "))
    return checkout.outcome(name, "nmt.train", commands, "*.safetensors", "metrics.jsonl")


def updates(checkout: Checkout) -> Results:
    for system in SYSTEMS:
        yield system, train(checkout, system, 40, system)
    for settings in VARIANTS:
        yield settings, train(checkout, settings, 10, settings)


def beam(checkout: Checkout) -> Results:
    text = checkout.out / "text"
    checkout.outcome("text", GRAMMAR, "{0}")
    for system in ("bahdanau", "transformer"):
        yield system, train(checkout, system, 300, system)
        common = f"checkpoint={checkout.out}/{system} device=cpu threads=1"
        for count, settings in TRANSLATIONS:
            for suffix in ("en", "de", "links"):
                lines = (text / f"test.{suffix}").read_bytes().split(b"\n")[:count]
                (text / f"{count}.{suffix}").write_bytes(b"\n".join([*lines, b""]))
            name = f"{system}, {count} lines, {settings}".replace("{0}/", "")
            yield name, checkout.outcome(name, "nmt.translate", f"{common} input={text}/{count}.en {settings}")
        test = f"test.src={text}/200.en test.ref={text}/200.de alignment.gold={text}/200.links alignment.base=0"
        name = f"{system}, evaluated"
        yield name, checkout.outcome(name, "nmt.evaluate", f"{common} {test} test.name=test output={{0}}")


def prepared(checkout: Checkout) -> Results:
    corpora = {"grammar": "data=grammar", "copy": "data=copy", "reverse": "data=reverse data.seed=2"}
    if DATA:
        captions = "data=text data.source=de data.target=en data.max_pairs=3000 tokenizer.vocab_size=2000"
        for split, stem in (("train", "train"), ("valid", "val"), ("test", "test_2016_flickr")):
            for side, language in (("src", "de"), ("tgt", "en")):
                captions += f" data.{split}_{side}={DATA}/multi30k/{stem}.{language}.gz"
        news = captions.replace("multi30k/train", "wmt-ende-10k/train")
        corpora["captions"] = captions
        corpora["news"] = f"{news} cleaning.max_words=50 tokenizer.model_type=bpe"
        corpora["news, joined"] = f"{news} data.subset=random data.join=2 data.join_share=0.5 tokenizer.joint=true"
    for name, settings in corpora.items():
        yield name, checkout.outcome(name, "nmt.prepare", f"{settings} data_dir={{0}} workers=1")


def grammar(checkout: Checkout) -> Results:
    yield "corpus", checkout.outcome("corpus", GRAMMAR, "{0}")
    yield "printed", checkout.outcome("printed", "nmt.data.grammar", "1000 2")


def comparison(checkout: Checkout) -> Results:
    if DATA:
        stem = f"{DATA}/outputs-newstest2021-deen/newstest2021.de-en"
        texts = ",".join(f"{stem}.hyp.{name}.en.gz" for name in WMT21)
        test = f"test.src={stem}.src.de.gz test.ref=[{stem}.ref.A.en.gz,{stem}.ref.B.en.gz] test.name=wmt21"
        few = "ter=false pairs=all bootstrap.resamples=200 bootstrap.trials=200"
        yield "wmt21", checkout.outcome("wmt21", "nmt.compare", spelled_for(checkout, f"runs=[{texts}] {test} {few}"))
    reference = checkout.out / "reference"
    shutil.copytree(checkout.code / "outputs" / "reference", reference)
    checkout.run("nmt.prepare", "data=grammar", f"data_dir={checkout.out}/data", "workers=1")
    for config in reference.rglob("config.yaml"):
        config.write_text(config.read_text(encoding="utf-8").replace("$NMT_DATA", DATA), encoding="utf-8")
    for run in (reference / "grammar").glob("*/evaluation"):
        for model in checkout.out.glob("data/prepared/*/*.model"):  # those of the runs; a report by pieces needs them
            shutil.copy(model, run.parent)
    for file in sorted(reference.rglob("comparison.json")):
        name = file.parent.relative_to(reference).as_posix()
        if DATA or name == "grammar":
            settings = recorded(file) + (
                f" data_dir={DATA}" if name != "grammar" else ""
            )  # where their text may be read
            yield name, checkout.outcome(name, "nmt.compare", spelled_for(checkout, settings))


def recorded(file: Path) -> str:
    """The settings of the command that made a comparison.json, for the runs that are kept beside it."""
    folder = next(one for one in (file.parent, file.parent.parent) if any(one.glob("*/config.yaml")))
    runs = [config.parent.as_posix() for config in sorted(folder.glob("*/config.yaml"))]
    report = json.loads(file.read_text(encoding="utf-8"))
    command = (report.get("provenance") or report["record"])["command"].replace("$NMT_DATA", DATA)
    typed = [re.sub(r"^(study|evaluate)[.](?!test=|pool=)", "", one) for one in shlex.split(command) if "=" in one]
    settings = dict(one.split("=", 1) for one in typed)
    if "runs" in settings:  # each a run, or run/evaluation/name.json
        paths = [path.split("/") for path in settings["runs"].strip("[]").split(",")]
        runs = ["/".join([str(folder), *path[-3 if path[-1].endswith(".json") else -1 :]]) for path in paths]
    settings["runs"] = f"[{','.join(runs)}]"
    return " ".join(f"{key}={value}" for key, value in settings.items() if key not in ("seeds", "output"))


def spelled_for(checkout: Checkout, settings: str) -> str:
    """Settings of nmt.compare without their prefixes, and an output, as the checkout spells them."""
    spelled = (checkout.code / "conf" / "compare.yaml").read_text(encoding="utf-8")
    own = re.search(r"(?ms)^study:\n(.*?)^\S", spelled)
    keys = re.findall(r"(?m)^  (\w+):", own[1]) if own else []
    words = [*settings.split(" "), "output={0}"]
    if not keys:
        return " ".join(words)
    of_study = [re.split(r"[.=]", word)[0] in keys for word in words]
    return " ".join(
        word if word.startswith("evaluate.") else f"{'study' if is_own else 'evaluate'}.{word}"
        for word, is_own in zip(words, of_study, strict=True)
    )


PARTS = {part.__name__: part for part in (updates, beam, prepared, grammar, comparison)}


def git(*arguments: str) -> bytes:
    return subprocess.run(["git", "-C", str(ROOT), *arguments], check=True, stdout=subprocess.PIPE).stdout


def unpacked(commit: str | None, work: Path, fresh: bool = False) -> Path:
    """A folder in the work folder, with the files of a commit, or those of the working tree not ignored, in code/."""
    name = git("rev-parse", "--short=12", f"{commit}^{{commit}}").decode().strip() if commit else "working-tree"
    folder = work / (f"{name}-fresh" if fresh else name)
    code = folder / "code"
    shutil.rmtree(code if commit and not fresh else folder, ignore_errors=True)
    code.mkdir(parents=True)
    if commit:
        subprocess.run(["tar", "-x", "-C", str(code)], input=git("archive", commit), check=True)
        return folder
    for file in git("ls-files", "-z", "--cached", "--others", "--exclude-standard").decode().split("\0"):
        if (ROOT / file).is_file():
            (code / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / file, code / file)
    return folder


def results(folder: Path, part: str) -> dict[str, Any]:
    """The results of a part by name; computed unless they are kept from before."""
    kept = folder / f"{part}.json"
    versions = [importlib.metadata.version(name) for name in ("torch", "numpy", "sentencepiece", "sacrebleu")]
    processor = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else platform.processor()
    key = [DEFINITION, DATA, *versions, platform.node(), *sorted(set(re.findall("(?m)^(?:model|flags).*", processor)))]
    if kept.exists() and (stored := json.loads(kept.read_text(encoding="utf-8")))["key"] == key:
        print(f"{folder.name}: {part}, as kept in {kept}", flush=True)
        return dict(stored["results"])
    checkout = Checkout(folder / "code", folder / part)
    shutil.rmtree(checkout.out, ignore_errors=True)
    checkout.out.mkdir()
    print(f"{folder.name}: {part} ...", flush=True)
    started = time.monotonic()
    try:
        found = dict(PARTS[part](checkout))
    except (ProgramFailed, OSError, ValueError, LookupError) as error:
        found = {"all": {"failed": f"{type(error).__name__}: {error}"}}
    print(f"{folder.name}: {part}, {len(found)} results in {time.monotonic() - started:.0f} s", flush=True)
    if not any("failed" in value for value in found.values()):
        kept.write_text(json.dumps({"key": key, "results": found}), encoding="utf-8")
    return found


def flattened(value: Any, path: str) -> dict[str, str]:
    """Each number, text and truth value of a result by its path, without the DROPPED ones."""
    if isinstance(value, dict | list) and value:
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        return {key: leaf for name, inner in pairs for key, leaf in flattened(inner, f"{path}/{name}").items()}
    return {} if any(fnmatch(path, pattern) for pattern in DROPPED) else {path: json.dumps(value, ensure_ascii=False)}


def compared(part: str, base: dict[str, Any], new: dict[str, Any]) -> bool:
    """Prints a line for each result, and where it differs the first differences; True where all are equal."""
    all_equal = True
    for name in dict.fromkeys([*base, *new]):
        title = f"{part}/{name}"
        before, after = (flattened(own.get(name), title) for own in (base, new))
        changed = [key for key in dict.fromkeys([*before, *after]) if before.get(key) != after.get(key)]
        failed = f"{title}/failed" in {**before, **after}
        changed = [f"{title}/failed"] if failed else changed
        print("FAILED   " if failed else "DIFFERENT" if changed else "equal    ", title)
        for key in changed[:SHOWN]:
            was, now = (str(own.get(key, "nothing"))[:300] for own in (before, after))
            print(f"    {key.removeprefix(title)}: {was} -> {now}")
        if len(changed) > SHOWN:
            print(f"    and {len(changed) - SHOWN} more")
        all_equal = all_equal and not changed
    return all_equal


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", help="a commit")
    parser.add_argument("new", nargs="?", help="another; none: the working tree")
    parser.add_argument("--parts", default=",".join(PARTS), help="some of them: updates,beam")
    work = Path(tempfile.gettempdir()) / "nmt-compare-commits"
    parser.add_argument("--work", type=Path, default=work, help=f"the work folder; default: {work}")
    parser.add_argument("--fresh", action="store_true", help="compute NEW although its results are kept")
    options = parser.parse_args()
    parts = options.parts.split(",")
    if not set(parts) <= set(PARTS):
        parser.error(f"--parts={options.parts}: the parts are {','.join(PARTS)}")
    base = unpacked(options.base, options.work.resolve())
    new = unpacked(options.new, options.work.resolve(), options.fresh)
    equal = [compared(part, results(base, part), results(new, part)) for part in parts]
    print(f"logs and outputs: {base} and {new}")
    return 0 if all(equal) else 1


if __name__ == "__main__":
    sys.exit(main())
