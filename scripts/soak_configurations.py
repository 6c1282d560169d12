"""Where scripts/soak.py starts: command lines that reach every setting of every program, and the files they read."""

import json
from pathlib import Path

TEXT = "data.train_src=b.en data.train_tgt=b.fr data.valid_src=3.en data.valid_tgt=3.fr"
COPY = "data=copy data.train_pairs=60 data.valid_pairs=4 data.test_pairs=6 data.max_length=6"
HUB = "data=hub data.path=pairs data.source=en data.target=fr data.valid_split=null data.test_split=null"
PARTS = "+data.parts.a.train_src=b.en +data.parts.a.train_tgt=b.fr +data.parts.b.path=pairs +data.parts.b.source=en"
GENERATED = "".join(
    f" +data.parts.{name}._target_=nmt.data.{kind} +data.parts.{name}.train_pairs=20 "
    f"+data.parts.{name}.valid_pairs=2 +data.parts.{name}.test_pairs=2"
    for name, kind in (("c", "grammar.GrammarCorpus"), ("d", "synthetic.SyntheticCorpus"))
)  # a copy would be cleaned away: its sides are equal
MIX = f"data=mix data.source=en data.target=fr {PARTS} +data.parts.b.target=fr +data.weights.a=2 +data.weights.b=1"
CORPORA = [
    COPY,
    "data=grammar data.train_pairs=60 data.valid_pairs=4 data.test_pairs=6",
    f"data=text {TEXT} data.test_src=3.en data.test_tgt=3.fr",
    HUB,
    f"{MIX} +data.parts.b.valid_split=null +data.parts.b.test_split=null{GENERATED} +data.parts.d.reverse=true",
]
SMALL = "workers=1 tokenizer.vocab_size=400 tokenizer.shrink=true"
SIZES = (
    "size.embedding=8 size.attention=8 size.bahdanau.encoder=8 size.bahdanau.hidden=8 size.luong.encoder=8 "
    "size.luong.hidden=8 size.transformer.layers=1 size.transformer.heads=2 size.transformer.feed_forward=8"
)
TINY = f"{SMALL} {SIZES} training.max_updates=1 training.bleu_sentences=2"
SYSTEMS = [
    "experiment=bahdanau",
    "experiment=luong",
    "experiment=transformer attention_backend=window",
    *(f"experiment=bahdanau attention={name}" for name in ("location", "random", "local_m", "local_p")),
    *(f"experiment=luong attention={name}" for name in ("location", "random", "local_m", "local_p")),
    *(
        f"experiment={name} attention=local_p attention@model.attention.score=additive"
        for name in ("bahdanau", "luong")
    ),
]
PARTS_OF_TRAINING = [
    *(f"optimizer={name}" for name in ("adamw", "adadelta", "sgd")),
    *(f"schedule={name}" for name in ("constant", "inverse_sqrt", "halving")),
    *(f"tracker={name}" for name in ("tensorboard", "wandb")),
]
TRAININGS = [
    f"{system} {COPY} {TINY} device=cpu threads=1 run_dir=new tracker=none schedule=linear" for system in SYSTEMS
] + [
    f"experiment=bahdanau {corpus} {TINY} device=cpu threads=1 run_dir=new {part}"
    for corpus, part in [*((corpus, "") for corpus in CORPORA[1:]), *((COPY, part) for part in PARTS_OF_TRAINING)]
]
SUITES = (
    "suite=training suite.updates=1 suite.warm_up=1 output=speed.json",
    "suite=attention suite.lengths=[16] suite.heads=1 suite.head_size=8 suite.seconds=0.01 output=speed.json",
)
CHECKPOINT = "checkpoint=runs/bahdanau device=cpu threads=1 bootstrap.resamples=40 output=scores"
TRANSLATE = "input=3.en output=new.fr device=cpu threads=1 alignment_out=new.align attention_out=new.jsonl"
COMPARE = (
    "study.bootstrap.resamples=40 study.bootstrap.trials=40 study.jobs=1 study.output=new study.headline.short=[1,3] "
    "study.headline.long=[4,null]"
)
CONFIGURATIONS = {  # of each program: what it is given beside the setting under attack
    "train": TRAININGS,
    "benchmark": [f"{one} {SUITES[0]}".replace("run_dir=new", "") for one in TRAININGS] + [f"{COPY} {SUITES[1]}"],
    "prepare": [f"{corpus} {SMALL}" for corpus in CORPORA],
    "translate": [f"checkpoint=runs/bahdanau {TRANSLATE}", f"checkpoint=runs/transformer {TRANSLATE}"],
    "evaluate": [
        CHECKPOINT,
        f"{CHECKPOINT} test.src=3.en test.ref=3.fr alignment.gold=3.gold alignment.base=0",
        "hypotheses=3.fr references=3.fr source=3.en bootstrap.resamples=40 output=scores",
    ],
    "compare": [
        f"study.experiments=[bahdanau,transformer] study.root=runs {COPY} {TINY} {COMPARE} evaluate.test=null",
        f"study.runs=[3.fr,4.fr] evaluate.test.src=3.en evaluate.test.ref=3.fr {COMPARE}",
    ],
}
TEMPLATE = [  # what stands in the folder in which a program runs
    *(
        ("train", f"experiment={name} {COPY} {TINY} threads=1 device=cpu run_dir=runs/{name}")
        for name in ("bahdanau", "transformer")
    ),
    *(("evaluate", f"checkpoint=runs/{name} device=cpu threads=1 ter=false") for name in ("bahdanau", "transformer")),
]


def write_text_files(folder: Path) -> None:
    """Forty pairs of sentences, as text and as a data set; tests, links, translations."""
    numbers = range(1, 41)
    english = [f"the man number {n} sees the dog {n % 7} near the house" for n in numbers]
    french = [f"l homme numero {n} voit le chien {n % 7} devant la maison" for n in numbers]
    more = [(f"she has {n} cats and a horse", f"elle a {n} chats et un cheval") for n in numbers]
    rows = [json.dumps({"en": source, "fr": target}) for source, target in more]
    files = {
        "b.en": english,
        "b.fr": french,
        "3.en": ["the dog sleeps", "a cat", "we eat the bread of the old man"],
        "3.fr": ["le chien dort", "un chat", "nous mangeons le pain du vieil homme"],
        "4.fr": ["un chien dort", "un chat", "nous avons mange le pain d un homme"],
        "3.gold": ["0-0 1-1 2-2", "0-0 1-1", "0-0 1-1 2-2 3-3"],
        "pairs/train.jsonl": rows,
    }
    for name, lines in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
