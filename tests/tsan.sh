#!/usr/bin/env bash
# ThreadSanitizer over the loader, the snapshot writer and the log (plain bodies, no OpenMP).
set -euo pipefail
cd "$(dirname "$0")/.."
bash data_scripts/setup.sh --tests
cmake --preset tsan
cmake --build --preset tsan
# Without the tools' tests: protobuf's maps, which `report` reads JSON with, have another layout in a ThreadSanitizer build than in
# Debian's library. A test requests more memory than there is: that must return null, as without the sanitizer.
TSAN_OPTIONS="allocator_may_return_null=1 suppressions=$PWD/tests/tsan.supp" ctest --preset tsan -j "$(nproc)" \
  -E "^tools$" "$@"
