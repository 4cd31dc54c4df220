#!/usr/bin/env bash
# Makes a training database (LMDB) of CIFAR-10 with four pixels of the mean colour on each side of an image, for crops of
# 32 x 32 at random places.
#
#   create_cifar10_padded.sh [DATA_DIR] [OUT_DIR] [--force]
#
# DATA_DIR: the .bin files (data/cifar10 in this repository). OUT_DIR: where cifar10_train_padded_lmdb goes (DATA_DIR). --force:
# replace it if it exists.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

parse_create "$root/data/cifar10" "$@"
need_tools convert_imageset
for file in data_batch_{1..5}.bin; do
  [ -f "$data/$file" ] || die "$data/$file is missing (data_scripts/get_cifar10.sh gets CIFAR-10)"
done
results=(cifar10_train_padded_lmdb)
refuse_existing "${results[@]}"

make_work
echo "making $out/cifar10_train_padded_lmdb"
"$root/data_scripts/pad_cifar10.py" "$data" "$work/pictures" || die "pad_cifar10.py failed; nothing was changed in $out"
"$tools/convert_imageset" "$work/pictures/" "$work/pictures/list.txt" "$work/cifar10_train_padded_lmdb" ||
  die "convert_imageset failed; nothing was changed in $out"
move_results "${results[@]}"
