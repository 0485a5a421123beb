#!/usr/bin/env bash
# check_includes.sh ROOT: are the sources under ROOT layered as docs/decisions.md says?
# Four rules, each stated once below: a folder includes only the folders named for it, among which
# there is no cycle; every third party stays in its folders; no source chooses a backend by
# preprocessor (the build chooses files instead); and no file is longer than 350 lines.
# Prints FILE:LINE: REASON for each violation; exit code 0 clean, 1 violations, 2 nothing to check.
set -euo pipefail
cd "$1"

folders=()
for folder in tensor parallel model data trainer launch tests; do
  [ -d "$folder" ] && folders+=("$folder")
done
sources=()
if [ ${#folders[@]} -gt 0 ]; then
  mapfile -t sources < <(find "${folders[@]}" -type f \( -name '*.h' -o -name '*.cpp' \
    -o -name '*.cu' -o -name '*.cuh' -o -name '*.py' -o -name '*.sh' \) | sort)
fi
if [ ${#sources[@]} -eq 0 ]; then
  echo "check_includes.sh: no sources under $PWD" >&2
  exit 2
fi

awk '
BEGIN {
  # What the sources of a folder may include beside their own headers: folders, without those in
  # them, or single headers. Only what stands above may be named, so that there is no cycle.
  allow("tensor", "")
  allow("tensor/cpu", "tensor")
  allow("tensor/cuda", "tensor")

  allow("parallel", "tensor")
  allow("parallel/group", "parallel tensor")
  allow("parallel/shared_memory", "parallel parallel/group tensor")
  allow("parallel/mpi", "parallel parallel/group parallel/shared_memory tensor")
  allow("parallel/nccl", "parallel parallel/group tensor tensor/cuda")
  allow("parallel/mesh", "parallel parallel/group parallel/mpi parallel/nccl tensor")

  allow("model", "parallel parallel/group parallel/mesh tensor")
  allow("model/transformers", "model parallel tensor")

  leaf = " tensor/enum_words.h tensor/error.h tensor/philox.h tensor/printable.h"
  allow("data/io", leaf)
  allow("data/tokenizer", "data/io" leaf)
  allow("data/files", "data/io data/tokenizer" leaf)
  allow("data/documents", "data/files data/io" leaf)
  allow("data", "data/documents data/files data/io data/tokenizer" leaf)

  calculating = " model parallel parallel/group parallel/mesh tensor"
  allow("trainer/digest", calculating)
  allow("trainer/optimizer", "trainer/digest" calculating)
  allow("trainer/checkpoint/format", "data/files data/io model model/transformers tensor")
  allow("trainer/checkpoint", \
        "trainer/checkpoint/format trainer/digest data/files data/io model/transformers" calculating)
  allow("trainer", "trainer/checkpoint trainer/checkpoint/format trainer/digest trainer/optimizer data data/io" \
        calculating)

  allow("trainer/plan", \
        "trainer trainer/checkpoint trainer/digest trainer/optimizer data model/transformers" calculating)

  training = " trainer trainer/plan trainer/checkpoint trainer/checkpoint/format trainer/digest trainer/optimizer"
  reading = " data data/documents data/files data/io data/tokenizer"
  allow("launch/job", "data/io parallel/group tensor")
  allow("launch/config", "launch/job data/tokenizer tensor" training)
  allow("launch/run", "launch/config launch/job" training reading calculating)
  allow("launch/bench", "parallel/shared_memory" training calculating)
  allow("launch/commands", \
        "launch/bench launch/config launch/job launch/run model/transformers" training reading calculating)
  allow("launch", "launch/commands launch/config launch/job data/io tensor")

  # Tests may include all of the product; of tests, beside their own folder, only:
  allow("tests/support", "")
  allow("tests/golden", "tests/support")
  allow("tests/trainer", "tests/golden tests/support")
  other_tests = "tests/support"

  # Where a third party may be included: a pattern of its headers and the folders. The stand-in of
  # CUDA and NCCL is made of BLAS, MPI and Boost.
  stand_in = " tests/cuda_on_host/"
  confine("^mpi[a-z_-]*\\.h", "parallel/group/ parallel/mpi/ parallel/nccl/ parallel/shared_memory/" stand_in)
  confine("^nccl[a-z_-]*\\.h", "parallel/nccl/" stand_in)
  confine("^(cuda|cublas|cudnn|nvrtc|cub/|thrust/)", "tensor/cuda/" stand_in)
  confine("^(cblas|lapacke|openblas)", "tensor/cpu/" stand_in)
  confine("^omp\\.h", "tensor/cpu/ launch/job/" stand_in)
  confine("^yaml-cpp/", "launch/config/")
  confine("^boost/", "launch/commands/ launch/run/" stand_in)
  confine("^pcre2\\.h", "data/tokenizer/")
  confine("^(zlib|zstd|bzlib|lzma)\\.h", "data/documents/ tests/data/documents/")
  confine("^archive(_entry)?\\.h", "data/documents/archive.cpp")
  confine("^(gtest|gmock)/", "tests/")

  # A word of a condition that begins like this names a backend.
  backend = " (cuda|cudnn|cublas|nvcc|nccl|gpu|mpi|ompi|mpich|blas|openblas)"
}

# Folders are allowed what was allowed anything before, so the order of these calls proves that there
# is no cycle.
function allow(folder, targets,    i, count, entries) {
  count = split(targets, entries, " ")
  for (i = 1; i <= count; i++)
    if (entries[i] !~ /\.h$/ && !(entries[i] in allowed)) {
      print "check_includes.sh: " folder "/ is allowed " entries[i] "/, which does not stand above it"
      violations++
    }
  allowed[folder] = folder " " targets
  top[first_of(folder)] = 1
}

function confine(pattern, folders) {
  header[++num_third_parties] = pattern
  home[num_third_parties] = folders
}

function first_of(path) {
  sub(/\/.*/, "", path)
  return path
}

function folder_of(path) {
  sub(/\/[^\/]*$/, "", path)
  return path
}

function report(reason) {
  printf "%s:%d: %s\n", FILENAME, FNR, reason
  violations++
}

# The folder that has a rule: tests/X for all within.
function ruled(folder) {
  return match(folder, /^tests\/[^\/]*/) ? substr(folder, 1, RLENGTH) : folder
}

function allowed_for(folder) {
  if (folder in allowed) return allowed[folder]
  return folder " " (folder ~ /^tests/ ? other_tests : "")
}

function may_include(folder, target,    i, count, entries) {
  if (folder ~ /^tests/ && target !~ /^tests\//) return 1
  count = split(allowed_for(folder), entries, " ")
  for (i = 1; i <= count; i++)
    if (target == entries[i] || ruled(folder_of(target)) == entries[i]) return 1
  return 0
}

# Is the file in one of these folders?
function is_at_home(folders,    i, count, entries) {
  count = split(folders, entries, " ")
  for (i = 1; i <= count; i++)
    if (index(FILENAME, entries[i]) == 1) return 1
  return 0
}

function is_third_party(target,    i) {
  for (i = 1; i <= num_third_parties; i++)
    if (target ~ header[i]) return 1
  return 0
}

FNR == 351 { report("is longer than 350 lines; split it where its purposes part") }

FILENAME ~ /\.(py|sh)$/ { next }

/^[ \t]*#[ \t]*include/ {
  target = $0
  sub(/^[ \t]*#[ \t]*include[ \t]*/, "", target)
  quoted = substr(target, 1, 1) == "\""
  sub(/^["<]/, "", target)
  sub(/[">].*/, "", target)
  folder = ruled(folder_of(FILENAME))

  if (index(target, "/") && first_of(target) in top) {
    if (!may_include(folder, target))
      report("includes " target "; " folder "/ may include only: " allowed_for(folder))
  } else if (quoted && !is_third_party(target)) {
    report("includes \"" target "\"; write \"folder/file.h\" from the root of the repository")
  }
  for (i = 1; i <= num_third_parties; i++)
    if (target ~ header[i] && !is_at_home(home[i]))
      report("includes " target "; it is confined to " home[i])
}

/^[ \t]*#[ \t]*(if|ifdef|ifndef|elif)/ {
  condition = " " tolower($0)
  is_guard = condition ~ /#[ \t]*ifndef[ \t]+[a-z0-9_]+_h_?[ \t]*$/
  gsub(/[^a-z0-9]+/, " ", condition)
  if (!is_guard && condition ~ backend)
    report("chooses a backend by preprocessor; the build chooses files instead")
}

END { exit violations > 0 }
' "${sources[@]}"
