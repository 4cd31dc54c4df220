#!/usr/bin/env bash
# ONNX models in ONNX Runtime: the layer rows against Crema, with BatchNorm folded and not, in the oldest and the newest opset;
# the reference cases against BVLC Caffe; models that take pictures against classify.
#   onnx_rows.sh BUILD PYTHON
set -euo pipefail
build=$1 python=$2
"$python" -c 'import onnx, onnxruntime' 2>/dev/null || { echo "skipped: $python has no onnx and onnxruntime (data_scripts/setup.sh --tests)"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
status=0
for setting in "17" "11 nofold" "21"; do
  "$build/tests/exchange_cases" onnx_rows "$folder/${setting/ /_}" $setting
  echo "opset $setting"
  "$python" "$(dirname "$0")/onnx_rows.py" "$folder/${setting/ /_}" || status=1
done
"$build/tests/exchange_cases" onnx_goldens "$folder/goldens"
echo "goldens"
"$python" "$(dirname "$0")/onnx_rows.py" "$folder/goldens" || status=1
echo "pictures"
"$python" "$(dirname "$0")/onnx_pictures.py" "$build" || status=1
exit $status
