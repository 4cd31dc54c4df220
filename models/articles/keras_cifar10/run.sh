#!/usr/bin/env bash
# Trains the articles' convnet in every way that this machine can and prints a table of the articles' figures and ours.
#   bash models/articles/keras_cifar10/run.sh [EPOCHS, default 3]
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
epochs_wanted=${1:-3}
cifar10_split 45000
out=build/articles/keras_cifar10
mkdir -p "$out"
iterations=$(awk -v n="$epochs_wanted" 'BEGIN { x = n * 1406.25; print int(x) + (x > int(x)) }')

echo "| variant | s per epoch | val_acc after epochs 1, 2, 3 and the last | article, s |"
echo "|---|---|---|---|"
# variant NAME ARTICLE FLAGS...
variant() {
  local name=$1 article=$2 log
  shift 2
  log="$out/${name//[^A-Za-z0-9]/_}.log"
  if ! "$tools/crema" train -solver models/articles/keras_cifar10/solver.prototxt -set max_iter="$iterations" \
    -set snapshot_prefix="$out/net" -set snapshot_after_train=false -set random_seed=1 "$@" >"$log" 2>&1; then
    tail -n 1 "$log" >&2
    return 1
  fi
  echo "| $name | $(epochs "$log" | median) | $(epochs "$log" | awk 'NR <= 3 { a = a $3 ", " } END { print a $3 }') | $article |"
}

variant "CPU" 152
# The articles' steps on a GPU: first custom kernels and memory for each blob, then a memory pool, then cuDNN.
if has_gpu; then
  variant "GPU: custom kernels, no pool" 27 -gpu 0 -precision fp32 -implementation plain -off memory,fuse,format,overlap,recompute,capture
  variant "GPU: custom kernels, memory pool" 20 -gpu 0 -precision fp32 -implementation plain -off fuse,format,overlap,recompute,capture
  [[ $("$tools/crema" -version) == *"no cuDNN"* ]] ||
    variant "GPU: cuDNN" 7 -gpu 0 -precision fp32 -implementation cudnn -off fuse,overlap,recompute,capture
  variant "GPU: everything, tf32" - -gpu 0
  variant "GPU: everything, bf16" - -gpu 0 -precision bf16
fi
echo
echo "val_acc in the articles after epochs 1, 2, 3: 0.46 to 0.49, 0.57 to 0.58, 0.62 to 0.64."
