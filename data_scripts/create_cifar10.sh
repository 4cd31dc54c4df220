#!/usr/bin/env bash
# Makes CIFAR-10's training and test databases (LMDB) and the mean image of the training set.
#
#   create_cifar10.sh [DATA_DIR] [OUT_DIR] [--force]
#
# DATA_DIR: the six .bin files (data/cifar10 in this repository). OUT_DIR: where cifar10_train_lmdb, cifar10_test_lmdb
# and mean.binaryproto go (DATA_DIR). --force: replace results that exist.
set -euo pipefail

die() { echo "create_cifar10.sh: $*" >&2; exit 1; }

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tools=$root/build/tools
force=
folders=()
while [ $# -gt 0 ]; do
  case $1 in
    -h|--help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    --force) force=1; shift ;;
    -*) die "unknown option $1 (usage: create_cifar10.sh [DATA_DIR] [OUT_DIR] [--force])" ;;
    *) folders+=("$1"); shift ;;
  esac
done
[ ${#folders[@]} -le 2 ] || die "too many folders: ${folders[*]}"
data=${folders[0]:-$root/data/cifar10}
out=${folders[1]:-$data}

for tool in convert_cifar_data compute_image_mean; do
  [ -x "$tools/$tool" ] || die "$tools/$tool is not built yet: cmake -B build && cmake --build build"
done
for file in data_batch_{1..5}.bin test_batch.bin; do
  [ -f "$data/$file" ] || die "$data/$file is missing (data_scripts/get_cifar10.sh gets CIFAR-10)"
done
results=(cifar10_train_lmdb cifar10_test_lmdb mean.binaryproto)
for result in "${results[@]}"; do
  [ -n "$force" ] || [ ! -e "$out/$result" ] || die "$out/$result exists; --force replaces it"
done

# Built aside and moved at the end: a failure leaves what was there.
mkdir -p -- "$out" || exit 1
work=$(mktemp -d "$out/.create_cifar10.XXXXXX") || exit 1
trap 'rm -rf -- "$work"' EXIT
trap 'exit 130' INT TERM
echo "making $out/cifar10_train_lmdb and cifar10_test_lmdb"
"$tools/convert_cifar_data" "$data" "$work" lmdb || die "convert_cifar_data failed; nothing was changed in $out"
echo "making $out/mean.binaryproto"
"$tools/compute_image_mean" -backend=lmdb "$work/cifar10_train_lmdb" "$work/mean.binaryproto" ||
  die "compute_image_mean failed; nothing was changed in $out"
mkdir "$work/old"
for result in "${results[@]}"; do
  [ ! -e "$out/$result" ] || mv -- "$out/$result" "$work/old/"
  mv -- "$work/$result" "$out/$result"
done
echo "$out: ${results[*]}"
