#!/usr/bin/env bash
# outputs/reference/europarl-500: 500 updates of each system on Europarl en-fr, the whole path on real text: trained,
# two test sets translated line by line and scored. Far from converged: it shows that it works, not how well.
# NMT_DATA names the folder that holds europarl-fren/ and newstest/; RUNS (default outputs/europarl-500) takes the runs.
set -euo pipefail
cd "$(dirname "$0")/.."
export OMP_NUM_THREADS=1
data="$NMT_DATA/europarl-fren"
news="$NMT_DATA/newstest/newstest2014-fren"
runs="${RUNS:-outputs/europarl-500}"
files=(data=text data.name=europarl data.source=en data.target=fr
    "data.train_src=$data/train.en.gz" "data.train_tgt=$data/train.fr.gz"
    "data.valid_src=$data/valid.en.gz" "data.valid_tgt=$data/valid.fr.gz"
    "data.test_src=$data/test.en.gz" "data.test_tgt=$data/test.fr.gz")
settings=(cleaning=none size=small tokenizer.vocab_size=4000 tokenizer.sample=20000 batching.tokens=512 training.max_epochs=null
    training.max_updates=500 training.bleu_sentences=100 schedule.warmup_updates=100 threads=1)
search=(beam=1 max_ratio=1.5 max_extra=5) # so early a model hardly ever ends a sentence by itself
for row in rnn bahdanau luong transformer; do
    python -m nmt.train "experiment=$row" "${files[@]}" "${settings[@]}" "run_dir=$runs/$row"
    for test in europarl-test newstest2014; do
        case $test in
            europarl-test) source=$data/test.en.gz reference=$data/test.fr.gz ;;
            newstest2014) source=$news.en.gz reference=$news.fr.gz ;;
        esac
        python -m nmt.translate "checkpoint=$runs/$row" "input=$source" "output=$runs/$row.$test.fr" "${search[@]}" threads=1
        python -m nmt.evaluate "hypotheses=$runs/$row.$test.fr" "references=$reference" "source=$source" \
            target_language=fr ter=false "output=$runs/evaluation"
    done
done
