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
create_cifar cifar10 CIFAR-10 data_batch_{1..5}.bin test_batch.bin
