#!/usr/bin/env bash
# clean_root.sh ROOT BUILD-FOLDER: in a clean Debian 12 under the folder ROOT, the Debian package of a
# portable build, and then its installed prefix, are tried and removed, and nothing remains of them.
# As root, by hand: makes ROOT by debootstrap where it is not there, and needs Debian's mirror. What is
# mounted for the trial is mounted for it alone.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
if [ $# -ne 2 ] || [ "$(id -u)" -ne 0 ]; then
  echo "clean_root.sh: as root, with ROOT and BUILD-FOLDER" >&2
  exit 2
fi
[ -n "${REDSPINE_CLEAN_ROOT:-}" ] ||
  REDSPINE_CLEAN_ROOT=1 exec unshare --mount --pid --fork --kill-child "$0" "$@"
"$here/../../launch/install.sh" package
root=$(readlink -m "$1") build=$(readlink -f "$2")
package=$(ls "$build"/redspine_*_amd64.deb)

step() { printf '\n=== %s (%d s so far)\n' "$1" "$SECONDS"; }
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 "$@"; }
apt() { inside DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 "$@" >/dev/null; }

if [ ! -x "$root/usr/bin/apt-get" ]; then
  step "A clean Debian 12"
  debootstrap --variant=minbase bookworm "$root" >/dev/null
  echo "127.0.0.1 localhost" >"$root/etc/hosts"
fi
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/dev/shm"
mount -t tmpfs tmpfs "$root/tmp"
mkdir "$root/tmp/given"
cp "$here/trial.sh" "$package" "$root/tmp/given/"

# all_files: every path but those of the mounts, and of what dpkg and apt keep for themselves.
all_files() {
  inside find / -xdev \( -path /proc -o -path /dev -o -path /tmp -o -path /var/lib/dpkg \
    -o -path /var/lib/apt -o -path /var/cache -o -path /var/log \) -prune -o -print | sort
}
compare() {
  if ! diff <(echo "$before") <(all_files); then
    echo "FAILED: $1 left files behind, or took some with it" >&2
    exit 1
  fi
}

step "What the package depends on"
dpkg-deb --info "$package" control
apt update
apt satisfy --yes --no-install-recommends "$(dpkg-deb --field "$package" Depends)"
before=$(all_files)

step "The package"
inside dpkg --install "/tmp/given/$(basename "$package")"
inside /tmp/given/trial.sh /usr
step "Its removal"
inside dpkg --purge redspine
compare "the package"

step "The prefix, moved"
cmake --install "$build" --prefix "$root/tmp/made" >/dev/null
mkdir "$root/opt/moved"
mv "$root"/tmp/made "$root/opt/moved/redspine"
inside /tmp/given/trial.sh /opt/moved/redspine
rm -r "$root/opt/moved"
compare "the prefix"
step "PASSED"
