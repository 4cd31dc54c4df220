#!/usr/bin/env bash
# Gets MNIST (60000 + 10000 handwritten digits, 28 x 28 grey) as its four IDX files.
#
#   get_mnist.sh [OUT_DIR] [--from FOLDER]
#
# OUT_DIR: where the files go (data/mnist in this repository). --from: take them from a local folder, packed (.gz)
# or not, instead of downloading. Each file is checked against its SHA-256; none appears before all four are right.
set -euo pipefail

# The original server often refuses, so the mirrors that the large frameworks use come first.
mirrors=(
  https://ossci-datasets.s3.amazonaws.com/mnist
  https://storage.googleapis.com/cvdf-datasets/mnist
  http://yann.lecun.com/exdb/mnist
)
# Of the unpacked files: a mirror may pack them anew.
sums='ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db  train-images-idx3-ubyte
65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5  train-labels-idx1-ubyte
0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7  t10k-images-idx3-ubyte
ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2  t10k-labels-idx1-ubyte'

die() { echo "get_mnist.sh: $*" >&2; exit 1; }

out=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/data/mnist
from=
while [ $# -gt 0 ]; do
  case $1 in
    -h|--help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    --from) from=${2:-}; [ -d "$from" ] || die "--from needs a folder, got '$from'"; shift 2 ;;
    -*) die "unknown option $1 (usage: get_mnist.sh [OUT_DIR] [--from FOLDER])" ;;
    *) out=$1; shift ;;
  esac
done

check() { (cd "$1" && grep " $2\$" <<<"$sums" | sha256sum --status -c - 2>/dev/null); }  # FOLDER NAME

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

fetch_one() {  # NAME
  local name=$1 mirror reason=
  for mirror in "${mirrors[@]}"; do
    echo "downloading $mirror/$name.gz"
    if ! reason=$(download "$mirror/$name.gz" "$work/$name.gz"); then
      continue
    elif gzip -dc "$work/$name.gz" >"$work/$name" 2>/dev/null && check "$work" "$name"; then
      return
    fi
    reason="$mirror gave a file with a wrong checksum"
  done
  die "no mirror gave $name.gz (${reason##*$'\n'}). Get it by hand and use --from FOLDER"
}

copy_one() {  # NAME
  local name=$1
  if [ -f "$from/$name" ]; then
    cp -- "$from/$name" "$work/$name" || die "cannot copy $from/$name"
  elif [ -f "$from/$name.gz" ]; then
    gzip -dc -- "$from/$name.gz" >"$work/$name" 2>/dev/null || die "$from/$name.gz is damaged"
  else
    die "$from holds neither $name nor $name.gz"
  fi
  check "$work" "$name" || die "$name in $from is not MNIST's file (its SHA-256 differs)"
}

mkdir -p -- "$out" || exit 1
names=$(cut -d' ' -f3 <<<"$sums")
missing=
for name in $names; do check "$out" "$name" || missing=1; done
if [ -z "$missing" ]; then
  echo "$out: MNIST is there already, all checksums match"
  exit 0
fi

work=$(mktemp -d "$out/.get_mnist.XXXXXX") || exit 1
trap 'rm -rf -- "$work"' EXIT
trap 'exit 130' INT TERM
for name in $names; do
  if [ -n "$from" ]; then copy_one "$name"; else fetch_one "$name"; fi
done
for name in $names; do mv -f -- "$work/$name" "$out/$name"; done
echo "$out: MNIST, all checksums match"
