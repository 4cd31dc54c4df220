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
create_cifar cifar100 CIFAR-100 train.bin test.bin
