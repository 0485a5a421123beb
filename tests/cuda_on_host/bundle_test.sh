#!/usr/bin/env bash
# bundle_test.sh SOURCE-FOLDER BUILD-FOLDER: a bundle that was moved passes its own GPU check, with
# nothing of this machine's Open MPI at hand; and the check can fail.
# Skipped (exit code 77) where patchelf or the right to make namespaces is missing.
set -euo pipefail
source=$1 build=$2
skip() {
  echo "SKIPPED: $*"
  exit 77
}
command -v patchelf >/dev/null || skip "no patchelf here; ./launch/install.sh test installs it"
unshare --mount true || skip "hides Open MPI from the bundle, and this user may not mount: run it as root"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$source/launch/bundle.sh" "$scratch/made" "$build"
mv "$scratch/made" "$scratch/moved"

hidden="/usr/lib/x86_64-linux-gnu/openmpi /usr/lib/x86_64-linux-gnu/pmix2 /usr/share/openmpi"
without_open_mpi() {
  # shellcheck disable=SC2016  # for the inner shell
  unshare --mount --propagation private bash -c '
    for folder in $1; do mount -t tmpfs none "$folder"; done
    mount --bind /dev/null /usr/bin/orterun
    shift
    cd / && exec "$@"' bash "$hidden" "$@"
}
without_open_mpi "$scratch/moved/gpu_check.sh" --brief "$scratch/result"
grep -q '^losses, gpu_2x2 *within' "$scratch/result/table.txt"
grep -q '"used_bytes":[1-9]' "$scratch/result/gpt2_124m.json"

echo "=== Without a device"
if REDSPINE_ON_HOST_DEVICES=0 "$scratch/moved/gpu_check.sh" --brief "$scratch/none" \
  >"$scratch/none.log" 2>&1; then
  echo "the check passed without a device" >&2
  exit 1
fi
grep -q '^losses, gpu  *FAILED' "$scratch/none/table.txt"
