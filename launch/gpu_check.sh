#!/usr/bin/env bash
# gpu_check.sh [--brief] [FOLDER]: what to run first on a machine with a GPU, from a bundle that
# bundle.sh made. Takes less than six minutes on one GPU. In order:
#   the kernels against those of the CPU, in fp32 and bf16; compute-sanitizer over them where it is
#   20 steps of training on the CPU, on the GPU, and on 2 x 2 ranks that share it: the same losses
#   speed, memory against the plan, and the time of each phase, for models of 0.1 to 1.5 billion,
#   and which of the targets in docs/performance.md they meet
# A short table comes last; everything measured lies in FOLDER (gpu_check) as JSON. FOLDER is new, or
# empty, or of an earlier check. Exit code: 0 nothing failed, 1 something did, 2 an error in the
# command; a target that is not met is no failure. --brief does a little of each, without targets.
set -uo pipefail
bundle=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
brief=
[ "${1:-}" != --brief ] || { brief=1; shift; }
if [ $# -gt 1 ] || [[ ${1:-} == -* ]]; then
  echo "gpu_check.sh: read '$*'; legal: [--brief] [FOLDER]" >&2
  exit 2
fi
out=$(readlink -m "${1:-gpu_check}")
mkdir -p "$out" || exit 2
marker=$out/.redspine_gpu_check
if [ ! -e "$marker" ] && [ -n "$(ls -A "$out")" ]; then
  echo "gpu_check.sh: $out holds other things; legal: a new or empty folder, or one of a check" >&2
  exit 2
fi
: >"$marker" || exit 2
rm -rf "$out"/runs "$out"/*.json "$out"/*.log
table=$out/table.txt
: >"$table"
failures=0

step() { printf '\n=== %s (%d s so far)\n' "$1" "$SECONDS"; }
row() { printf '%-34s %s\n' "$1" "$2" >>"$table"; }
failed() {
  failures=$((failures + 1))
  row "$1" "FAILED: $2"
  echo "FAILED: $1: $2" >&2
}

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1

step "What is here"
"$bundle/redspine" --version || exit 1
! command -v nvidia-smi >/dev/null || nvidia-smi

step "Kernels against the CPU's"
quick='*'
[ -z "$brief" ] || quick=${GPU_CHECK_KERNELS:-'*Swiglu*'}
tests=("$bundle"/bin/*_test)
for test in "${tests[@]}"; do
  name=$(basename "$test")
  if timeout 150 "$bundle/$name" --gtest_brief=1 --gtest_filter="$quick" \
    --gtest_output="json:$out/$name.json" >"$out/$name.log" 2>&1 &&
    grep -q '\[  PASSED  \] [1-9]' "$out/$name.log"; then
    row "$name" "$(grep -oE 'PASSED *\] [0-9]+ tests?' "$out/$name.log" | sed 's/.*\] //') passed"
  else
    failed "$name" "see $out/$name.log"
    tail -n 20 "$out/$name.log"
  fi
done

if command -v compute-sanitizer >/dev/null || [ -x /usr/local/cuda/bin/compute-sanitizer ]; then
  step "The same under compute-sanitizer"
  PATH=$PATH:/usr/local/cuda/bin
  limit=60
  [ -z "$brief" ] || limit=20
  for test in "${tests[@]}"; do
    name=$(basename "$test")
    log=$out/sanitizer_$name.log
    timeout "$limit" compute-sanitizer --error-exitcode 9 "$bundle/$name" \
      --gtest_filter="$quick" >"$log" 2>&1
    code=$?
    passed=$(grep -c '^\[ *OK \]' "$log")
    errors=$(grep -E '^========= |^\[ *FAILED' "$log" | grep -vc COMPUTE-SANITIZER)
    if [ "$code" -eq 0 ] && [ "$passed" -gt 0 ]; then
      row "compute-sanitizer, $name" "clean, $passed tests"
    elif [ "$code" -eq 124 ] && [ "$passed" -gt 0 ] && [ "$errors" -eq 0 ]; then
      row "compute-sanitizer, $name" "NOT FINISHED in $limit s: no error in its first $passed tests"
    else
      failed "compute-sanitizer, $name" "see $log"
    fi
  done
else
  row "compute-sanitizer" "not here"
fi

step "Losses of the CPU, the GPU, and ranks that share it"
steps=20
[ -z "$brief" ] || steps=4
tiny="model.num_layers=2 model.hidden_size=64 model.num_heads=4 model.ffn_size=128
  model.vocab_size=257 model.max_sequence_length=32 batch.sequence_length=32
  batch.global_batch_size=8 batch.micro_batch_size=2 optimizer.learning_rate=1e-3
  schedule.warmup_steps=2 train.steps=$steps train.log_interval=1 train.eval_interval=0
  checkpoint.interval=0 parallel.tensor=1 data.tokenizer=bytes"
data="data.train=[{path: $bundle/tokens/tokens}]"

# train NAME RANKS KEY=VALUE ...: a run of its own, and its losses, one per line, in NAME.losses.
train() {
  local name=$1 ranks=$2
  shift 2
  local launcher=()
  [ "$ranks" -eq 1 ] || launcher=("$bundle/mpirun" -n "$ranks" --oversubscribe --bind-to none
    --mca btl self,vader --mca btl_vader_single_copy_mechanism none)
  # shellcheck disable=SC2086  # each word of the settings is one
  timeout 120 "${launcher[@]}" "$bundle/redspine" train --config "$bundle/configs/gpt2-small.yaml" \
    --set $tiny "$data" "data.validation=[]" "run.name=$name" "run.output_dir=$out/runs" "$@" \
    >"$out/$name.log" 2>&1 || return 1
  grep '"kind":"train"' "$out/runs/$name/metrics.jsonl" |
    sed -E 's/.*"loss":([^,]*),.*/\1/' >"$out/runs/$name.losses"
}

