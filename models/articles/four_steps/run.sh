#!/usr/bin/env bash
# Caffe in four steps, from pictures in folders to a trained net, once with an LMDB and once with HDF5:
# 1. convert the pictures, 2. write the net, 3. write the solver, 4. train.
#   bash models/articles/four_steps/run.sh [ITERATIONS, default 1000]
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
iterations=${1:-1000}
here=models/articles/four_steps
out=build/articles/four_steps
mkdir -p "$out"
[ -f data/mnist/t10k-images-idx3-ubyte ] || bash data_scripts/get_mnist.sh >&2
[ -f "$out/test.txt" ] || /usr/bin/python3 $here/pictures.py data/mnist "$out"

echo "| format | seconds to convert | seconds to train | accuracy |"
echo "|---|---|---|---|"
device=()
if has_gpu; then device=(-gpu 0); fi
for format in lmdb hdf5; do
  scale=()  # of HDF5's values; Data scales while training
  if [ $format = hdf5 ]; then scale=(-scale 0.00390625); fi
  # 1.
  begin=$(date +%s.%N)
  for set in train test; do
    "$tools/crema" convert_imageset -gray -shuffle -backend $format "${scale[@]}" -overwrite "$out/$set/" "$out/$set.txt" \
      "$out/${set}_$format" >"$out/convert.log" 2>&1 || { tail -n 1 "$out/convert.log" >&2; exit 1; }
  done
  # 4. (2. and 3. are train_val.prototxt and solver.prototxt in this folder.)
  middle=$(date +%s.%N)
  "$tools/crema" train -solver $here/solver.prototxt -model $here/train_val.prototxt "${device[@]}" \
    -set format=$format -set max_iter="$iterations" -set snapshot_prefix="$out/$format" >"$out/$format.log" 2>&1 ||
    { tail -n 1 "$out/$format.log" >&2; exit 1; }
  accuracy=$(sed -n 's/.*Test net output #[0-9]*: accuracy = //p' "$out/$format.log" | tail -n 1)
  awk -v f=$format -v a="$begin" -v b="$middle" -v c="$(date +%s.%N)" -v s="$accuracy" \
    'BEGIN { printf "| %s | %.1f | %.1f | %s |\n", f, b - a, c - b, s }'
done
