#!/usr/bin/env bash
# AddressSanitizer and UndefinedBehaviorSanitizer over the whole suite.
set -euo pipefail
cd "$(dirname "$0")/.."
bash data_scripts/setup.sh --tests
cmake --preset asan
cmake --build --preset asan
# A test asks for more memory than there is: that must return null, as without the sanitizer.
ASAN_OPTIONS=allocator_may_return_null=1 LSAN_OPTIONS=suppressions=$PWD/tests/lsan.supp ctest --preset asan -j "$(nproc)" "$@"
