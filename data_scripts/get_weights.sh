#!/usr/bin/env bash
# Gets trained weights for a net of models/ as a .caffemodel: those of Caffe unchanged, those of torchvision converted.
#
#   get_weights.sh NAME [OUT_DIR] [--from FILE_FOLDER_OR_ADDRESS] [--force]
#   get_weights.sh --list
#
# NAME: one of --list; weights.tsv has the source and licence of each. OUT_DIR: where NAME.caffemodel goes (the model's folder).
# --from: take the file from there instead: a local file, a folder with it, or the address of another server's file or folder.
# --force: replace a NAME.caffemodel. An interrupted download resumes, also in a later run; the file is checked before it gets its
# name. Parts are in data/weights, or in OUT_DIR.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

table=$root/data_scripts/weights.tsv
rows() { grep -v '^#' "$table"; }

list() {
  rows | awk -F'\t' '
    BEGIN { printf "%-24s %-20s %6s  %6s  %s\n", "name", "model", "MiB", "top 1", "licence" }
    { printf "%-24s %-20s %6s  %4s %%  %s (%s)\n", $1, $2, $6, $7, $8, $9 }'
  exit 0
}

unknown_name() {  # NAME
  local plain known hint=
  plain=$(tr -cd '[:alnum:]' <<<"${1,,}")
  while read -r known; do
    [ "$(tr -cd '[:alnum:]' <<<"${known,,}")" != "$plain" ] || hint=" Did you mean $known?"
  done < <(rows | cut -f1)
  die "there are no weights \"$1\".$hint There are: $(rows | cut -f1 | paste -sd' ')"
}

name= out= from= force=
while [ $# -gt 0 ]; do
  case $1 in
    -h|--help) show_help ;;
    --list) list ;;
    --from) from=${2:-}; [ -n "$from" ] || die "--from needs a file, a folder or an address"; shift 2 ;;
    --force) force=1; shift ;;
    -*) unknown_option "$1" ;;
    *)
      if [ -z "$name" ]; then name=$1; elif [ -z "$out" ]; then out=$1; else die "too many arguments: $1"; fi
      shift ;;
  esac
done
[ -n "$name" ] || die "which weights? get_weights.sh NAME; get_weights.sh --list shows the names"
row=$(rows | awk -F'\t' -v name="$name" '$1 == name')
[ -n "$row" ] || unknown_name "$name"
IFS=$'\t' read -r _ folder settings address sum size _ licence source_page <<<"$row"
[ "$settings" != - ] || settings=
file=${address##*/}
model=$root/models/$folder
parts=${out:-$root/data/weights}
out=${out:-$model}
result=$out/$name.caffemodel

# Sets $got to a file with the right checksum, and $ours if we downloaded it.
get() {
  ours=
  case $from in
    http://*|https://*|ftp://*)
      [[ $from == */"$file" ]] || from=${from%/}/$file
      address=$from ;;
    '') ;;
    *)
      [ ! -d "$from" ] || from=${from%/}/$file
      [ -f "$from" ] || die "$from is not there"
      has_sum "$from" "$sum" || die "$from is not $file (its ${sum%%:*} differs)"
      got=$from
      return ;;
  esac
  got=$parts/$file ours=1
  if [ ! -f "$got" ] || ! has_sum "$got" "$sum"; then
    download "$address" "$got.part" "a file with a wrong checksum" " ($size MiB)" has_sum "$sum" ||
      die "${reason%.}. The same command goes on; --from takes a local file or another server's address"
    mv -f -- "$got.part" "$got"
  fi
}

place() {  # a .caffemodel
  local temporary=$result.part
  [ "$got" != "$result" ] || return 0
  if [ -n "$ours" ]; then mv -f -- "$got" "$temporary"; else cp -- "$got" "$temporary"; fi
  mv -f -- "$temporary" "$result"
}

words=()
for setting in $settings; do words+=(-set "$setting"); done
convert() {
  local command=("$tools/convert_weights" -model "$model/train_val.prototxt" "${words[@]}" -from "$got" -output "$result") log
  [ -x "$tools/convert_weights" ] || die "$got has the right checksum, but $tools/convert_weights is not built yet. Then: ${command[*]}"
  log=$("${command[@]}" 2>&1) || die "the conversion failed: $log"
  [ -z "$ours" ] || rm -f -- "$got"
}

if [ -e "$result" ] && [ -z "$force" ]; then
  echo "$result is there already; --force replaces it"
  exit 0
fi
mkdir -p -- "$out"
get
if [[ $file == *.caffemodel ]]; then place; else convert; fi
echo "$result"
echo "Licence: $licence ($source_page)"
echo "For example: $tools/classify -model $model/train_val.prototxt ${words[*]:+${words[*]} }-weights $result IMAGE"
