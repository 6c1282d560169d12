#!/usr/bin/env bash
# outputs/reference/europarl-en-fr: four systems on WMT14 English-French training text (Europarl), 11,000 updates each, about
# 10.9 million target pieces of its 360,000 pairs (shuffled). One to two hours of one core each; resumable.
# NMT_DATA names the folder that holds europarl-fren/ and newstest/; RUNS (default outputs/europarl) is where the runs go.
# PRECISION (default bf16): fp32 for a processor without AVX-512, where bf16 is many times slower.
# Arguments: the systems (default all four); SEED (default 1).
set -euo pipefail
cd "$(dirname "$0")/.."
export OMP_NUM_THREADS=1
data="$NMT_DATA/europarl-fren"
news="$NMT_DATA/newstest/newstest"
runs="${RUNS:-outputs/europarl}"
seed="${SEED:-1}"
systems=("$@")
[ $# -gt 0 ] || systems=(rnn bahdanau luong transformer)
files=(data=text data.name=europarl data.source=en data.target=fr
    "data.train_src=$data/train.en.gz" "data.train_tgt=$data/train.fr.gz"
    "data.valid_src=$data/valid.en.gz" "data.valid_tgt=$data/valid.fr.gz"
    "data.test_src=$data/test.en.gz" "data.test_tgt=$data/test.fr.gz")
settings=(size=d192 size.dropout=0.0 tokenizer.vocab_size=4000 tokenizer.sample=100000 batching.tokens=1024
    training.max_epochs=null training.max_updates=11000 training.validate_every=1000 training.keep_every=1000
    training.bleu_sentences=200 "precision=${PRECISION:-bf16}" threads=1 workers=1)
kept=()
for system in "${systems[@]}"; do
    name=$system
    [ "$seed" = 1 ] || name=$system-seed$seed
    python -m nmt.train "experiment=$system" "seed=$seed" "${files[@]}" "${settings[@]}" "run_dir=$runs/$name"
    kept+=("$runs/$name")
done
listed="[$(IFS=,; echo "${kept[*]}")]"
reference=outputs/reference/europarl-en-fr
python -m nmt.compare "study.runs=$listed" "study.output=$reference" study.report.text=none study.draw_attention=false study.searches=beam=1
sources=() references=()
for year in 2009 2010 2011 2013 2014-fren; do
    sources+=("$news$year.en.gz")
    references+=("$news$year.fr.gz")
done
python -m nmt.compare "study.runs=$listed" "study.output=$reference/newstest" study.report.text=none study.draw_attention=false study.equal_time=false \
    evaluate.beam=1 \
    "evaluate.test.src=[$(IFS=,; echo "${sources[*]}")]" "evaluate.test.ref=[$(IFS=,; echo "${references[*]}")]" evaluate.test.name=newstest2009-2014
gold="$NMT_DATA/align-hansards-enfr/test" # attention against the alignments of people
python -m nmt.compare "study.runs=$listed" "study.output=$reference/hansards" study.report.text=none study.draw_attention=false study.equal_time=false \
    "evaluate.test.src=$gold.en.gz" "evaluate.test.ref=$gold.fr.gz" evaluate.test.name=hansards "evaluate.alignment.gold=$gold.en-fr.gold.gz" evaluate.alignment.base=1
python scripts/reference.py "${kept[@]}" "$reference"
rm -rf "$reference"/logs "$reference"/{newstest,hansards}/logs
python scripts/readme.py
