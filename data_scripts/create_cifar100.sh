#!/usr/bin/env bash
# Makes CIFAR-100's training and test databases (LMDB) and the mean image of the training set.
#
#   create_cifar100.sh [DATA_DIR] [OUT_DIR] [--force]
#
# DATA_DIR: train.bin and test.bin (data/cifar100 in this repository). OUT_DIR: where cifar100_train_lmdb, cifar100_test_lmdb and
# mean.binaryproto go (DATA_DIR). --force: replace results that exist. The labels are the 100 classes; of the 20 superclasses
# `convert_cifar_data -coarse` makes databases.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

parse_create "$root/data/cifar100" "$@"
need_tools convert_cifar_data compute_image_mean
for file in train.bin test.bin; do
  [ -f "$data/$file" ] || die "$data/$file is missing (data_scripts/get_cifar100.sh gets CIFAR-100)"
done
results=(cifar100_train_lmdb cifar100_test_lmdb mean.binaryproto)
refuse_existing "${results[@]}"

make_work
echo "making $out/cifar100_train_lmdb and cifar100_test_lmdb"
"$tools/convert_cifar_data" "$data" "$work" lmdb || die "convert_cifar_data failed; nothing was changed in $out"
echo "making $out/mean.binaryproto"
"$tools/compute_image_mean" -backend=lmdb "$work/cifar100_train_lmdb" "$work/mean.binaryproto" ||
  die "compute_image_mean failed; nothing was changed in $out"
move_results "${results[@]}"
