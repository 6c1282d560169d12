#!/usr/bin/env bash
# What only a CUDA machine can show, in less than eight minutes: the gpu tests, attention by length in bf16, and how fast
# Transformer base trains with varlen and with fused under a mask. Leaves JSON, Markdown and a picture in OUT.
# NMT_DATA names the folder that holds europarl-fren/; without it the sentences are those of the embedded corpus.
# WHEELS names a folder of wheels for a machine that lacks some library and has no network (pip wheel -w DIR hydra-core).
set -uo pipefail
cd "$(dirname "$0")/.."
out="${OUT:-outputs/gpu}"
python="${PYTHON:-python3}"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$out"
if [ -n "${WHEELS:-}" ]; then
    "$python" -m pip install -q --no-index --no-deps --no-compile --target "$scratch/site" "$WHEELS"/*.whl || exit 1
    export PYTHONPATH="$scratch/site${PYTHONPATH:+:$PYTHONPATH}"
fi
"$python" -c 'import hydra, sentencepiece, torch
assert torch.cuda.is_available(), "torch finds no CUDA device"
print(torch.__version__, torch.cuda.get_device_name())' || exit 1

failed=()
step() { # step NAME SECONDS COMMAND...
    local name=$1 seconds=$2
    shift 2
    echo "== $name"
    timeout "$seconds" "$@" || failed+=("$name ($?)")
}

step tests 120 "$python" -m pytest -q -m gpu tests -p no:cacheprovider --junitxml="$out/tests.xml"
step attention 120 "$python" -m nmt.benchmark suite=attention device=cuda precision=bf16 suite.seconds=0.1 \
    'suite.lengths=[64,128,256,512,1024,2048,4096,8192,16384]' "output=$out/attention.json"

data=(data=grammar)
if [ -n "${NMT_DATA:-}" ]; then
    europarl="$NMT_DATA/europarl-fren"
    data=(data=text data.name=europarl data.source=en data.target=fr data.max_pairs=100000 tokenizer.sample=50000
        "data.train_src=$europarl/train.en.gz" "data.train_tgt=$europarl/train.fr.gz")
fi
for backend in varlen fused; do
    step "training with $backend" 110 "$python" -m nmt.benchmark suite=training device=cuda precision=bf16 \
        experiment=paper/transformer_base "attention_backend=$backend" "${data[@]}" tokenizer.vocab_size=8000 \
        "data_dir=$scratch/data" "output=$out/training-$backend.json"
    rm -f "$out/training-$backend.md"
done

if [ ${#failed[@]} -gt 0 ]; then
    echo "failed: ${failed[*]}"
    exit 1
fi
echo "all done; see $out"
