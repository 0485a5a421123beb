#!/usr/bin/env bash
# absent_rank_test.sh MPIRUN PROGRAM: a rank that does not come to a collective, or to the end, ends
# the job soon, and the rank that waits for it says what it was.
set -uo pipefail
mpirun=$1
program=$2
failures=0

# expect CASE PATTERN
expect() {
  local start=$SECONDS output code
  output=$(REDSPINE_ON_HOST_DEVICES=2 "$mpirun" 2 "$program" "$1" 2>&1)
  code=$?
  echo "$output"
  if [ "$code" -ne 1 ] || [ $((SECONDS - start)) -gt 30 ] ||
      ! grep -qE "\[rank 0 @ .*\] $2" <<<"$output"; then
    echo "$1: expected: $2, exit code 1 (was $code), within 30 s (were $((SECONDS - start)))" >&2
    failures=$((failures + 1))
  fi
}

expect first 'NCCL all-reduce \(sum\) of 1000 f32 over 2 ranks, step 7, .*: not all ranks have come within 1 s'
expect second 'NCCL all-reduce \(max\) of 1000 f32 over 2 ranks, step 7: not done after 1 s'
expect end 'NCCL communicator of 2 ranks: not ended after 1 s'
exit $((failures > 0))
