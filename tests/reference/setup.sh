#!/usr/bin/env bash
# setup.sh: make .venv, the Python environment of the reference tests, with all that they compare
# with. Does nothing when all is there.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"

./checkpoints/setup.sh
