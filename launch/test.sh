#!/usr/bin/env bash
# test.sh [CTEST-ARGUMENT ...]: install what is missing, build with tests, and run them all.
# For example `./launch/test.sh -L unit` runs the quick ones, `-R layouts -V` one with its output.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

./launch/install.sh build test
export CMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER-ccache}
cmake --preset cpu-release -DREDSPINE_TESTS=ON
cmake --build --preset cpu-release
ctest --preset cpu-release --parallel "$(nproc)" "$@"
