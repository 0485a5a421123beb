#!/usr/bin/env bash
# The include check must find each kind of violation where it is planted, and nothing in clean code.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
check=$here/check_includes.sh
source "$here/planted.sh"

line=2
plant() {
  mkdir -p "$root/$(dirname "$1")"
  printf '// First line.\n%s\n' "$2" >"$root/$1"
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

# Between the folders of one part: what builds upon another may include it, not the reverse.
expect found tensor/a.cpp '#include "tensor/cpu/a.h"'
expect found tensor/cpu/a.cpp '#include "tensor/cuda/a.h"'
expect found parallel/a.h '#include "parallel/group/a.h"'
expect found parallel/group/a.h '#include "parallel/mpi/a.h"'
expect found parallel/shared_memory/a.h '#include "parallel/mpi/a.h"'
expect found parallel/nccl/a.cpp '#include "parallel/mpi/a.h"'
expect found parallel/mpi/a.cpp '#include "parallel/mesh/a.h"'
expect found parallel/mesh/a.cpp '#include "tensor/cuda/a.h"'
expect found model/a.cpp '#include "model/transformers/a.h"'
expect found model/a.cpp '#include "parallel/mpi/a.h"'
expect found model/transformers/a.cpp '#include "parallel/mesh/a.h"'
expect found data/io/a.cpp '#include "data/a.h"'
expect found data/tokenizer/a.cpp '#include "data/files/a.h"'
expect found data/files/a.cpp '#include "data/documents/a.h"'
expect found data/documents/a.cpp '#include "data/tokenizer/a.h"'
expect found data/documents/a.cpp '#include "tensor/tensor.h"'
expect found trainer/optimizer/a.cpp '#include "trainer/checkpoint/a.h"'
expect found trainer/checkpoint/format/a.h '#include "trainer/checkpoint/a.h"'
expect found trainer/checkpoint/a.h '#include "trainer/a.h"'
expect found trainer/a.h '#include "model/transformers/a.h"'
expect found launch/job/a.cpp '#include "launch/config/a.h"'
expect found launch/config/a.cpp '#include "launch/run/a.h"'
expect found launch/run/a.cpp '#include "launch/commands/a.h"'
expect found launch/bench/a.cpp '#include "launch/run/a.h"'
expect found launch/commands/a.h '#include "launch/main.h"'
expect found launch/a.cpp '#include "launch/run/a.h"'
expect clean parallel/mesh/a.cpp '#include "parallel/nccl/a.h"'
expect clean parallel/nccl/a.cpp '#include "tensor/cuda/a.h"'
expect clean model/transformers/a.cpp '#include "model/a.h"'
expect clean data/a.cpp '#include "data/documents/a.h"'
expect clean data/tokenizer/a.cpp '#include "data/io/a.h"'
expect clean trainer/checkpoint/a.cpp '#include "trainer/checkpoint/format/a.h"'
expect clean trainer/a.cpp '#include "trainer/optimizer/a.h"'
expect clean launch/commands/a.cpp '#include "launch/bench/a.h"'
expect clean launch/a.cpp '#include "launch/commands/a.h"'
# A new folder has no rule yet.
expect found model/new/a.cpp '#include "model/a.h"'
# Of tests, what all share.
expect found tests/model/a.cpp '#include "tests/golden/a.h"'
expect found tests/support/a.cpp '#include "tests/model/a.h"'
expect found tests/golden/a.cpp '#include "tests/trainer/a.h"'
expect clean tests/trainer/optimizer/a.cpp '#include "tests/golden/a.h"'
expect clean tests/data/a.cpp '#include "tests/data/documents/a.h"'
expect clean tests/data/files/a.cpp '#include "tests/support/a.h"'

# Not from the root.
expect found tensor/a.h '#include "view.h"'
expect found tensor/a.h '#include "../model/gpt.h"'
expect clean tensor/a.h '#include <vector>'

# Third parties out of their folder.
expect found model/a.cpp '#include <mpi.h>'
expect found parallel/a.h '#include <mpi.h>'
expect found parallel/mesh/a.h '#include <mpi.h>'
expect found trainer/a.cpp '#include "nccl.h" '
expect found parallel/mpi/a.cpp '#include <nccl.h>'
expect found parallel/a.cpp '#include <cuda_runtime.h>'
expect found tensor/cpu/a.cpp '#include <cublas_v2.h>'
expect found model/a.h '#include <cudnn.h>'
expect found tensor/a.cpp '#include <cblas.h>'
expect found model/a.cpp '#include <cblas-openblas.h>'
expect found tensor/a.cpp '#include <omp.h>'
expect found trainer/a.h '#include <yaml-cpp/yaml.h>'
expect found launch/run/a.cpp '#include <yaml-cpp/yaml.h>'
expect found data/a.h '#include <boost/program_options.hpp>'
expect found launch/config/a.cpp '#include <boost/program_options.hpp>'
expect found tensor/a.h '#include <gtest/gtest.h>'
expect found data/a.cpp '#include <pcre2.h>'
expect found data/io/a.cpp '#include <zlib.h>'
expect found data/tokenizer/a.cpp '#include <zstd.h>'
expect found data/documents/input_file.cpp '#include <archive.h>'
expect found tests/data/a.cpp '#include <archive_entry.h>'
expect found tests/tensor/a.cpp '#include <cuda_runtime.h>'
expect clean parallel/group/a.cpp '#include <mpi.h>'
expect clean parallel/mpi/a.cpp '#include <mpi.h>'
expect clean parallel/nccl/a.cpp '#include <nccl.h>'
expect clean tensor/cuda/a.cu '#include <cudnn.h>'
expect clean tensor/cpu/a.cpp '#include <cblas-openblas.h>'
expect clean launch/job/a.cpp '#include <omp.h>'
expect clean launch/config/a.cpp '#include <yaml-cpp/yaml.h>'
expect clean launch/commands/a.cpp '#include <boost/program_options.hpp>'
expect clean data/tokenizer/a.cpp '#include <pcre2.h>'
expect clean data/documents/a.cpp '#include <zstd.h>'
expect clean data/documents/archive.cpp '#include <archive_entry.h>'
expect clean tests/a.cpp '#include <gtest/gtest.h>'
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

# Too long.
lines() { seq -f '// Line %g.' "$1"; }
rm -rf "${root:?}"/*
mkdir -p "$root/tests"
for name in a.h a.py a.sh; do
  lines 350 >"$root/tests/$name"
done
"$check" "$root" >/dev/null || failed "350 lines were found too long"
for name in a.h a.py a.sh; do
  lines 351 >"$root/tests/$name"
done
[ "$("$check" "$root" | grep -c ':351: is longer')" -eq 3 ] || failed "351 lines were not found too long"

# The rules themselves must not allow a cycle.
sed 's|allow("tensor", "")|allow("tensor", "tensor/cpu")|' "$check" >"$root/check.sh"
lines 1 >"$root/tests/a.h"
rm "$root/tests/a.py" "$root/tests/a.sh"
output=$(bash "$root/check.sh" "$root") && output="clean: $output"
if [[ $output != *"tensor/ is allowed tensor/cpu/"* || $output == clean:* ]]; then
  failed "a cycle among the rules was not found: $output"
fi

finish
