#!/usr/bin/env bash
# outputs/reference/grammar: four systems, three seeds each, on the embedded corpus. Under an hour on two cores.
set -euo pipefail
cd "$(dirname "$0")/.."
python -m nmt.compare study.seeds=1,2,3 study.output=outputs/reference/grammar
python scripts/reference.py outputs/grammar/{rnn,bahdanau,luong,transformer}{,-seed2,-seed3} outputs/reference/grammar
rm -rf outputs/reference/grammar/logs
python scripts/readme.py
