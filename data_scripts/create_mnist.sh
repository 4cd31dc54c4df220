#!/usr/bin/env bash
# Makes the training and test databases (LMDB) from MNIST's IDX files, or from a set in the same format.
#
#   create_mnist.sh [DATA_DIR] [OUT_DIR] [--name NAME] [--force]
#
# DATA_DIR: the IDX files (data/mnist in this repository). OUT_DIR: where NAME_train_lmdb and NAME_test_lmdb go
# (DATA_DIR). --name: mnist unless given. --force: replace databases that exist.
# For the rendered digits: create_mnist.sh data/digits data/digits --name digits
set -euo pipefail

die() { echo "create_mnist.sh: $*" >&2; exit 1; }

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
convert=$root/build/tools/convert_mnist_data
name=mnist force=
folders=()
while [ $# -gt 0 ]; do
  case $1 in
    -h|--help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    --name) name=${2:-}; [[ $name =~ ^[A-Za-z0-9_-]+$ ]] || die "--name needs a plain name, got '$name'"; shift 2 ;;
    --force) force=1; shift ;;
    -*) die "unknown option $1 (usage: create_mnist.sh [DATA_DIR] [OUT_DIR] [--name NAME] [--force])" ;;
    *) folders+=("$1"); shift ;;
  esac
done
[ ${#folders[@]} -le 2 ] || die "too many folders: ${folders[*]}"
data=${folders[0]:-$root/data/mnist}
out=${folders[1]:-$data}

[ -x "$convert" ] || die "$convert is not built yet: cmake -B build && cmake --build build"
for file in {train,t10k}-images-idx3-ubyte {train,t10k}-labels-idx1-ubyte; do
  [ -f "$data/$file" ] || die "$data/$file is missing (get_mnist.sh gets MNIST, make_digits.py renders a set)"
done
results=("${name}_train_lmdb" "${name}_test_lmdb")
for result in "${results[@]}"; do
  [ -n "$force" ] || [ ! -e "$out/$result" ] || die "$out/$result exists; --force replaces it"
done

# Built aside and moved at the end: a failure leaves what was there.
mkdir -p -- "$out" || exit 1
work=$(mktemp -d "$out/.create_mnist.XXXXXX") || exit 1
trap 'rm -rf -- "$work"' EXIT
trap 'exit 130' INT TERM
for part in train test; do
  file=$part
  [ "$part" = train ] || file=t10k
  echo "making $out/${name}_${part}_lmdb"
  "$convert" -backend=lmdb "$data/$file-images-idx3-ubyte" "$data/$file-labels-idx1-ubyte" \
    "$work/${name}_${part}_lmdb" ||
    die "convert_mnist_data failed; nothing was changed in $out"
done
mkdir "$work/old"
for result in "${results[@]}"; do
  [ ! -e "$out/$result" ] || mv -- "$out/$result" "$work/old/"
  mv -- "$work/$result" "$out/$result"
done
echo "$out: ${results[*]}"
