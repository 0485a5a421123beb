#!/usr/bin/env bash
# slurm_test.sh REDSPINE: launch/train.sbatch trains over two nodes of a real Slurm, with the losses
# of the same layout under plain mpirun, and the exit code of a rejected key reaches whoever waits
# for the job.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
source "$here/sandbox.sh"
require munged slurmctld slurmd sbatch sinfo setpriv mpirun
enter_sandbox "$@"
source "$here/slurm.sh"

export REDSPINE=$1
start_slurm
cd "$scratch"
make_corpus "$REDSPINE" corpus
write_config config.yaml corpus 10

# submit OUTPUT ARG ...: the job's exit code; its output is shown where it is not the expected one.
submit() {
  local output=$1 code=0
  shift
  sbatch --wait --nodes=2 --ntasks-per-node=2 --output="$output" \
    "$here/../../launch/train.sbatch" "$@" >/dev/null || code=$?
  return $code
}

for tensor in 1 4; do
  layout=(--config config.yaml --set "parallel.tensor=$tensor")
  submit "$tensor.out" "${layout[@]}" --set run.name="slurm$tensor" || {
    code=$?
    cat "$tensor.out"
    fail "the job with parallel.tensor=$tensor ended with exit code $code"
  }
  "$here/../support/mpirun.sh" 4 "$REDSPINE" train "${layout[@]}" --set run.name="plain$tensor" \
    >/dev/null
  same_losses "runs/slurm$tensor/metrics.jsonl" "runs/plain$tensor/metrics.jsonl" 10
done

code=0
submit rejected.out --config config.yaml --set model.nonsense=1 || code=$?
if [ $code -ne 2 ] || ! grep -q nonsense rejected.out; then
  cat rejected.out
  fail "a wrong key gave exit code $code instead of 2, or was not named"
fi
echo "PASSED"
