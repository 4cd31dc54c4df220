#!/usr/bin/env bash
# The suite in a GPU build without cuDNN, which need not be installed: nothing includes, links or loads it, the log says so, and nets
# that ask for it train. Without a card that it builds, and what needs none.
#   no_cudnn.sh [ctest options]
set -euo pipefail
cd "$(dirname "$0")/.."
build=build/no_cudnn
die() { echo "no_cudnn.sh: $*" >&2; exit 1; }
bash data_scripts/setup.sh --tests --no-cudnn

# Should cuDNN be installed, these headers are found before its own.
traps=$PWD/$build/traps
mkdir -p "$traps"
for header in cudnn.h cudnn_frontend.h nvrtc.h; do
  echo "#error \"a build without cuDNN includes $header\"" >"$traps/$header.new"
  cmp -s "$traps/$header.new" "$traps/$header" || cp "$traps/$header.new" "$traps/$header"  # or all would be built again
  rm "$traps/$header.new"
done
# As tests/run.sh does.
quick=OFF
[ -e /dev/nvidia0 ] || { export CUDAARCHS=${CUDAARCHS:-90}; quick=ON; }
cmake -S . -B $build -G Ninja -DCREMA_CUDA=ON -DCREMA_CUDNN=OFF -DCREMA_CUDA_QUICK=$quick -DCMAKE_UNITY_BUILD=ON \
  -DCMAKE_CXX_FLAGS="-I$traps" -DCMAKE_CUDA_FLAGS="-I$traps"
cmake --build $build

for object in $build/lib/libcrema.so $build/tools/crema; do
  found=$(nm "$object" | grep -E ' (crema_at_)?(cudnn[A-Z]|nvrtc)' || true)
  [ -z "$found" ] || die "$object has symbols of cuDNN: $found"
  ! grep -qaE 'lib(cudnn|nvrtc)\.so' "$object" || die "$object would load cuDNN"
done
[[ $($build/tools/crema -version) == *", no cuDNN"* ]] || die "crema -version does not say that there is no cuDNN"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/net.prototxt" <<'END'
layer { name: "data" type: "DummyData" top: "x" top: "label" dummy_data_param {
  shape { dim: 16 dim: 3 dim: 20 dim: 20 } shape { dim: 16 } data_filler { type: "gaussian" } data_filler { value: 1 } } }
layer { name: "conv" type: "Convolution" bottom: "x" top: "conv"
  convolution_param { num_output: 12 kernel_size: 5 engine: CUDNN weight_filler { type: "xavier" } } }
layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool" pooling_param { kernel_size: 2 stride: 2 engine: CUDNN } }
layer { name: "group" type: "Convolution" bottom: "pool" top: "group"
  convolution_param { num_output: 12 kernel_size: 3 group: 3 weight_filler { type: "xavier" } } }
layer { name: "ip" type: "InnerProduct" bottom: "group" top: "ip"
  inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
END
cat >"$work/solver.prototxt" <<END
net: "$work/net.prototxt" base_lr: 0.01 lr_policy: "fixed" momentum: 0.9 max_iter: 40 display: 20 snapshot_prefix: "$work/net"
END
code=0
$build/tools/crema time -model "$work/net.prototxt" -iterations 1 -implementation cudnn >"$work/log" 2>&1 || code=$?
[ $code = 1 ] || die "-implementation cudnn ends with exit code $code"
grep -qF -- '-implementation cudnn: this build has no cuDNN; build with -DCREMA_CUDNN=ON for it' "$work/log" || die "$(cat "$work/log")"
if [ -e /dev/nvidia0 ]; then
  for precision in fp32 tf32 bf16 fp16; do
    $build/tools/crema train -solver "$work/solver.prototxt" -gpu 0 -gpu_memory 0.8 -precision $precision >"$work/log" 2>&1 ||
      die "$precision: $(cat "$work/log")"
    grep -q "Using GPU 0: .* (memory 80 %, no cuDNN, $precision)" "$work/log" || die "$precision: $(cat "$work/log")"
    [ "$(grep -c 'engine: CUDNN has no effect here: this build has no cuDNN.* (2 layers)' "$work/log")" = 1 ] ||
      die "$precision: no line, or several, about engine: CUDNN: $(cat "$work/log")"
    grep -q 'Optimization Done' "$work/log" || die "$precision: $(cat "$work/log")"
  done
  $build/tools/crema device_query -gpu 0 >"$work/log" 2>&1 || die "device_query: $(cat "$work/log")"
  grep -q 'cuDNN: *none' "$work/log" || die "device_query does not say that there is no cuDNN"
fi
ctest --test-dir $build --output-on-failure -j "$(nproc)" "$@"
