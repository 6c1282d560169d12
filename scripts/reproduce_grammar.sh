#!/usr/bin/env bash
# outputs/reference/grammar: four systems on the embedded corpus. About 10 minutes on two cores.
set -euo pipefail
cd "$(dirname "$0")/.."
python -m nmt.compare output=outputs/reference/grammar
python scripts/readme.py
