# planted.sh: sourced by the test of a check, which sets $check before and defines
#   plant FILE LINE ...   to write FILE, with these lines in it, and whatever a tree needs, in $root
#   line                  the number of the first of them; not set: any
# The test ends with finish.

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
failures=0

failed() {
  echo "FAILED: $*" >&2
  failures=$((failures + 1))
}

# expect found|clean FILE LINE ...: a tree with this is judged so, and what is found is told once.
expect() {
  local code=0 output
  rm -rf "${root:?}"/*
  plant "${@:2}"
  output=$("$check" "$root" 2>&1) || code=$?
  case "$1:$code:$output" in
    found:1:*$'\n'*) failed "reported more than once: $output" ;;
    found:1:"$2":${line:-[1-9]*}": "* | clean:0:) ;;
    *) failed "expected $1 for $2 with: ${*:3}; exit code $code, output: $output" ;;
  esac
}

# A check that looked at nothing must not pass. The exit code tells how all of it went.
finish() {
  local code=0
  rm -rf "${root:?}"/*
  "$check" "$root" >/dev/null 2>&1 || code=$?
  [ $code -eq 2 ] || failed "an empty tree gave exit code $code instead of 2"
  exit $((failures > 0))
}
