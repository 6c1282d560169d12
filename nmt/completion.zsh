_nmt() {
  local word=$words[CURRENT]
  if (( CURRENT == 2 )); then
    compadd -- PROGRAMS --help --version
  elif [[ $word == -* ]]; then
    compadd -- --help --cfg --config-dir --multirun
  elif [[ $word == *=* ]]; then
    local key=${${word%%=*}#+}
    compset -P 1 '*='
    compset -P '*[,\[]'
    if _nmt_is_path $key; then _files; else compadd -- $(_nmt_values $key); fi
  else
    compadd -S '' -- $(_nmt_keys $words[2])
  fi
}
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
compdef _nmt nmt
