#!/usr/bin/env bash
# setup.sh: make .venv, the Python environment of the reference tests, with all that they compare
# with: the packages of requirements.txt, GPT-2's token ranks as .venv/share/gpt2.tiktoken, and the
# sources of megatron-core in .venv/share/megatron_core. Does nothing when all is there.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."

requirements=tests/reference/requirements.txt
installed=.venv/share/requirements.txt
ranks=.venv/share/gpt2.tiktoken

if [ ! -x .venv/bin/python ]; then
  /usr/bin/python3 -m venv --system-site-packages .venv
fi
mkdir -p .venv/share
if ! cmp -s "$requirements" "$installed"; then
  .venv/bin/pip install --quiet --disable-pip-version-check -r "$requirements"
  cp "$requirements" "$installed"
fi
# Only its reader of token files is used, which needs none of the packages that it asks for.
if [ ! -d .venv/share/megatron_core ]; then
  .venv/bin/pip install --quiet --disable-pip-version-check --no-deps \
    --target .venv/share/megatron_core.partial megatron-core==0.16.1
  mv .venv/share/megatron_core.partial .venv/share/megatron_core
fi
# openai-whisper ships the ranks; the package itself and all that it depends on are not needed.
if [ ! -s "$ranks" ]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  .venv/bin/pip download --quiet --disable-pip-version-check --no-deps --no-binary :all: \
    --no-build-isolation --dest "$folder" openai-whisper==20250625
  tar -xzf "$folder"/openai*whisper-*.tar.gz -C "$folder" --strip-components=1
  mv "$folder/whisper/assets/gpt2.tiktoken" "$ranks"
fi

./tests/reference/checkpoints/setup.sh
