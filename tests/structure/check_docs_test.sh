#!/usr/bin/env bash
# The check of the documentation must find each kind of violation where it is planted, and nothing
# in a clean tree.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
check=$here/check_docs.sh
source "$here/planted.sh"

# Below the first line of FILE, whichever that is, in a tree with a page, a header and a program.
plant() {
  mkdir -p "$root/docs" "$root/tensor" "$root/data"
  echo '// Tensors, which own their memory.' | tee "$root/tensor/tensor.h" >"$root/tensor/program.cpp"
  printf '# A page: its title\n\n## Formats of `files`\n' | tee "$root/README.md" >"$root/docs/page.md"
  printf '# A first line.\n%b\n' "$2" >"$root/$1"
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

finish
