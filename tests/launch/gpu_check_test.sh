#!/usr/bin/env bash
# gpu_check_test.sh SOURCE-FOLDER: what gpu_check.sh makes of what programs say, by a bundle whose
# programs are made up, and what it does to folders that are not its own.
set -euo pipefail
check=$1/launch/gpu_check.sh
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
bundle=$scratch/bundle
mkdir -p "$bundle/bin" "$scratch/path"
cp "$check" "$bundle/"

program() {
  printf '#!/usr/bin/env bash\n%s\n' "$2" >"$1"
  chmod +x "$1"
}
# shellcheck disable=SC2016  # for the programs
program "$bundle/bin/kernels_test" 'true'
program "$bundle/kernels_test" 'echo "[       OK ] A.B (1 ms)"; echo "[  PASSED  ] 1 test."'
program "$bundle/mpirun" 'while [[ $1 == -* ]]; do [ "$1" = -n ] && shift; [ "$1" = --mca ] && shift 2
  [ "$1" = --bind-to ] && shift; shift; done; exec "$@"'
program "$bundle/redspine" '
case $1 in
  --version) echo "redspine made up" ;;
  train)
    for word; do
      case $word in run.name=*) name=${word#*=} ;; run.output_dir=*) folder=${word#*=} ;;
        train.steps=*) steps=${word#*=} ;; esac
    done
    mkdir -p "$folder/$name"
    for ((i = 0; i < steps; i++)); do echo "{\"kind\":\"train\",\"loss\":5.0,\"x\":1}"; done \
      >"$folder/$name/metrics.jsonl" ;;
  bench)
    printf "{\"tokens_per_second\":1e5,\"mfu\":%s,\"matrix_tflops\":700,\"used_bytes\":%s" "$MFU" "$USED"
    echo ",\"planned_bytes\":1000,\"seconds\":1,\"gradients_seconds\":1,\"forward_seconds\":1,\"norm_seconds\":1,\"update_seconds\":1}" ;;
esac'
# As compute-sanitizer says it; the program itself is not run.
program "$scratch/path/compute-sanitizer" 'echo "========= COMPUTE-SANITIZER"
echo "[       OK ] A.B (1 ms)"; printf "%s" "${SAID:-}"; exit "$CODE"'

failures=0
# expect EXIT-CODE LINE ARGUMENT ...: the check ends so, and its table has a line like that.
expect() {
  local code=0
  PATH=$scratch/path:$PATH "$bundle/gpu_check.sh" "${@:3}" >"$scratch/output" 2>&1 || code=$?
  if [ $code -ne "$1" ] || ! grep -qE -- "$2" "$scratch/output"; then
    echo "FAILED: expected code $1 and '$2'; code $code and"
    cat "$scratch/output"
    failures=$((failures + 1))
  fi
}
export MFU=0.6 USED=1010 CODE=0
out=$scratch/out
expect 0 '^compute-sanitizer, kernels_test +clean, 1 tests$' "$out"
expect 0 '^  target: MFU +met: 60.0%, to hold 58 to 100%$' "$out"
expect 0 '^  target: memory / plan +met: 101.0%, to hold 97 to 103%$' "$out"
MFU=0.55 expect 0 '^  target: MFU +not met: 55.0%, to hold 58 to 100%$' "$out"
USED=1040 expect 0 '^  target: memory / plan +not met: 104.0%, ' "$out"
CODE=124 expect 0 'kernels_test +NOT FINISHED in 20 s: no error in its first 1 tests$' --brief "$out"
CODE=124 SAID="========= Invalid __global__ read of size 4 bytes" \
  expect 1 '^compute-sanitizer, kernels_test +FAILED' --brief "$out"
CODE=9 expect 1 '^compute-sanitizer, kernels_test +FAILED' --brief "$out"

mkdir -p "$scratch/mine/runs" "$scratch/empty"
touch "$scratch/mine/runs/keep" "$scratch/mine/notes.json"
expect 2 'mine holds other things' --brief "$scratch/mine"
[ -e "$scratch/mine/runs/keep" ] && [ -e "$scratch/mine/notes.json" ] || {
  echo "FAILED: files of others are gone"
  failures=$((failures + 1))
}
expect 0 'After' --brief "$scratch/empty"
exit $((failures > 0))
