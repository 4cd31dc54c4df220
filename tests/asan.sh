#!/usr/bin/env bash
# AddressSanitizer and UndefinedBehaviorSanitizer over the whole suite.
set -euo pipefail
cd "$(dirname "$0")/.."
bash data_scripts/setup.sh --tests
cmake --preset asan
cmake --build --preset asan
ctest --preset asan -j "$(nproc)" "$@"
