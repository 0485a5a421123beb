#!/usr/bin/env bash
# bundle_refusals_test.sh SOURCE-FOLDER: bundle.sh takes no folder but its own, and makes no bundle in
# which a library is missing.
set -euo pipefail
bundle=$1/launch/bundle.sh
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0

# expect EXIT-CODE TEXT ARGUMENT ...
expect() {
  local code=0
  "$bundle" "${@:3}" >"$scratch/output" 2>&1 || code=$?
  if [ $code -ne "$1" ] || ! grep -qF -- "$2" "$scratch/output"; then
    echo "FAILED: expected code $1 and '$2'; code $code and"
    cat "$scratch/output"
    failures=$((failures + 1))
  fi
}

cd "$scratch"
mkdir build launch
touch launch/gpu_check.sh build/bundle_programs.txt
expect 2 "launch is there and is no bundle" launch build
[ -e launch/gpu_check.sh ] || {
  echo "FAILED: a folder that is no bundle is gone"
  failures=$((failures + 1))
}

echo 'int gone() { return 0; }' | gcc -x c -shared -o libgone.so -
echo 'int gone(); int main() { return gone(); }' | gcc -x c -o build/program - -L. -lgone
rm libgone.so
echo "$scratch/build/program" >build/bundle_programs.txt
expect 1 "libgone.so => not found" made build
# What it began is its own, so that a second try may take its place.
expect 1 "libgone.so => not found" made build
exit $((failures > 0))
