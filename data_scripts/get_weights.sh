#!/usr/bin/env bash
# Gets trained weights for a net of models/ as a .caffemodel: those of Caffe as they are, those of torchvision converted.
#
#   get_weights.sh NAME [OUT_DIR] [--from FILE_FOLDER_OR_ADDRESS] [--force]
#   get_weights.sh --list
#
# NAME: one of --list; weights.tsv says where each comes from, and its licence. OUT_DIR: where NAME.caffemodel goes (the model's
# folder). --from: take the file from there instead: a local file, a folder that holds it, or the address of another server's file
# or folder. --force: replace a NAME.caffemodel. A download that was interrupted goes on where it ended, also in a later run; what
# it brings is checked before it gets its name. Parts lie in data/weights, or in OUT_DIR.
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

right() {  # FILE: whether its checksum is that of the table
  local found
  found=$("${sum%%:*}sum" <"$1") || return 1
  [[ $found == "${sum#*:}"* ]]
}

# ADDRESS FILE: goes on where FILE ends. Sets http, the server's answer, and reason where it fails.
go_on() {
  local output
  http=
  if command -v curl >/dev/null; then
    local words=(-fL --connect-timeout 15 --speed-limit 1000 --speed-time 60 -C - -o "$2" -w '\n%{http_code}' "$1")
    if [ -t 2 ]; then
      reason="the download ended early"
      output=$(curl --progress-bar "${words[@]}") || { http=${output##*$'\n'}; return 1; }
    else
      output=$(curl -sS "${words[@]}" 2>&1) || { http=${output##*$'\n'} reason=${output%%$'\n'*}; return 1; }
    fi
  elif command -v wget >/dev/null; then
    output=$(wget -nv -c --tries=1 --timeout=30 -O "$2" "$1" 2>&1) || { reason=${output##*$'\n'}; return 1; }
  else
    reason="needs curl or wget"
    return 1
  fi
}

# ADDRESS: into $parts/$file. Tries again as long as something comes.
download_whole() {
  local part=$parts/$file.part before restarted= code
  mkdir -p -- "$parts"
  while [ ! -e "$part" ] || ! right "$part"; do
    before=0
    [ ! -e "$part" ] || before=$(stat -c %s -- "$part")
    if [ "$before" -eq 0 ]; then echo "downloading $1 ($size MiB)"; else echo "going on with $1 at byte $before"; fi
    code=0
    go_on "$1" "$part" || code=$?
    if [ "$code" -eq 0 ]; then
      right "$part" && break
      rm -f -- "$part"
      [ "$before" -gt 0 ] || die "$1 gave a file with a wrong checksum; nothing was kept. Another server: --from ADDRESS"
    elif [ -e "$part" ] && [ "$(stat -c %s -- "$part")" -gt "$before" ]; then
      continue
    elif [ "$before" -gt 0 ] && [ -z "$restarted" ] && [[ $http == 200 || $http == 416 ]]; then
      # The server sends whole files only, or has no more bytes than are here: these are none of its file's.
      restarted=1
      rm -f -- "$part"
    else
      [ -s "$part" ] || rm -f -- "$part"
      die "$1: ${reason%.}. The same command goes on; --from takes a local file or another server's address"
    fi
  done
  mv -f -- "$part" "$parts/$file"
}

# Sets $got to a file with the right checksum, and $ours where it is not somebody else's.
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
      right "$from" || die "$from is not $file (its ${sum%%:*} differs)"
      got=$from
      return ;;
  esac
  got=$parts/$file ours=1
  if [ ! -f "$got" ] || ! right "$got"; then download_whole "$address"; fi
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
