#!/usr/bin/env bash
# install.sh [--print] [GROUP ...]: install the Debian packages that are missing, and add localhost to
# /etc/hosts where it has none. Each is announced before it is done; --print lists both, a line each,
# and does neither.
#   build    what compiles and runs Redspine (the default, with corpus)
#   corpus   the text that the quick start trains on
#   test     what the tests and the checks of .ci/run need on top, with bundle
#   bundle   what bundle.sh needs besides a build
#   package  what builds the Debian package, and what tries it in a clean Debian
#   fuzz     what builds the fuzzers
#   cuda     what brings the headers of cuDNN's frontend; CUDA itself comes from NVIDIA
#   reference  what the tests against other programs need on top, but for Python packages
# This is the one list of what Redspine needs from Debian 12. Asks for nothing and touches nothing
# when all is there, so the other scripts simply call it first.
set -euo pipefail

build=(
  ca-certificates git
  g++ cmake ninja-build
  openmpi-bin libopenmpi-dev
  libopenblas-openmp-dev
  libboost-program-options-dev libyaml-cpp-dev
  libfmt-dev nlohmann-json3-dev libxxhash-dev libpcre2-dev
  zlib1g-dev libzstd-dev libarchive-dev nettle-dev liblzma-dev libbz2-dev
)
corpus=(bible-kjv bible-kjv-text)
test=(
  libgtest-dev libgmock-dev libboost-context-dev
  clang clang-format clang-tidy libomp-dev ccache
  slurmctld slurmd slurm-client munge
  iproute2 procps
)
bundle=(patchelf)
package=(dpkg-dev debootstrap)
fuzz=(clang libclang-rt-14-dev libomp-dev)
cuda=(python3-pip)
reference=(python3-venv python3-wheel python3-numpy python3-torch python3-yaml jargon-text linux-doc-6.1)

print=no
if [ "${1-}" = --print ]; then
  print=yes
  shift
fi
[ $# -gt 0 ] || set -- build corpus
wanted=()
for group in "$@"; do
  case "$group" in
    build) wanted+=("${build[@]}") ;;
    corpus) wanted+=("${corpus[@]}") ;;
    test) wanted+=("${test[@]}" "${bundle[@]}") ;;
    bundle) wanted+=("${bundle[@]}") ;;
    package) wanted+=("${package[@]}") ;;
    fuzz) wanted+=("${fuzz[@]}") ;;
    cuda) wanted+=("${cuda[@]}") ;;
    reference) wanted+=("${reference[@]}") ;;
    *) echo "install.sh: unknown group '$group'; legal are: build corpus test bundle package fuzz cuda reference" >&2; exit 2 ;;
  esac
done

if ! command -v dpkg-query >/dev/null; then
  echo "install.sh: this is no Debian; please install the like of: ${wanted[*]}" >&2
  exit 1
fi

installed=" $(dpkg-query -W -f='${Package}:${db:Status-Status} ' "${wanted[@]}" 2>/dev/null || true) "
missing=()
for package in "${wanted[@]}"; do
  [[ $installed == *" $package:installed "* ]] || missing+=("$package")
done
# Open MPI looks for localhost some twenty times per start. A minimal system has it in no file: each
# look asks a name server then, and one lost answer takes five seconds.
has_localhost=yes
grep -qsw localhost /etc/hosts || has_localhost=no
if [ $print = yes ]; then
  [ ${#missing[@]} -eq 0 ] || printf 'install %s\n' "${missing[@]}"
  [ $has_localhost = yes ] || echo "append '127.0.0.1 localhost' to /etc/hosts"
  exit 0
fi
[ ${#missing[@]} -gt 0 ] || [ $has_localhost = no ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    [ $has_localhost = yes ] ||
      echo "install.sh: /etc/hosts has no localhost; please have '127.0.0.1 localhost' added" >&2
    [ ${#missing[@]} -gt 0 ] || exit 0
    echo "install.sh: neither root nor sudo; please have installed: ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

if [ $has_localhost = no ]; then
  echo "Appending '127.0.0.1 localhost' to /etc/hosts"
  echo "127.0.0.1 localhost" | "${as_root[@]}" tee -a /etc/hosts >/dev/null
fi
[ ${#missing[@]} -gt 0 ] || exit 0

echo "Installing ${missing[*]}"
# RUNLEVEL=1 keeps init scripts from starting a daemon (munge, Slurm) that only the tests use.
apt_get() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
    apt-get -qq -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=120 "$@" </dev/null
}
apt_get update
apt_get install -y --no-install-recommends "${missing[@]}" >/dev/null
