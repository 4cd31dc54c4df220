#!/usr/bin/env bash
# Caffe in four steps, from pictures in folders to a trained net, with a database and with HDF5:
#   1. convert the pictures, 2. the net, 3. the solver, 4. train.
#   bash models/articles/four_steps.sh [ITERATIONS, default 1000]
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
iterations=${1:-1000}
out=build/articles/four_steps
mkdir -p "$out"

# The pictures: MNIST's as PNG files, out/train/7/00042.png.
[ -f data/mnist/t10k-images-idx3-ubyte ] || bash data_scripts/get_mnist.sh >&2
[ -d "$out/test" ] || python3 models/articles/mnist_to_png.py data/mnist "$out" >&2

for format in lmdb hdf5; do
  # 1. Convert. Each list names pictures and their classes.
  for set in train test; do
    result=$out/${set}_$format
    [ -e "$result" ] || [ -e "$result.txt" ] ||
      "$tools/crema" convert_imageset -gray -shuffle -backend $format -scale 0.00390625 "$out/$set/" "$out/$set.txt" "$result" >&2
  done
  # 2. and 3. The net and the solver: LeNet, with a layer for the data of this format.
  # 4. Train.
  flags=()
  if has_gpu; then flags=(-gpu 0); fi
  "$tools/crema" train -model models/articles/four_steps/train_val.prototxt -solver models/articles/four_steps/solver.prototxt \
    -set format=$format -set max_iter="$iterations" -set snapshot_prefix="$out/$format" "${flags[@]}" >"$out/$format.log" 2>&1 ||
    { tail -n 1 "$out/$format.log" >&2; exit 1; }
  echo "$format: accuracy $(sed -n 's/.*Test net output #[0-9]*: accuracy = //p' "$out/$format.log" | tail -n 1)"
done
