#!/usr/bin/env bash
# ThreadSanitizer over the loader, the snapshot writer and the log (plain bodies, no OpenMP).
set -euo pipefail
cd "$(dirname "$0")/.."
bash data_scripts/setup.sh --tests
cmake --preset tsan
cmake --build --preset tsan
ctest --preset tsan -j "$(nproc)" "$@"
