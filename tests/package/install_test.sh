#!/usr/bin/env bash
# install_test.sh BUILD-FOLDER: what `cmake --install` made works from where it was moved to.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cmake --install "$1" --prefix "$scratch/made" >/dev/null
mv "$scratch/made" "$scratch/moved"
if grep -rlF "$scratch/made" "$scratch/moved"; then
  echo "FAILED: these files name the prefix that they were installed to" >&2
  exit 1
fi
# OpenBLAS is opened by `redspine bench`, not linked.
if readelf --dynamic "$scratch/moved/bin/redspine" | grep NEEDED | grep -i blas; then
  echo "FAILED: the program is linked with BLAS" >&2
  exit 1
fi
"$here/trial.sh" "$scratch/moved"
