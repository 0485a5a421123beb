#!/usr/bin/env bash
# check_docs.sh ROOT: does the documentation under ROOT lead where it says?
# Three rules: every header begins with a comment that says what it is for; every link of a Markdown
# page to a file or a heading leads somewhere; every file of the repository that a page names exists.
# Prints FILE:LINE: REASON for each violation; exit code 0 clean, 1 violations, 2 nothing to check.
set -euo pipefail
shopt -s nullglob
cd "$1"

violations=0
report() {
  echo "$1"
  violations=$((violations + 1))
}

folders=()
for folder in tensor parallel model data trainer launch tests configs docs cmake; do
  [ -d "$folder" ] && folders+=("$folder")
done
pages=(*.md docs/*.md)
if [ ${#folders[@]} -eq 0 ] || [ ${#pages[@]} -eq 0 ]; then
  echo "check_docs.sh: no folders or no pages under $PWD" >&2
  exit 2
fi

# --- Headers. Those that stand in for CUDA's have CUDA's names and purpose. ------------------------
while read -r line; do
  report "$line"
done < <(find "${folders[@]}" -name '*.h' -not -path 'tests/cuda_on_host/include/*' -exec awk '
  FNR == 1 && (!/^\/\/ / || length($0) < 25) {
    print FILENAME ":1: does not begin with a comment that says what it is for"
  }
  FNR > 1 { nextfile }' {} +)

# --- Links. A heading is linked to as GitHub spells it: in lower case, without punctuation. --------
headings_of() {
  awk '/^```/ { is_code = !is_code } !is_code && sub(/^#+ +/, "")' "$1" | tr '[:upper:]' '[:lower:]' |
    sed -E 's/[^a-z0-9 _-]//g; s/ /-/g'
}

while IFS=: read -r page line link; do
  target=${link#']('}
  target=${target%)}
  [[ $target =~ ^(https?|mailto): ]] && continue
  file=${target%%#*}
  if [ -n "$file" ]; then file=$(dirname "$page")/$file; else file=$page; fi
  if [ ! -e "$file" ]; then
    report "$page:$line: links to $target, which does not exist"
  elif [[ $target == *'#'* ]] && ! headings_of "$file" | grep -qxF -- "${target#*#}"; then
    report "$page:$line: links to $target, and there is no such heading"
  fi
done < <(grep -HnoE '\]\([^) ]+\)' "${pages[@]}" | sort -u)

# --- Names of files: in inline code, and in blocks of code, where data/ may be the reader's. -------
exists() {  # a file, a program by the name of its source, or a pattern that some file matches
  local matches=()
  [ -e "$1" ] && return 0
  matches=("$1".*)
  [ ${#matches[@]} -gt 0 ] && return 0
  [[ $1 == *[{*]* ]] || return 1
  local pattern names
  names=$(eval "printf '%s\n' $1")  # braces; the characters are those of the awk program below
  while read -r pattern; do
    [ -e "$pattern" ] || return 1
  done <<<"$names"
}

while IFS=: read -r page line name; do
  exists "$name" || report "$page:$line: names $name, which does not exist"
done < <(awk -v folders='tensor|parallel|model|trainer|launch|configs|docs|cmake|tests' '
  function check(text, first,    words, count, i, word) {
    count = split(text, words, /[^A-Za-z0-9_.\/{},*-]+/)
    for (i = 1; i <= count; i++) {
      word = words[i]
      sub(/^\.\//, "", word)
      sub(/[.,]+$/, "", word)
      if (word ~ "^(" first ")/" && word !~ /[A-Z][A-Z]/) print FILENAME ":" FNR ":" word
    }
  }
  FNR == 1 { is_code = 0 }
  /^```/ { is_code = !is_code; next }
  is_code { check($0, folders); next }
  {
    count = split($0, parts, "`")
    for (i = 2; i <= count; i += 2) check(parts[i], folders "|data")
  }' "${pages[@]}" | sort -u)

exit $((violations > 0))
