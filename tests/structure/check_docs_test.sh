#!/usr/bin/env bash
# The check of the documentation must find each kind of violation where it is planted, and nothing
# in a clean tree.
set -euo pipefail
check=$(dirname "$(readlink -f "$0")")/check_docs.sh
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
failures=0

# expect found|clean FILE LINE: a tree whose FILE has LINE below its first one is judged so.
expect() {
  rm -rf "${root:?}"/*
  mkdir -p "$root/docs" "$root/tensor" "$root/data"
  echo '// Tensors, which own their memory.' | tee "$root/tensor/tensor.h" >"$root/tensor/program.cpp"
  printf '# A page: its title\n\n## Formats of `files`\n' | tee "$root/README.md" >"$root/docs/page.md"
  printf '# A first line.\n%b\n' "$3" >"$root/$2"
  local code=0 output
  output=$("$check" "$root" 2>&1) || code=$?
  case "$1:$code:$output" in
    found:1:*$'\n'*) echo "FAILED: reported more than once: $output" ;;
    found:1:"$2:"*": "* | clean:0:) return ;;
    *) echo "FAILED: expected $1 for $2 with: $3"; echo "  exit code $code, output: $output" ;;
  esac
  failures=$((failures + 1))
}

# What a header is for.
expect found tensor/view.h '// The first line of this header is no comment in C++.'
expect clean tensor/view.cpp '// A source needs no such line.'

# Links, from the folder of the page.
expect found docs/links.md '[gone](gone.md)'
expect found docs/links.md '[gone](README.md)'
expect found docs/links.md '[no heading](page.md#format-of-files)'
expect found README.md '[no heading](#installing)'
expect clean docs/links.md '[page](page.md), [up](../README.md), [web](https://example.org/gone.md)'
expect clean docs/links.md '[heading](page.md#formats-of-files), [title](../README.md#a-page-its-title)'
expect clean README.md '[own heading](#a-first-line)'

# Files of the repository, in code.
expect found docs/names.md 'see `tensor/gone.h`'
expect found docs/names.md 'see `tensor/{tensor,gone}.h`'
expect found docs/names.md 'see `tensor/*.cu`'
expect found docs/names.md 'run `./tensor/gone.sh --short`'
expect found docs/names.md '```\nrun ./tensor/gone.sh\n```'
expect clean docs/names.md 'see `tensor/tensor.h`, `tensor/{tensor.h,program.cpp}`, `tensor/*.h` and `tensor/`'
expect clean docs/names.md 'run `./tensor/program --short`'
expect clean docs/names.md 'see `tensor/NAME.h`, or tensor/gone.h in prose'
expect clean docs/names.md '```\nredspine tokenize --output data/news\n```'

# A check that looked at nothing must not pass.
rm -rf "${root:?}"/*
code=0
"$check" "$root" >/dev/null 2>&1 || code=$?
if [ $code -ne 2 ]; then
  echo "FAILED: an empty tree gave exit code $code instead of 2"
  failures=$((failures + 1))
fi
exit $((failures > 0))
