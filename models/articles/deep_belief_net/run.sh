#!/usr/bin/env bash
# Trains deep belief networks on MNIST, layer by layer and then as a whole, and prints a table of published figures and ours. If
# there is a GPU, it trains there, and the CPU runs three epochs of each stage for comparison.
#   bash models/articles/deep_belief_net/run.sh [MNIST [PRETRAIN_EPOCHS [TUNE_EPOCHS]]]
# MNIST: folder with the IDX files or mnist_{train,test}_lmdb (data/mnist). Epochs: of each RBM and of the whole net (50).
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
data=${1:-data/mnist}
pretrain=${2:-50}
tune=${3:-50}
here=models/articles/deep_belief_net
out=build/articles/deep_belief_net
mkdir -p "$out"
if [ ! -d "$data/mnist_train_lmdb" ]; then
  [ -f "$data/train-images-idx3-ubyte" ] || bash data_scripts/get_mnist.sh "$data" >&2
  bash data_scripts/create_mnist.sh "$data" "$out/data" --force >&2
  data=$out/data
fi

# train NAME SOLVER FLAGS...: one stage; its log and weights are $out/NAME.log and $out/NAME.caffemodel.
train() {
  local name=$1 solver=$2
  shift 2
  rm -f "$out/${name}"_iter_*
  "$tools/crema" train -solver $here/"$solver" -set data="$data" -set random_seed=1 -set snapshot_prefix="$out/$name" "$@" \
    >"$out/$name.log" 2>&1 || { tail -n 1 "$out/$name.log" >&2; return 1; }
  mv "$out/${name}"_iter_*.caffemodel "$out/$name.caffemodel"
  rm -f "$out/${name}"_iter_*
}

# Seconds per epoch without the first one, which also prepares the kernels.
seconds() {
  sed -nE 's|.*\] Epoch [0-9]+/[0-9]+: ([0-9.]+)s.*|\1|p' "$out/$1.log" | tail -n +2 |
    awk '{ sum += $1 } END { printf NR ? "%.3g" : "-", sum / (NR ? NR : 1) }'
}

# value NAME OUTPUT: of the last epoch line.
value() { sed -nE "s/.* - val_$2: ([^ ]+).*/\1/p" "$out/$1.log" | tail -n 1; }

# net LABEL SIZES STAGES PUBLISHED_ERROR PRETRAIN_EPOCHS TUNE_EPOCHS TUNING_FLAGS...
net() {
  local label=$1 sizes=$2 stages=$3 published=$4 before=$5 after=$6 device weights=() name stage cpu gpu ratio flags what
  shift 6
  for stage in $(seq "$stages") 0; do
    cpu=- gpu=- ratio=-
    for device in "${devices[@]}"; do
      name=${label}_${stage}_$device
      flags=(-set sizes="$sizes" -set stage="$stage" "${weights[@]}")
      local epochs=$before solver=pretrain_solver.prototxt
      if [ "$stage" = 0 ]; then epochs=$after solver=solver.prototxt; flags+=("$@"); fi
      # If a GPU trains, the CPU only shows its speed.
      if [ "$device" = CPU ] && [ ${#devices[@]} -gt 1 ]; then epochs=3; fi
      if [ "$device" = GPU ]; then flags+=(-gpu 0); fi
      train "$name" $solver "${flags[@]}" -set max_epoch="$epochs"
      if [ "$device" = CPU ]; then cpu=$(seconds "$name"); else gpu=$(seconds "$name"); fi
    done
    # $name now belongs to the last device, whose weights the next stage continues from.
    weights=(-weights "$out/$name.caffemodel")
    if [ "$gpu" != - ]; then ratio=$(awk -v c="$cpu" -v g="$gpu" 'BEGIN { printf "%.0f", c / g }'); fi
    if [ "$stage" = 0 ]; then
      what="whole net | $epochs | $(awk -v a="$(value "$name" acc)" 'BEGIN { printf "%.2f %%", 100 * (1 - a) }') wrong | $published"
    else
      what="RBM $stage | $epochs | error $(value "$name" error) | "
    fi
    echo "| $label | $what | $cpu | $gpu | $ratio |"
  done
}

devices=(CPU)
if has_gpu; then devices+=(GPU); fi
echo "| net | stage | epochs | test images | published | CPU: s per epoch | GPU: s per epoch | CPU / GPU |"
echo "|---|---|---|---|---|---|---|---|"
net 784-500-500-2000-10 "[500, 500, 2000]" 3 "1.2 % wrong" "$pretrain" "$tune"
# nolearn's example, which does not pretrain: rate 0.3, times 0.9 after each epoch, batches of 64.
net 784-300-10 "[300]" 0 "2.5 % wrong" 0 10 -set batch=64 -set base_lr=0.3 -set lr_policy=step -set gamma=0.9 -set stepsize_epoch=1 \
  -set weight_decay=0.0001
