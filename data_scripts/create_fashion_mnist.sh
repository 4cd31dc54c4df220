#!/usr/bin/env bash
# Makes the training and test databases (LMDB) of Fashion-MNIST: create_mnist.sh with its folder and name.
#
#   create_fashion_mnist.sh [DATA_DIR] [OUT_DIR] [--name NAME] [--force]
#
# DATA_DIR: the IDX files (data/fashion_mnist in this repository). OUT_DIR: where NAME_train_lmdb and NAME_test_lmdb go
# (DATA_DIR). --name: fashion_mnist unless given. --force: replace databases that exist.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

name=fashion_mnist
parse_create "$root/data/fashion_mnist" "$@"
[ -f "$data/train-images-idx3-ubyte" ] || die "$data has no train-images-idx3-ubyte (get_fashion_mnist.sh gets it)"
exec bash "$root/data_scripts/create_mnist.sh" "$data" "$out" --name "$name" ${force:+--force}
