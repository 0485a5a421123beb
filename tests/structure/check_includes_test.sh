#!/usr/bin/env bash
# The include check must find each kind of violation where it is planted, and nothing in clean code.
set -euo pipefail
check=$(dirname "$(readlink -f "$0")")/check_includes.sh
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
failures=0

# expect found|clean FILE LINE: a tree of this one file is judged so.
expect() {
  rm -rf "${root:?}"/*
  mkdir -p "$root/$(dirname "$2")"
  printf '// First line.\n%s\n' "$3" >"$root/$2"
  local code=0 output
  output=$("$check" "$root" 2>&1) || code=$?
  case "$1:$code:$output" in
    found:1:"$2:2: "*$'\n'*) echo "FAILED: reported more than once: $output" ;;
    found:1:"$2:2: "* | clean:0:) return ;;
    *) echo "FAILED: expected $1 for $2 with: $3"; echo "  exit code $code, output: $output" ;;
  esac
  failures=$((failures + 1))
}

# Against the direction.
expect found tensor/a.h '#include "parallel/group/communicator.h"'
expect found tensor/cpu/a.cpp '#  include "model/gpt.h"'
expect found parallel/a.h '#include <model/gpt.h>'
expect found parallel/a.cpp '#include "data/sampler.h"'
expect found model/a.cpp '#include "trainer/trainer.h"'
expect found model/a.cpp '#include "data/sampler.h"'
expect found data/a.h '#include "tensor/tensor.h"'
expect found data/a.h '#include "model/gpt.h"'
expect found trainer/a.cu '#include "launch/config.h"'
expect found launch/a.cpp '#include "tests/support/files.h"'
expect clean tensor/a.h '#include "tensor/view.h"'
expect clean parallel/a.h '#include "tensor/view.h"'
expect clean data/a.h '#include "tensor/error.h"'
expect clean data/a.cpp '#include "tensor/philox.h"'
expect clean trainer/a.cpp '#include "data/sampler.h"'
expect clean launch/a.cpp '#include "tensor/device.h"'
expect clean tests/model/a.cpp '#include "launch/config.h"'

# Not from the root.
expect found tensor/a.h '#include "view.h"'
expect found tensor/a.h '#include "../model/gpt.h"'
expect clean tensor/a.h '#include <vector>'

# Third parties out of their folder.
expect found model/a.cpp '#include <mpi.h>'
expect found trainer/a.cpp '#include "nccl.h" '
expect found parallel/a.cpp '#include <cuda_runtime.h>'
expect found tensor/cpu/a.cpp '#include <cublas_v2.h>'
expect found model/a.h '#include <cudnn.h>'
expect found tensor/a.cpp '#include <cblas.h>'
expect found model/a.cpp '#include <cblas-openblas.h>'
expect found trainer/a.h '#include <yaml-cpp/yaml.h>'
expect found data/a.h '#include <boost/program_options.hpp>'
expect found tensor/a.h '#include <gtest/gtest.h>'
expect found data/documents/input_file.cpp '#include <archive.h>'
expect found tests/data/a.cpp '#include <archive_entry.h>'
expect clean parallel/a.cpp '#include <mpi.h>'
expect clean parallel/a.cpp '#include <nccl.h>'
expect clean tensor/cuda/a.cu '#include <cudnn.h>'
expect clean tensor/cpu/a.cpp '#include <cblas-openblas.h>'
expect clean launch/a.cpp '#include <yaml-cpp/yaml.h>'
expect clean data/documents/archive.cpp '#include <archive_entry.h>'
expect clean tests/a.cpp '#include <gtest/gtest.h>'
expect found tests/tensor/a.cpp '#include <cuda_runtime.h>'
expect clean tests/cuda_on_host/a.cpp '#include <cuda_runtime.h>'
expect clean tests/cuda_on_host/a.h '#include <boost/context/fiber.hpp>'

# A backend chosen by preprocessor.
expect found tensor/a.cpp '#ifdef REDSPINE_CUDA'
expect found parallel/a.cpp '#if defined(HAVE_NCCL)'
expect found tensor/a.h '# ifndef __CUDACC__'
expect found parallel/a.h '#elif USE_MPI'
expect found tensor/a.cpp '#if __has_include(<openblas_config.h>)'
expect clean tensor/cuda/a.h '#ifndef REDSPINE_TENSOR_CUDA_A_H_'
expect clean tensor/a.h '#if defined(__GNUC__) && !defined(SOME_COMPILER)'
expect clean tensor/a.h '// #include "model/gpt.h"'

# A circle of folders, each of whose includes is allowed.
rm -rf "${root:?}"/*
mkdir -p "$root"/data/{files,io,tokenizer}
echo '#include "data/io/b.h"' >"$root/data/files/a.h"
echo '#include "data/tokenizer/c.h"' >"$root/data/io/b.h"
echo '#include "data/io/b.h"' >"$root/data/tokenizer/c.h"
code=0
output=$("$check" "$root" 2>&1) || code=$?
if [ $code -ne 1 ] || [[ $output != *data/io*data/tokenizer* && $output != *data/tokenizer*data/io* ]]; then
  echo "FAILED: a circle of folders gave exit code $code and: $output"
  failures=$((failures + 1))
fi
echo '#include <vector>' >"$root/data/tokenizer/c.h"
"$check" "$root" || { echo "FAILED: the same without the circle"; failures=$((failures + 1)); }

# A check that looked at nothing must not pass.
rm -rf "${root:?}"/*
code=0
"$check" "$root" >/dev/null 2>&1 || code=$?
if [ $code -ne 2 ]; then
  echo "FAILED: an empty tree gave exit code $code instead of 2"
  failures=$((failures + 1))
fi
exit $((failures > 0))