# agrees NAME TOLERANCE: the largest difference of NAME's losses from the CPU's, over the CPU's.
agrees() {
  paste "$out/runs/cpu.losses" "$out/runs/$1.losses" | awk -v tolerance="$2" -v steps="$steps" '
    { difference = ($2 - $1) / $1; if (difference < 0) difference = -difference }
    NF < 2 || difference != difference { bad = 1 }
    difference > most { most = difference }
    END { printf "%.1e", most; exit !(NR == steps && !bad && most <= tolerance) }'
}

compare() {
  local name=$1 tolerance=$2 difference
  if difference=$(agrees "$name" "$tolerance"); then
    row "losses, $name" "within $difference of the CPU's (at most $tolerance)"
  else
    failed "losses, $name" "differ by $difference from the CPU's (at most $tolerance)"
  fi
}

if train cpu 1 run.device=cpu; then
  row "losses, cpu" "$(head -n 1 "$out/runs/cpu.losses") to $(tail -n 1 "$out/runs/cpu.losses")"
  for run in gpu gpu_bf16 gpu_2x2; do
    ranks=1 settings=(run.device=cuda) tolerance=1e-4
    case $run in
      gpu_bf16) settings+=(run.precision=bf16) tolerance=1e-2 ;;
      gpu_2x2) ranks=4 settings+=(parallel.tensor=2 run.collectives=mpi) ;;
    esac
    if train "$run" "$ranks" "${settings[@]}"; then
      compare "$run" "$tolerance"
    else
      failed "losses, $run" "see $out/$run.log"
      tail -n 5 "$out/$run.log"
    fi
  done
else
  failed "losses, cpu" "see $out/cpu.log"
  tail -n 5 "$out/cpu.log"
fi

step "Speed and memory"
# target WHAT VALUE LEAST MOST UNIT: whether a value is where docs/performance.md wants it.
target() {
  local verdict="not met"
  ! awk "BEGIN { exit !($2 >= $3 && $2 <= $4) }" || verdict="met"
  row "  target: $1" "$(printf '%s: %.1f%s, to hold %g to %g%s' "$verdict" "$2" "$5" "$3" "$4" "$5")"
}

# bench NAME CONFIG MICRO-BATCH LENGTH [LEAST-MFU]: halves the batch until it fits.
bench() {
  local name=$1 config=$2 micro=$3 length=$4 least_mfu=${5:-} small=() effort=(--steps 8)
  if [ -n "$brief" ]; then
    small=(model.num_layers=1 model.hidden_size=64 model.num_heads=2 model.num_kv_heads=2
      model.ffn_size=64 model.vocab_size=257)
    effort=(--steps 1 --matrix 64)
  fi
  while true; do
    if timeout 90 "$bundle/redspine" bench --config "$bundle/configs/$config.yaml" --json \
      "${effort[@]}" \
      --set run.device=cuda run.precision=bf16 "run.name=$name" "$data" "data.validation=[]" \
      train.eval_interval=0 parallel.tensor=1 "batch.sequence_length=$length" \
      "batch.micro_batch_size=$micro" "batch.global_batch_size=$micro" "${small[@]}" \
      >"$out/$name.json" 2>"$out/$name.log"; then
      break
    fi
    if [ "$micro" -gt 1 ] && grep -q 'cannot allocate' "$out/$name.log"; then
      micro=$((micro / 2))
      continue
    fi
    failed "$name" "see $out/$name.log"
    tail -n 5 "$out/$name.log"
    return
  done
  field() { sed -E "s/.*\"$1\":([^,}]*).*/\1/" "$out/$name.json"; }
  row "$name, ${micro}x$length" "$(printf \
    '%.0f tokens/s, MFU %.1f%% of %.0f TFLOP/s, memory %.1f of %.1f GiB planned, step %.4f s: gradients %.4f (forward %.4f), norm %.4f, update %.4f' \
    "$(field tokens_per_second)" "$(awk "BEGIN { print 100 * $(field mfu) }")" \
    "$(field matrix_tflops)" "$(awk "BEGIN { print $(field used_bytes) / 2^30 }")" \
    "$(awk "BEGIN { print $(field planned_bytes) / 2^30 }")" "$(field seconds)" \
    "$(field gradients_seconds)" "$(field forward_seconds)" "$(field norm_seconds)" \
    "$(field update_seconds)")"
  [ -z "$brief" ] || return 0
  [ -z "$least_mfu" ] ||
    target "MFU" "$(awk "BEGIN { print 100 * $(field mfu) }")" "$least_mfu" 100 %
  target "memory / plan" \
    "$(awk "BEGIN { print 100 * $(field used_bytes) / $(field planned_bytes) }")" 97 103 %
}
if [ -n "$brief" ]; then
  bench gpt2_124m gpt2-small 1 16
else
  bench gpt2_124m gpt2-small 64 1024 50
  bench gpt2_1.5b gpt2-xl 16 1024 58
  bench llama_1b_1024 llama-1b-like 16 1024
  bench llama_1b_4096 llama-1b-like 4 4096
fi

rm -rf "$out/runs"
printf '\n=== After %d s\n' "$SECONDS"
cat "$table"
[ "$failures" -eq 0 ] || { echo "$failures failed"; exit 1; }
