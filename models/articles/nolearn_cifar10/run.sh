#!/usr/bin/env bash
# Trains the article's two nets on grey CIFAR-10, on the CPU and on a GPU if there is one, and prints a table of the article's
# figures and ours.
#   bash models/articles/nolearn_cifar10/run.sh
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
# 20 % are held out.
cifar10_split 40000
out=build/articles/nolearn_cifar10
mkdir -p "$out"
here=models/articles/nolearn_cifar10

echo "| net | device | s per epoch | article | held-out accuracy | article | test accuracy | article |"
echo "|---|---|---|---|---|---|---|---|"
# train NET DEVICE ARTICLE_SECONDS ARTICLE_HELD_OUT ARTICLE_TEST FLAGS...
train() {
  local net=$1 device=$2 seconds=$3 held=$4 test=$5 log="$out/$1_$2.log"
  shift 5
  "$tools/crema" train -solver $here/${net}_solver.prototxt -set random_seed=1 -set snapshot_prefix="$out/$net" "$@" >"$log" 2>&1 ||
    { tail -n 1 "$log" >&2; return 1; }
  local weights
  weights=$(ls -t "$out/${net}"_iter_*.caffemodel | head -n 1)
  local accuracy
  accuracy=$("$tools/crema" test -model $here/${net}_train_val.prototxt -set test=true -weights "$weights" -iterations 100 "$@" 2>&1 |
    sed -nE 's/.*\] acc = (.*)/\1/p' | tail -n 1)
  echo "| $net | $device | $(epochs "$log" | median) | $seconds | $(epochs "$log" | tail -n 1 | cut -d' ' -f3) | $held | $accuracy | $test |"
}
train perceptron CPU 1.3 - 0.41
train convnet CPU 177 0.63 0.61
if has_gpu; then
  train perceptron GPU 0.5 - 0.41 -gpu 0
  train convnet GPU 12.8 0.63 0.61 -gpu 0
fi
