#!/usr/bin/env bash
# quickstart.sh [--short] [KEY=VALUE ...]: from a bare Debian 12 to a trained GPT.
# Installs what is missing, builds, trains a tokenizer on a book, turns the book into token files,
# trains a small GPT on four ranks of this machine (two copies, each split over two ranks), shows the
# loss falling, and lets the model write. KEY=VALUE goes above configs/quickstart.yaml; --short trains
# a few steps only. A second call reuses what is installed, built and prepared, and trains anew.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

settings=()
if [ "${1:-}" = --short ]; then
  shift
  settings=(train.steps=60 train.eval_interval=20 train.eval_batches=5)
fi
for setting in "$@"; do
  if [[ $setting != ?*=* ]]; then
    echo "quickstart.sh: read '$setting'; legal: --short first, then KEY=VALUE ..." >&2
    exit 2
  fi
  settings+=("$setting")
done

step() { printf '\n=== %s (%d s so far)\n' "$1" "$SECONDS"; }

step "Installing what is missing"
./launch/install.sh build corpus

step "Building"
# A folder that test.sh configured keeps its tests.
[ -f build/cpu-release/build.ninja ] || cmake --preset cpu-release -DREDSPINE_TESTS=OFF
cmake --build --preset cpu-release --target redspine
redspine=build/cpu-release/launch/redspine

step "Preparing the corpus"
# The King James Bible, one verse per line; a blank line ends a chapter, which is a document.
if [ ! -f corpus/tokenizer.json ] || [ ! -f corpus/bible_validation.idx ]; then
  mkdir -p corpus
  PATH=$PATH:/usr/games bible -f Gen1:1-Rev22:21 </dev/null | awk '
    {
      chapter = $1
      sub(/:.*/, "", chapter)
      if (NR > 1 && chapter != last) print ""
      last = chapter
      sub(/^[^ ]+ /, "")
      print
    }' >corpus/bible.txt
  # The vocabulary of configs/quickstart.yaml.
  $redspine tokenize corpus/bible.txt --document-separator "" --train-bpe --vocab-size 2048 \
    --save-tokenizer corpus/tokenizer.json --validation-fraction 0.05 --output corpus/bible
fi
ls -l corpus/*.bin

step "Training on four ranks"
# The ranks share the CPUs however few there are, so they are not bound and an idle one yields.
export OMPI_MCA_mpi_yield_when_idle=1
if [ "$(id -u)" -eq 0 ]; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
mpirun -n 4 --oversubscribe --bind-to none --mca btl self,vader --mca oob_tcp_if_include lo \
  $redspine train --config configs/quickstart.yaml \
  --set checkpoint.resume=none "${settings[@]}" run.output_dir=runs run.name=quickstart

step "The loss on the training text (#) and on chapters held out from it (o)"
awk -f launch/loss.awk runs/quickstart/metrics.jsonl || {
  echo "quickstart.sh: the loss did not fall as it should" >&2
  exit 1
}

step "What the model writes"
checkpoint=$(printf '%s\n' runs/quickstart/checkpoints/step_???????? | tail -n 1)
$redspine sample --checkpoint "$checkpoint" --prompt "And the LORD said" --tokens 300 \
  --temperature 0.8

echo "Everything of the run lies in runs/quickstart. This took $SECONDS s in all."
