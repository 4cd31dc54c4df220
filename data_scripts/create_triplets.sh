#!/usr/bin/env bash
# Makes databases (LMDB) of triplets of digits: make_triplets.py, then convert_imageset.
#
#   create_triplets.sh [DATA_DIR] [OUT_DIR] [--force]
#
# DATA_DIR: the IDX files of digits (data/mnist in this repository). OUT_DIR: where triplets_train_lmdb and triplets_test_lmdb go
# (data/triplets in this repository). --force: replace databases that exist.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

parse_create "$root/data/mnist" "$@"
[ "$out" != "$data" ] || out=$root/data/triplets
need_tools convert_imageset
for file in {train,t10k}-images-idx3-ubyte {train,t10k}-labels-idx1-ubyte; do
  [ -f "$data/$file" ] || die "$data/$file is missing (get_mnist.sh gets MNIST, make_digits.py renders a set)"
done
results=(triplets_train_lmdb triplets_test_lmdb)
refuse_existing "${results[@]}"

make_work
"$root/data_scripts/make_triplets.py" "$data" "$work" || die "make_triplets.py failed; nothing was changed in $out"
for part in train test; do
  echo "making $out/triplets_${part}_lmdb"
  "$tools/convert_imageset" "$work/" "$work/$part.txt" "$work/triplets_${part}_lmdb" ||
    die "convert_imageset failed; nothing was changed in $out"
done
move_results "${results[@]}"
