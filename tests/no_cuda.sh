#!/usr/bin/env bash
# The suite in a build without CUDA.
set -euo pipefail
cd "$(dirname "$0")/.."
bash data_scripts/setup.sh --tests
cmake --preset cpu
cmake --build --preset cpu
ctest --preset cpu -j "$(nproc)" "$@"
