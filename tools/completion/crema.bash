# Completion for bash: verbs, flags, values, layer types, fields and files. What a program knows comes from itself, so it never gets
# out of date.
_crema_files() {  # WORD PATTERN: files of this form, and folders on the way to them
  local path
  compopt -o filenames 2>/dev/null
  while IFS= read -r path; do
    # shellcheck disable=SC2053  # a pattern
    [[ ! -d $path && $path != $2 ]] || COMPREPLY+=("$path")
  done < <(compgen -f -- "$1")
}

_crema_verbs() {  # PROGRAM
  "$1" help 2>/dev/null | sed -n 's/^  \([a-z][a-z_]*\)  *.*/\1/p'
}

# SOLVER: the net that it trains, by a path as it says, or from the solver's folder.
_crema_net() {
  local net
  net=$(sed -n 's/^ *\(train_\)\{0,1\}net: *"\([^"]*\)".*/\2/p' "$1" 2>/dev/null | head -n 1)
  [[ -e $net ]] || net=$(dirname "$1")/$net
  echo "$net"
}

# PROGRAM PATH MODEL: what -set takes behind PATH: fields as NAME=, blocks as NAME., and layers as layer[NAME].
_crema_settings() {
  if [[ $2 == *'[' ]]; then
    sed -n 's/.*layer *{.*name: *"\([^"]*\)".*/\1]./p; s/^  name: *"\([^"]*\)".*/\1]./p' "$3" 2>/dev/null
    return
  fi
  "$1" fields ${2:+"${2%.}"} 2>/dev/null | sed -n '
    s/^  layer (repeated LayerParameter)$/layer[/p; t
    s/^  \([A-Za-z0-9_]*\) (\(repeated \)\{0,1\}[A-Z][A-Za-z0-9]*)$/\1./p; t
    s/^  \([A-Za-z0-9_]*\) (.*/\1=/p'
}

_crema() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} program=${COMP_WORDS[0]##*/} verb='' i
  # COMP_WORDBREAKS splits --flag=value.
  if [[ $word == '=' ]]; then word=''; elif [[ $before == '=' ]]; then before=${COMP_WORDS[COMP_CWORD - 2]}; fi
  program=${program%.bin}
  if [[ $program == crema || $program == caffe ]]; then
    for ((i = 1; i < COMP_CWORD; ++i)); do
      if [[ ${COMP_WORDS[i]} != [-=]* && ${COMP_WORDS[i - 1]} != [-=]* ]]; then verb=${COMP_WORDS[i]}; break; fi
    done
  else
    verb=$program
  fi
  local crema=${COMP_WORDS[0]} words='' files='' model=''
  for ((i = 1; i < COMP_CWORD; ++i)); do
    [[ ${COMP_WORDS[i]} != *-model ]] || model=${COMP_WORDS[i + 1]}
    [[ ${COMP_WORDS[i]} != *-solver || -n $model ]] || model=$(_crema_net "${COMP_WORDS[i + 1]}")
  done
  COMPREPLY=()
  if [[ $before == -* ]]; then
    case ${before##*-} in
      solver | model) files='*.prototxt' ;;
      weights) files='*.@(caffemodel|caffemodel.h5)' ;;
      from) files='*.safetensors' ;;
      names) files='*.names' ;;
      snapshot) files='*.@(solverstate|solverstate.h5)' ;;
      label_map_file | labels | mean | flagfile | output | output_weights | log_dir | run | times) files='*' ;;
      precision) words='fp32 tf32 bf16 fp16' ;;
      phase) words='TRAIN TEST' ;;
      tune) words='off quick full' ;;
      weights_mode) words='strict match' ;;
      sigint_effect | sighup_effect | sigterm_effect) words='snapshot stop snapshot_stop none' ;;
      backend) words='lmdb leveldb' ;;
      recompute) words='auto all' ;;
      batch_mode) words='per_gpu total' ;;
      to) words='onnx caffe' ;;
      dialect | target) words='bvlc ssd nvcaffe opencv4 ncnn ascend sophgo' ;;
      wire) words='fp32 bf16 fp16' ;;
      off) words='fuse format recompute memory overlap resident capture' ;;
      set | sweep)
        compopt -o nospace 2>/dev/null
        local path=''
        if [[ $word == *'['* && $word != *']'* ]]; then path=${word%%[*}[; elif [[ $word == *.* ]]; then path=${word%.*}.; fi
        mapfile -t COMPREPLY < <(compgen -P "$path" -W "$(_crema_settings "$crema" "$path" "$model")" -- "${word#"$path"}")
        return
        ;;
    esac
  fi
  if [[ -n $words ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
  elif [[ -n $files ]]; then
    _crema_files "$word" "$files"
  elif [[ -z $verb ]]; then
    mapfile -t COMPREPLY < <(compgen -W "help version $(_crema_verbs "$crema")" -- "$word")
  elif [[ $word == -* ]]; then
    local dashes=-
    [[ $word != --* ]] || dashes=--
    mapfile -t COMPREPLY < <(compgen -W "$("$crema" -help "$verb" 2>/dev/null | sed -n "s/^  -\([a-z_]*\) (.*/$dashes\1/p")" -- "$word")
  elif [[ $verb == help ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_crema_verbs "$crema")" -- "$word")
  elif [[ $verb == layers ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$("$crema" layers 2>/dev/null | sed -n 's/^\([A-Za-z0-9_]\+\)  .*/\1/p')" -- "$word")
  elif [[ $verb == db && $before == db ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$("$crema" db 2>/dev/null | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p')" -- "$word")
  else
    _crema_files "$word" '*'
  fi
}

# `test` and `time` are words of the shell.
complete -F _crema crema caffe train summary deploy classify layers report device_query extract_features compute_image_mean \
  convert_mnist_data convert_mnist_siamese_data convert_cifar_data convert_imageset convert_annoset create_label_map get_image_size convert_csv convert_weights \
  upgrade_net_proto_text upgrade_net_proto_binary upgrade_solver_proto_text
