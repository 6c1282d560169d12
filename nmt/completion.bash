# In bash a word breaks at "=" (COMP_WORDBREAKS), so that only what follows it is replaced; 3.2 of macOS has no compopt.
_nmt() {
  local typed=${COMP_LINE:0:COMP_POINT} words word key value head reply
  read -ra words <<<"$typed"
  word=${typed##*[[:space:]]}
  [ -n "$word" ] || words+=("")
  COMPREPLY=()
  if [ ${#words[@]} -lt 3 ]; then
    COMPREPLY=($(compgen -W 'PROGRAMS --help --version' -- "$word"))
  elif [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W '--help --cfg --config-dir --multirun' -- "$word"))
  elif [[ $word == *=* ]]; then
    key=${word%%=*} value=${word#*=}
    key=${key#+} head=${value%"${value##*[,[]}"} value=${value##*[,[]}
    [[ $COMP_WORDBREAKS == *=* ]] || head=${word%%=*}=$head
    if _nmt_is_path "$key"; then
      compopt -o filenames 2>/dev/null
      while IFS= read -r reply; do COMPREPLY+=("$head$reply"); done < <(compgen -f -- "$value")
    else
      COMPREPLY=($(compgen -P "$head" -W "$(_nmt_values "$key")" -- "$value"))
    fi
  else
    compopt -o nospace 2>/dev/null
    COMPREPLY=($(compgen -W "$(_nmt_keys "${words[1]}")" -- "$word"))
  fi
}
complete -F _nmt nmt
