#!/usr/bin/env bash
# setup.sh: make .venv/transformers, a Python environment of its own: the transformers that runs on
# Debian's PyTorch asks for an older tokenizers than other tests compare with. Does nothing when all
# is there.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../../.."

environment=.venv/transformers
requirements=tests/reference/checkpoints/requirements.txt
installed=$environment/share/requirements.txt

if [ ! -x "$environment/bin/python" ]; then
  /usr/bin/python3 -m venv --system-site-packages "$environment"
fi
mkdir -p "$environment/share"
if ! cmp -s "$requirements" "$installed"; then
  "$environment/bin/pip" install --quiet --disable-pip-version-check -r "$requirements"
  cp "$requirements" "$installed"
fi
