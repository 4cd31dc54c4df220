#!/usr/bin/env bash
# The layer rows as ONNX models in ONNX Runtime: with BatchNorm folded and not, in the oldest and the newest opset.
#   onnx_rows.sh BUILD PYTHON
set -euo pipefail
build=$1 python=$2
"$python" -c 'import onnx, onnxruntime' 2>/dev/null || { echo "skipped: $python has no onnx and onnxruntime (data_scripts/setup.sh --tests)"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
status=0
for setting in "17" "11 nofold" "21"; do
  "$build/tests/onnx_rows" "$folder/${setting/ /_}" $setting
  echo "opset $setting"
  "$python" "$(dirname "$0")/onnx_rows.py" "$folder/${setting/ /_}" || status=1
done
exit $status
