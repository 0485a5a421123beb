#!/usr/bin/env bash
# The check of system files finds each kind of violation where one is planted, and nothing else.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/tests"

# expect found|clean LINE ...: a script of these lines.
expect() {
  local want=$1 code=0
  shift
  printf '%s\n' "$@" >"$scratch/tests/a_test.sh"
  "$here/check_system_files.sh" "$scratch" >"$scratch/report" || code=$?
  if { [ "$want" = found ] && ! grep -q '^tests/a_test.sh:[1-9]' "$scratch/report"; } ||
    { [ "$want" = clean ] && [ $code -ne 0 ]; }; then
    echo "FAILED: expected $want for: $*" >&2
    cat "$scratch/report" >&2
    exit 1
  fi
}

expect found 'echo "127.0.0.1 h0" >>/etc/hosts'
expect found 'echo 0 > "/proc/sys/kernel/yama/ptrace_scope"'
expect found 'echo h0 | sudo tee -a /etc/hosts'
expect found "sed -i 's/a/b/' /etc/hosts"
expect found 'cp hosts /etc/hosts'
expect found 'mv -f "$scratch/hosts" /etc/hosts'
expect found 'rm -rf /var/lib/slurm'
expect found 'mkdir -p /usr/local/share/redspine'
expect found 'sysctl -w vm.overcommit_memory=1'
expect found 'useradd munge'
expect found 'mount --bind hosts /etc/hosts'
expect found "open('/etc/hosts', 'a')"

expect clean 'cp /etc/hosts hosts'
expect clean '{ cat /etc/hosts; echo h0; } >"$scratch/hosts"'
expect clean '# echo h0 >>/etc/hosts'
expect clean 'for f in /usr/bin/*; do echo "$f" >/dev/null; done'
expect clean 'rm -rf "$scratch/usr"'
expect clean 'exec unshare --mount "$0"' 'mount --bind hosts /etc/hosts'
expect clean 'source "$here/sandbox.sh"' 'mount --bind hosts /etc/hosts'

if "$here/check_system_files.sh" "$scratch/none" 2>/dev/null; then
  echo "FAILED: a check of nothing passes" >&2
  exit 1
fi
