#!/usr/bin/env bash
# check_kernels.sh BUILD-FOLDER: in a portable build, can instructions of AVX-512 run on a processor
# without it? Only one object may hold any, and the one symbol that others can reach in it is the
# function that is called once the processor was asked.
set -euo pipefail
export LC_ALL=C
kernels=$1/tensor/kernels_avx512.o
fail() {
  echo "FAILED: $*" >&2
  exit 1
}
[ -f "$kernels" ] || fail "no $kernels: is $1 a build with REDSPINE_PORTABLE=ON?"

# What only AVX-512 has: registers of 512 bits, masks, and 256 or 128 bits of registers 16 to 31.
avx512='%zmm|%k[0-7]|%[xy]mm(1[6-9]|2[0-9]|3[01])'
count() { objdump --disassemble --no-show-raw-insn "$1" | grep -cE "$avx512" || true; }

[ "$(count "$kernels")" -gt 1000 ] || fail "the kernels for AVX-512 use hardly any of it"
symbols=$(nm --defined-only --extern-only --demangle "$kernels" | cut -d' ' -f3-)
[ "$symbols" = "redspine::avx512::make_kernels()" ] || fail "$kernels gives others: $symbols"

mapfile -t others < <(find "$1" -name '*.o' ! -path "$kernels" ! -path '*/redspine_kernels_avx512.dir/*')
[ ${#others[@]} -gt 50 ] || fail "only ${#others[@]} objects in $1"
for object in "${others[@]}"; do
  [ "$(count "$object")" -eq 0 ] || fail "$object has instructions of AVX-512"
done
echo "${#others[@]} objects without AVX-512, and one with, of one symbol"
