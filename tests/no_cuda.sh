#!/usr/bin/env bash
# The suite in a build without CUDA and without precompiled headers: each file includes what it uses.
set -euo pipefail
cd "$(dirname "$0")/.."
bash data_scripts/setup.sh --tests
cmake --preset cpu -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON
cmake --build --preset cpu
ctest --preset cpu -j "$(nproc)" "$@"
