# Sourced by the get_ and create_ scripts: options, downloads, and a folder to work in. Not to be run.
# shellcheck shell=bash disable=SC2034,SC2154

script=${0##*/}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tools=$root/build/tools
installed=$root/../../bin
[ ! -x "$installed/crema" ] || tools=$installed

die() { echo "$script: $*" >&2; exit 1; }

# The comment that opens the script.
show_help() { sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0"; exit 0; }

unknown_option() { die "unknown option $1 (usage: $(sed -n "s/^#   \($script .*\)/\1/p" "$0"))"; }

# DEFAULT_OUT OPTION...; sets out and from, or mirrors if --from is an address, which has no folders; and part if the script has set
# it to the existing parts.
parse_get() {
  local choices=" ${part-} "
  out=$1 from= flat= part=
  shift
  while [ $# -gt 0 ]; do
    case $1 in
      -h|--help) show_help ;;
      --from)
        from=${2:-}
        case $from in
          http://*|https://*|ftp://*) mirrors=("${from%/}") from= flat=1 ;;
          *) [ -d "$from" ] || die "--from needs a folder or an address, got '$from'" ;;
        esac
        shift 2 ;;
      --part)
        [ "$choices" != "  " ] || unknown_option "$1"
        part=${2:-}
        [[ -n $part && $choices == *" $part "* ]] || die "--part is one of:$choices, got '$part'"
        shift 2 ;;
      -*) unknown_option "$1" ;;
      *) out=$1; shift ;;
    esac
  done
}

