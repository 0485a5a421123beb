#!/usr/bin/env bash
# check_system_files.sh ROOT: does a test under ROOT/tests edit a file of the system, or mount over one?
# A line that writes below /etc, /usr, /var, /proc/sys, /sys, /boot or /root, or changes users,
# packages or kernel settings, is a violation. So is a mount in a script that makes no mount
# namespace of its own (unshare, or sandbox.sh, which does).
# Prints FILE:LINE: REASON for each; exit code 0 clean, 1 violations, 2 nothing to check.
set -euo pipefail
cd "$1"

mapfile -t scripts < <(find tests -type f \( -name '*.sh' -o -name '*.py' -o -name '*.cpp' \) | sort)
if [ ${#scripts[@]} -eq 0 ]; then
  echo "check_system_files.sh: no sources under $PWD/tests" >&2
  exit 2
fi
# These two have the violations as text.
own='^tests/structure/check_system_files(_test)?\.sh$'

violations=0
for script in "${scripts[@]}"; do
  [[ ! $script =~ $own ]] || continue
  may_mount=0
  ! grep -qE '^[^#]*unshare( --mount|\(CLONE_NEWNS)|^source .*/(sandbox|slurm)\.sh' "$script" || may_mount=1
  # Sourced by the scripts that entered the sandbox, and the sandbox itself.
  [[ ! $script =~ ^tests/cluster/(sandbox|slurm)\.sh$ ]] || may_mount=1
  awk -v may_mount=$may_mount '
    function report(reason) {
      printf "%s:%d: %s\n", FILENAME, FNR, reason
      violations++
    }
    BEGIN { system_path = "[\"\047]?/(etc|usr|var|proc/sys|sys|boot|root)(/|[ \"\047]|$)" }
    /^[ \t]*(#|\/\/)/ { next }
    $0 ~ ">[ ]*" system_path { report("writes to a file of the system") }
    $0 ~ "(^|[ ;|&(])(tee|rm|mkdir|touch|ln|chmod|chown|truncate|install)( -[^ ]+)*([ ]+[^ |;&]+)*[ ]+" system_path {
      report("edits a file of the system") }
    $0 ~ "(^|[ ;|&(])(cp|mv)( -[^ ]+)*([ ]+[^ |;&]+)+[ ]+" system_path {
      report("copies over a file of the system") }
    $0 ~ "(^|[ ;|&(])sed [^|;&]*(-i|--in-place)[^|;&]*" system_path { report("edits a file of the system") }
    $0 ~ "open\\([\"\047]/(etc|usr|var|proc/sys|sys|boot|root)/[^,)]*,[ ]*[\"\047][wa+x]" {
      report("writes to a file of the system") }
    /(^|[ ;|&(])(sysctl +-w|useradd|usermod|groupadd|update-alternatives|ldconfig|systemctl)([ ;]|$)/ {
      report("changes settings of the system") }
    /(^|[ ;|&(])mount / && !may_mount { report("mounts without a mount namespace of its own") }
    END { exit violations > 0 }
  ' "$script" || violations=1
done
exit $violations
