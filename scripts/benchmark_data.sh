#!/usr/bin/env bash
# outputs/reference/benchmarks/{preparing,loading}: what preparing large corpora and making batches cost.
# NMT_DATA names the folder that holds europarl-fren/; needs 5 GB in TMPDIR and about 15 minutes on two idle cores.
set -euo pipefail
cd "$(dirname "$0")/.."
data="$NMT_DATA/europarl-fren"
python -m scripts.benchmark_preparation "$data/train.en.gz" "$data/train.fr.gz" \
    --output outputs/reference/benchmarks/preparing.json
python -m scripts.benchmark_loading data=text "data.train_src=$data/train.en.gz" "data.train_tgt=$data/train.fr.gz" \
    data.source=en data.target=fr size=d64 tokenizer.vocab_size=4000 tokenizer.sample=100000 threads=2 \
    --output outputs/reference/benchmarks/loading.json
