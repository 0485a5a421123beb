# Bash completion of redspine: its commands, and the options of each, as their --help tells them.

# The first words of the lines of a help text that begin a row of a table.
_redspine_listed() {
  "$@" --help 2>/dev/null | sed -nE 's/^  ([a-z-]+) .*/\1/p'
}

_redspine() {
  local program=${COMP_WORDS[0]} current=${COMP_WORDS[COMP_CWORD]} words
  case $COMP_CWORD:${COMP_WORDS[1]} in
    1:*) words=$(_redspine_listed "$program") ;;
    2:checkpoint) words=$(_redspine_listed "$program" checkpoint) ;;
    *)
      [[ $current == -* ]] || return # a file, or what only the user knows
      words=$("$program" "${COMP_WORDS[1]}" --help 2>/dev/null | grep -oE -e '--[a-z][a-z-]*' | sort -u)
      ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}

complete -o default -F _redspine redspine
