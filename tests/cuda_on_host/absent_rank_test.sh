#!/usr/bin/env bash
# absent_rank_test.sh MPIRUN PROGRAM: a rank that does not come to a collective ends the job soon, and
# the rank that waits for it says which collective it was.
set -uo pipefail
start=$SECONDS
output=$(REDSPINE_ON_HOST_DEVICES=2 "$1" 2 "$2" 2>&1)
code=$?
echo "$output"
expected='\[rank 0 @ .*\] NCCL all-reduce \(max\) of 1000 f32 over 2 ranks, step 7: not done after 1 s'
if [ "$code" -ne 1 ] || [ $((SECONDS - start)) -gt 30 ] || ! grep -qE "$expected" <<<"$output"; then
  echo "expected: $expected, exit code 1 (was $code), within 30 s (were $((SECONDS - start)))" >&2
  exit 1
fi
