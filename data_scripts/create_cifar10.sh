#!/usr/bin/env bash
# Makes CIFAR-10's training and test databases (LMDB) and the mean image of the training set.
#
#   create_cifar10.sh [DATA_DIR] [OUT_DIR] [--force]
#
# DATA_DIR: the six .bin files (data/cifar10 in this repository). OUT_DIR: where cifar10_train_lmdb, cifar10_test_lmdb
# and mean.binaryproto go (DATA_DIR). --force: replace results that exist.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

parse_create "$root/data/cifar10" "$@"
need_tools convert_cifar_data compute_image_mean
for file in data_batch_{1..5}.bin test_batch.bin; do
  [ -f "$data/$file" ] || die "$data/$file is missing (data_scripts/get_cifar10.sh gets CIFAR-10)"
done
results=(cifar10_train_lmdb cifar10_test_lmdb mean.binaryproto)
refuse_existing "${results[@]}"

make_work
echo "making $out/cifar10_train_lmdb and cifar10_test_lmdb"
"$tools/convert_cifar_data" "$data" "$work" lmdb || die "convert_cifar_data failed; nothing was changed in $out"
echo "making $out/mean.binaryproto"
"$tools/compute_image_mean" -backend=lmdb "$work/cifar10_train_lmdb" "$work/mean.binaryproto" ||
  die "compute_image_mean failed; nothing was changed in $out"
move_results "${results[@]}"
