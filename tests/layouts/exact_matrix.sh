#!/usr/bin/env bash
# exact_matrix.sh [BUILD]: exact mode on every layout: tensor x data ranks up to 8 in all, each size of
# micro-batches on 1 and 2 threads a rank, and over three hosts (tests/cluster). The tests have one of the
# sizes and numbers of threads for each layout. Eight minutes on two CPUs.
set -euo pipefail
build=${1:-build/cpu-release}
export OMP_WAIT_POLICY=passive REDSPINE_EXACT_MATRIX=1
for ranks in 1 2 3 4 6 8; do
  echo "== $ranks ranks"
  "$(dirname "$0")/../support/mpirun.sh" "$ranks" "$build/tests/layouts/exact_test" --gtest_brief=1
done
ctest --test-dir "$build" -R three_hosts --output-on-failure
