#!/usr/bin/env bash
# install_print_test.sh SOURCE-FOLDER: `install.sh --print` lists what is missing and changes nothing.
# dpkg-query, apt-get, tee and sudo are stand-ins, found first, so that nothing real can be changed.
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for program in apt-get tee sudo; do
  printf '#!/bin/sh\necho "$0 $*" >>"%s/called"\n' "$scratch" >"$scratch/$program"
done
# Every package is installed but patchelf.
cat >"$scratch/dpkg-query" <<'SCRIPT'
#!/bin/sh
for package; do
  case $package in -* | patchelf) ;; *) printf '%s:installed ' "$package" ;; esac
done
SCRIPT
chmod +x "$scratch"/*
fail() {
  echo "FAILED: $*" >&2
  exit 1
}

printed=$(PATH=$scratch:$PATH "$1/launch/install.sh" --print build bundle | grep -v '^append ' || true)
[ "$printed" = "install patchelf" ] || fail "printed: $printed"
[ ! -e "$scratch/called" ] || fail "called: $(cat "$scratch/called")"

# Without --print it announces the same before it does it.
printed=$(PATH=$scratch:$PATH "$1/launch/install.sh" build bundle | grep -v '^Appending ' || true)
[ "$printed" = "Installing patchelf" ] || fail "announced: $printed"
grep -q 'apt-get .*install .*patchelf' "$scratch/called" || fail "patchelf was not installed"
