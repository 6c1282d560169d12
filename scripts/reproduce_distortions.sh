#!/usr/bin/env bash
# outputs/reference/distortions: what the choice of axis does to BLEU by length, on the outputs of 19 systems of WMT21.
# About a minute. NMT_DATA names the folder that holds outputs-newstest2021-deen/; arguments name some of the systems.
set -euo pipefail
cd "$(dirname "$0")/.."
python -m scripts.distortions "$NMT_DATA/outputs-newstest2021-deen" "$@"
python scripts/readme.py