# DEFAULT_DATA OPTION...; sets data, out and force, and name, or size and encoded, if the script has set name or size. default_out:
# the default of out, if not the data's folder.
parse_create() {
  local folders=() default=$1
  force= encoded=
  shift
  while [ $# -gt 0 ]; do
    case $1 in
      -h|--help) show_help ;;
      --name)
        [ -n "${name-}" ] || unknown_option "$1"
        name=${2:-}
        [[ $name =~ ^[A-Za-z0-9_-]+$ ]] || die "--name needs a plain name, got '$name'"
        shift 2 ;;
      --size)
        [ -n "${size-}" ] || unknown_option "$1"
        size=${2:-}
        [[ $size =~ ^[1-9][0-9]{0,3}$ ]] || die "--size needs a number of pixels, got '$size'"
        shift 2 ;;
      --encoded) [ -n "${size-}" ] || unknown_option "$1"; encoded=1; shift ;;
      --force) force=1; shift ;;
      -*) unknown_option "$1" ;;
      *) folders+=("$1"); shift ;;
    esac
  done
  [ ${#folders[@]} -le 2 ] || die "too many folders: ${folders[*]}"
  data=${folders[0]:-$default}
  out=${folders[1]:-${default_out:-$data}}
}

# FOLDER [NAME]: whether the files of $sums in it, or the one, are right.
check() { (cd "$1" 2>/dev/null && grep " ${2:-.*}\$" <<<"$sums" | sha256sum --status -c - 2>/dev/null); }

# FILE KIND:SUM: whether it has the checksum, of which SUM may be the beginning.
has_sum() {
  local found
  found=$("${2%%:*}sum" <"$1") || return 1
  [[ $found == "${2#*:}"* ]]
}

# ADDRESS FILE: continues at the end of FILE. Sets http, the server's answer, and reason if it
# fails.
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

# ADDRESS FILE WRONG NOTE RIGHT [ARGUMENT...]: downloads FILE until `RIGHT FILE ARGUMENT...` accepts it. It retries as long as
# data arrive, and keeps them for a later call. Returns 1, with the reason in $reason, if it fails: WRONG describes a wrong
# file, which is removed. NOTE is logged about the file.
download() {
  local address=$1 file=$2 wrong=$3 note=$4 before had restarted= code
  shift 4
  local right=("$1" "$file" "${@:2}")
  if [ -e "$file" ] && "${right[@]}"; then return; fi
  mkdir -p -- "$(dirname "$file")"
  had=
  [ ! -s "$file" ] || had=1
  while :; do
    before=0
    [ ! -e "$file" ] || before=$(stat -c %s -- "$file")
    if [ "$before" -eq 0 ]; then echo "downloading $address$note"; else echo "going on with $address at byte $before"; fi
    code=0
    go_on "$address" "$file" || code=$?
    if [ "$code" -eq 0 ]; then
      ! "${right[@]}" || return 0
      rm -f -- "$file"
      # The existing part may belong to another file.
      if [ -z "$had" ] || [ -n "$restarted" ]; then
        reason="$address gave $wrong; nothing was kept"
        return 1
      fi
      restarted=1
    elif [ -e "$file" ] && [ "$(stat -c %s -- "$file")" -gt "$before" ]; then
      continue
    elif [ "$before" -gt 0 ] && [ -z "$restarted" ] && [[ $http == 200 || $http == 416 ]]; then
      # The server sends whole files only, or has no more bytes than the part: that is not from its file.
      restarted=1
      rm -f -- "$file"
    else
      [ -s "$file" ] || rm -f -- "$file"
      reason="$address: ${reason%.}"
      return 1
    fi
  done
}

# NAME WRONG NOTE RIGHT [ARGUMENT...]: downloads $out/NAME.part from the first of $mirrors whose copy is right. A mirror may have
# folders, which are part of NAME.
fetch() {
  local mirror name=$1 base=${1##*/} reason= reasons=()
  shift
  [ -z "$flat" ] || name=$base
  for mirror in "${mirrors[@]}"; do
    if download "$mirror/$name" "$out/$base.part" "$@"; then return; fi
    reasons+=("$reason")
    echo "$reason" >&2
  done
  [ ${#reasons[@]} -eq 1 ] || reason="$reason; the others failed too"
  die "no $base: $reason. The same command goes on; --from takes another address, or a folder with the file"
}

# NAME KIND:SUM [NOTE]: sets $got to the file with the checksum, of $from or of a mirror. If $ours is set, it is a download, and is
# removed after use.
get_packed() {
  local name=$1 sum=$2
  got=$from/${name##*/} ours=
  if [ -n "$from" ]; then
    [ -f "$got" ] || die "$from does not hold ${name##*/}"
    has_sum "$got" "$sum" || die "$got is not the published file (its ${sum%%:*} differs)"
  else
    fetch "$name" "a file with a wrong checksum" "${3:-}" has_sum "$sum"
    got=$out/${name##*/}.part ours=1
  fi
}

# FILE...: of $work: writes $work/SHA256SUMS of them. recorded: whether the files that $out/SHA256SUMS names are as they were.
record() { (cd "$work" && sha256sum -- "$@" >SHA256SUMS); }
recorded() { (cd "$out" 2>/dev/null && sha256sum --status -c SHA256SUMS 2>/dev/null); }

# NAME KIND:SUM NOTE UNPACK PROOF: `UNPACK FILE FOLDER` unpacks the file from get_packed into $out. $out/ARCHIVES records it,
# because hashing many gigabytes again takes long; PROOF is a file that must also exist.
get_unpacked() {
  local name=${1##*/} sum=$2
  if [ -e "$out/$5" ] && grep -qxF "$sum  $name" "$out/ARCHIVES" 2>/dev/null; then
    echo "$out: $name is there already, unpacked"
    return
  fi
  get_packed "$1" "$sum" "$3"
  echo "unpacking $name"
  mkdir "$work/unpacked"
  "$4" "$got" "$work/unpacked" || die "$got cannot be unpacked; nothing of it was kept but the archive"
  [ -e "$work/unpacked/$5" ] || die "$got has no $5; is it another archive?"
  cp -alf -- "$work/unpacked/." "$out/" 2>/dev/null || cp -af -- "$work/unpacked/." "$out/" ||
    die "$name cannot be moved to $out"
  rm -rf -- "$work/unpacked"
  echo "$sum  $name" >>"$out/ARCHIVES"
  [ -z "$ours" ] || rm -f -- "$got"
}

# RESULT...: none may be there yet, unless with --force.
refuse_existing() {
  local result
  for result in "$@"; do
    [ -n "$force" ] || [ ! -e "$out/$result" ] || die "$out/$result exists; --force replaces it"
  done
}

need_tools() {  # TOOL...
  local tool
  for tool in "$@"; do
    [ -x "$tools/$tool" ] || die "$tools/$tool is not built yet: cmake -B build && cmake --build build"
  done
}

# Makes $work, inside $out: results are moved at the end, so that a failure keeps the old ones.
make_work() {
  mkdir -p -- "$out" || exit 1
  work=$(mktemp -d "$out/.${script%.sh}.XXXXXX") || exit 1
  trap 'rm -rf -- "$work"' EXIT
  trap 'exit 130' INT TERM
}

# RESULT...: from $work to $out.
move_results() {
  local result
  mkdir "$work/old"
  for result in "$@"; do
    [ ! -e "$out/$result" ] || mv -- "$out/$result" "$work/old/"
    mv -- "$work/$result" "$out/$result"
  done
  echo "$out: $*"
}

# NAME TITLE FILE...: databases and mean image of a CIFAR with its files in $data.
create_cifar() {
  local name=$1 title=$2 file
  shift 2
  need_tools convert_cifar_data compute_image_mean
  for file in "$@"; do
    [ -f "$data/$file" ] || die "$data/$file is missing (data_scripts/get_$name.sh gets $title)"
  done
  local results=("${name}_train_lmdb" "${name}_test_lmdb" mean.binaryproto)
  refuse_existing "${results[@]}"
  make_work
  echo "making $out/${name}_train_lmdb and ${name}_test_lmdb"
  "$tools/convert_cifar_data" "$data" "$work" lmdb || die "convert_cifar_data failed; nothing was changed in $out"
  echo "making $out/mean.binaryproto"
  "$tools/compute_image_mean" -backend=lmdb "$work/${name}_train_lmdb" "$work/mean.binaryproto" ||
    die "compute_image_mean failed; nothing was changed in $out"
  move_results "${results[@]}"
}
