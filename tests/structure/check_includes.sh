#!/usr/bin/env bash
# check_includes.sh ROOT: are the sources under ROOT layered as docs/decisions.md says?
# Four rules, each stated once below: project includes point one way, no folders at any depth include
# each other in a circle, every third party stays in its folder, and no source chooses a backend by
# preprocessor (the build chooses files instead).
# Prints FILE:LINE: REASON for each violation, or the folders of a circle; exit code 0 clean, 1
# violations, 2 nothing to check.
set -euo pipefail
cd "$1"

folders=()
for folder in tensor parallel model data trainer launch tests; do
  [ -d "$folder" ] && folders+=("$folder")
done
sources=()
if [ ${#folders[@]} -gt 0 ]; then
  mapfile -t sources < <(find "${folders[@]}" -type f \
    \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) | sort)
fi
if [ ${#sources[@]} -eq 0 ]; then
  echo "check_includes.sh: no sources under $PWD" >&2
  exit 2
fi

code=0
awk '
BEGIN {
  # What a folder may include: folders, or single headers.
  allowed["tensor"] = "tensor"
  allowed["parallel"] = "parallel tensor"
  allowed["model"] = "model parallel tensor"
  allowed["data"] = "data tensor/enum_words.h tensor/error.h tensor/philox.h tensor/printable.h"
  allowed["trainer"] = "trainer model parallel tensor data"
  allowed["launch"] = "launch trainer model parallel tensor data"
  allowed["tests"] = "tests launch trainer model parallel tensor data"

  # Where a third party may be included: a pattern of its headers and the folders. The stand-in of
  # CUDA and NCCL is made of BLAS, MPI and Boost.
  stand_in = " tests/cuda_on_host/"
  header[++num_third_parties] = "^(mpi|nccl)[a-z_-]*\\.h"; home[num_third_parties] = "parallel/" stand_in
  header[++num_third_parties] = "^(cuda|cublas|cudnn|nvrtc|cub/|thrust/)"; home[num_third_parties] = "tensor/cuda/" stand_in
  header[++num_third_parties] = "^(cblas|lapacke|openblas)"; home[num_third_parties] = "tensor/cpu/" stand_in
  header[++num_third_parties] = "^(boost|yaml-cpp)/"; home[num_third_parties] = "launch/" stand_in
  header[++num_third_parties] = "^archive(_entry)?\\.h"; home[num_third_parties] = "data/documents/archive.cpp"
  header[++num_third_parties] = "^(gtest|gmock)/"; home[num_third_parties] = "tests/"

  # A word of a condition that begins like this names a backend.
  backend = " (cuda|cudnn|cublas|nvcc|nccl|gpu|mpi|ompi|mpich|blas|openblas)"
}

function report(reason) {
  printf "%s:%d: %s\n", FILENAME, FNR, reason
  violations++
}

function may_include(folder, target,    i, count, entries, entry) {
  count = split(allowed[folder], entries, " ")
  for (i = 1; i <= count; i++) {
    entry = entries[i]
    if (target == entry || index(target, entry "/") == 1) return 1
  }
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

/^[ \t]*#[ \t]*include/ {
  target = $0
  sub(/^[ \t]*#[ \t]*include[ \t]*/, "", target)
  quoted = substr(target, 1, 1) == "\""
  sub(/^["<]/, "", target)
  sub(/[">].*/, "", target)

  folder = FILENAME
  sub(/\/.*/, "", folder)
  first = target
  sub(/\/.*/, "", first)

  if (index(target, "/") && first in allowed) {
    if (!may_include(folder, target))
      report("includes " target "; " folder "/ may include only: " allowed[folder])
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
' "${sources[@]}" || code=1

# Each pair of folders of which one includes the other, in an order if there is one. Tests are left
# out: nothing includes them.
circle=$(awk '
  /^[ \t]*#[ \t]*include[ \t]*"[^"]*\// && FILENAME !~ /^tests\// {
    split($0, parts, "\"")
    from = FILENAME
    to = parts[2]
    sub(/\/[^\/]*$/, "", from)
    sub(/\/[^\/]*$/, "", to)
    if (from != to) print from, to
  }' "${sources[@]}" | sort -u | { tsort 2>&1 >/dev/null || true; })
if [ -n "$circle" ]; then
  echo "folders that include each other in a circle:"
  sed -n 's/^tsort: \([a-z]\)/  \1/p' <<<"$circle"
  code=1
fi
exit $code
