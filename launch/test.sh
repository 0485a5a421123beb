#!/usr/bin/env bash
# test.sh [--with-reference] [CTEST-ARGUMENT ...]: install what is missing, build with tests, and run
# them all. --with-reference: also those that compare with other programs, in Python (.venv).
# For example `./launch/test.sh -L unit` runs the quick ones, `-R layouts -V` one with its output.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

reference=OFF
if [ "${1-}" = --with-reference ]; then
  reference=ON
  shift
  ./launch/install.sh reference
  ./tests/reference/setup.sh
fi
./launch/install.sh build test
export CMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER-ccache}
cmake --preset cpu-release -DREDSPINE_TESTS=ON -DREDSPINE_REFERENCE=$reference
cmake --build --preset cpu-release
ctest --preset cpu-release --parallel "$(nproc)" "$@"
