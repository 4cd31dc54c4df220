# Sourced by the get_ and create_ scripts: options, downloads, and a folder to work in. Not to be run.
# shellcheck shell=bash disable=SC2154

script=${0##*/}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tools=$root/build/tools
installed=$root/../../bin
[ ! -x "$installed/crema" ] || tools=$installed

die() { echo "$script: $*" >&2; exit 1; }

# The comment that opens the script.
show_help() { sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0"; exit 0; }

unknown_option() { die "unknown option $1 (usage: $(sed -n "s/^#   \($script .*\)/\1/p" "$0"))"; }

# DEFAULT_OUT OPTION...; sets out and from.
parse_get() {
  out=$1 from=
  shift
  while [ $# -gt 0 ]; do
    case $1 in
      -h|--help) show_help ;;
      --from) from=${2:-}; [ -d "$from" ] || die "--from needs a folder, got '$from'"; shift 2 ;;
      -*) unknown_option "$1" ;;
      *) out=$1; shift ;;
    esac
  done
}

# DEFAULT_DATA OPTION...; sets data, out and force, and name where the script has given it a value.
parse_create() {
  local folders=() default=$1
  force=
  shift
  while [ $# -gt 0 ]; do
    case $1 in
      -h|--help) show_help ;;
      --name)
        [ -n "${name-}" ] || unknown_option "$1"
        name=${2:-}
        [[ $name =~ ^[A-Za-z0-9_-]+$ ]] || die "--name needs a plain name, got '$name'"
        shift 2 ;;
      --force) force=1; shift ;;
      -*) unknown_option "$1" ;;
      *) folders+=("$1"); shift ;;
    esac
  done
  [ ${#folders[@]} -le 2 ] || die "too many folders: ${folders[*]}"
  data=${folders[0]:-$default}
  out=${folders[1]:-$data}
}

# FOLDER [NAME]: whether the files of $sums in it, or the one, are right.
check() { (cd "$1" 2>/dev/null && grep " ${2:-.*}\$" <<<"$sums" | sha256sum --status -c - 2>/dev/null); }

download() {  # URL FILE; the reason of a failure goes to standard output
  if command -v curl >/dev/null; then
    curl -fsSL --retry 2 --connect-timeout 15 --speed-limit 1000 --speed-time 60 -o "$2" "$1" 2>&1
  elif command -v wget >/dev/null; then
    wget -nv --tries=2 --timeout=30 -O "$2" "$1" 2>&1
  else
    echo "needs curl or wget"
    return 1
  fi
}

# FILE ACCEPT WRONG [NOTE]: gets a file into $work from the first of $mirrors whose copy the function ACCEPT takes. WRONG
# says what a mirror gave whose copy it does not take, NOTE something about the file.
fetch() {
  local mirror reason=
  for mirror in "${mirrors[@]}"; do
    echo "downloading $mirror/$1${4:-}"
    if ! reason=$(download "$mirror/$1" "$work/$1"); then
      continue
    elif "$2" "$work/$1"; then
      return
    fi
    reason="$mirror gave $3"
  done
  die "no mirror gave $1 (${reason##*$'\n'}). Get it by hand and use --from FOLDER"
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

# Makes $work, inside $out: what is built there is moved at the end, so that a failure leaves what was there.
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
