#!/usr/bin/env bash
# The check of system files finds each kind of violation where one is planted, and nothing else.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
check=$here/check_system_files.sh
source "$here/planted.sh"

plant() {
  mkdir -p "$root/tests"
  printf '%s\n' "${@:2}" >"$root/$1"
}
script=tests/a_test.sh

expect found $script 'echo "127.0.0.1 h0" >>/etc/hosts'
expect found $script 'echo 0 > "/proc/sys/kernel/yama/ptrace_scope"'
expect found $script 'echo h0 | sudo tee -a /etc/hosts'
expect found $script "sed -i 's/a/b/' /etc/hosts"
expect found $script 'cp hosts /etc/hosts'
expect found $script 'mv -f "$scratch/hosts" /etc/hosts'
expect found $script 'rm -rf /var/lib/slurm'
expect found $script 'mkdir -p /usr/local/share/redspine'
expect found $script 'sysctl -w vm.overcommit_memory=1'
expect found $script 'useradd munge'
expect found $script 'mount --bind hosts /etc/hosts'
expect found $script "open('/etc/hosts', 'a')"

expect clean $script 'cp /etc/hosts hosts'
expect clean $script '{ cat /etc/hosts; echo h0; } >"$scratch/hosts"'
expect clean $script '# echo h0 >>/etc/hosts'
expect clean $script 'for f in /usr/bin/*; do echo "$f" >/dev/null; done'
expect clean $script 'rm -rf "$scratch/usr"'
expect clean $script 'exec unshare --mount "$0"' 'mount --bind hosts /etc/hosts'
expect clean $script 'source "$here/sandbox.sh"' 'mount --bind hosts /etc/hosts'

finish
