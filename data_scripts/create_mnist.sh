#!/usr/bin/env bash
# Makes the training and test databases (LMDB) from MNIST's IDX files, or from a set in the same format.
#
#   create_mnist.sh [DATA_DIR] [OUT_DIR] [--name NAME] [--force]
#
# DATA_DIR: the IDX files (data/mnist in this repository). OUT_DIR: where NAME_train_lmdb and NAME_test_lmdb go
# (DATA_DIR). --name: mnist unless given; the databases of mnist, digits and fashion_mnist have the names of their classes.
# --force: replace databases that exist.
# For the rendered digits: create_mnist.sh data/digits data/digits --name digits
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

name=mnist
parse_create "$root/data/mnist" "$@"
need_tools convert_mnist_data
for file in {train,t10k}-images-idx3-ubyte {train,t10k}-labels-idx1-ubyte; do
  [ -f "$data/$file" ] || die "$data/$file is missing (get_mnist.sh gets MNIST, make_digits.py renders a set)"
done
results=("${name}_train_lmdb" "${name}_test_lmdb")
refuse_existing "${results[@]}"

make_work
names=()
case $name in
  mnist|digits) seq 0 9 >"$work/names" ;;
  fashion_mnist) printf '%s\n' T-shirt/top Trouser Pullover Dress Coat Sandal Shirt Sneaker Bag 'Ankle boot' >"$work/names" ;;
esac
[ ! -f "$work/names" ] || names=(-labels "$work/names")
for part in train test; do
  file=$part
  [ "$part" = train ] || file=t10k
  echo "making $out/${name}_${part}_lmdb"
  "$tools/convert_mnist_data" -backend=lmdb ${names[@]+"${names[@]}"} "$data/$file-images-idx3-ubyte" "$data/$file-labels-idx1-ubyte" \
    "$work/${name}_${part}_lmdb" ||
    die "convert_mnist_data failed; nothing was changed in $out"
done
move_results "${results[@]}"
