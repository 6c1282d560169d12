#!/usr/bin/env bash
# outputs/reference/multi30k: German-English captions, ten epochs each. About two hours of one core in all.
# NMT_DATA names the folder that holds multi30k/; RUNS (default outputs/multi30k) is where the runs go.
set -euo pipefail
cd "$(dirname "$0")/.."
data="$NMT_DATA/multi30k"
runs="${RUNS:-outputs/multi30k}"
files=(data=text data.name=multi30k data.source=de data.target=en
    "data.train_src=$data/train.de.gz" "data.train_tgt=$data/train.en.gz"
    "data.valid_src=$data/val.de.gz" "data.valid_tgt=$data/val.en.gz"
    "data.test_src=$data/test_2016_flickr.de.gz" "data.test_tgt=$data/test_2016_flickr.en.gz")
settings=(cleaning=none size=d192 tokenizer.vocab_size=6000 batching.tokens=1024 training.max_epochs=10
    training.validate_every=487 training.bleu_sentences=1014 precision=bf16 threads=1)
names=()
for row in initial_state rnn bahdanau luong transformer; do
    case $row in
        initial_state) system=(experiment=rnn attention=initial_state) ;;
        *) system=("experiment=$row") ;;
    esac
    OMP_NUM_THREADS=1 python -m nmt.train "${system[@]}" "${files[@]}" "${settings[@]}" "run_dir=$runs/$row"
    python -m nmt.evaluate "checkpoint=$runs/$row" test.name=test_2016_flickr \
        "test.src=$data/test_2016_flickr.de.gz" "test.ref=$data/test_2016_flickr.en.gz"
    names+=("$runs/$row/evaluation/test_2016_flickr.json")
done
python -m nmt.compare "study.runs=[$(IFS=,; echo "${names[*]}")]" study.output=outputs/reference/multi30k study.report.text=none study.equal_time=false
python scripts/reference.py "$runs"/{initial_state,rnn,bahdanau,luong,transformer} outputs/reference/multi30k
python scripts/readme.py
