#!/usr/bin/env bash
# trial.sh PREFIX: does what is installed under PREFIX work? It tells its version, completes words,
# trains on two ranks by an installed configuration until the loss has fallen, and samples.
set -euo pipefail
bin=$(readlink -f "$1")/bin share=$(readlink -f "$1")/share
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
fail() {
  echo "FAILED: $*" >&2
  exit 1
}

"$bin/redspine" --version

# completes WORD ...: what the last of these words may become.
completes() {
  # shellcheck disable=SC1090,SC1091
  source "$share/bash-completion/completions/redspine"
  COMP_WORDS=("$bin/redspine" "$@") COMP_CWORD=$# COMPREPLY=()
  _redspine
  echo "${COMPREPLY[*]}"
}
[ "$(completes tra)" = "train trace" ] || fail "tra becomes: $(completes tra)"
[ "$(completes train --dry)" = --dry-run ] || fail "--dry becomes: $(completes train --dry)"
[ "$(completes checkpoint ver)" = verify ] || fail "ver becomes: $(completes checkpoint ver)"

seq -f 'The square of %g is not its double.' 1 400 >text.txt
"$bin/redspine" tokenize text.txt --tokenizer bytes --output tokens
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
OMP_NUM_THREADS=1 mpirun -n 2 --oversubscribe --bind-to none --mca btl self,vader \
  --mca oob_tcp_if_include lo --mca btl_vader_single_copy_mechanism none \
  "$bin/redspine" train --config "$share/redspine/configs/quickstart.yaml" --set \
  'data.train=[{path: tokens}]' 'data.validation=[]' data.tokenizer=bytes model.vocab_size=257 \
  model.num_layers=2 model.hidden_size=48 train.steps=40 train.eval_interval=0 \
  checkpoint.interval=40 run.name=trial
awk -f "$share/redspine/launch/loss.awk" runs/trial/metrics.jsonl || fail "the loss did not fall"
"$bin/redspine" sample --checkpoint runs/trial/checkpoints/step_00000040 --prompt "The square" \
  --tokens 20
