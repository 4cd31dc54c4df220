#!/usr/bin/env bash
# The readers under AddressSanitizer and UndefinedBehaviorSanitizer, with damaged files: an hour, or so many seconds.
#   fuzz.sh [SECONDS [SEED]]        what fails stays in build/asan/fuzz_failures
set -euo pipefail
cd "$(dirname "$0")/.."
bash data_scripts/setup.sh --tests
cmake --preset asan
cmake --build --preset asan --target fuzz_tests
export CREMA_FUZZ_SECONDS=${1:-3600} CREMA_FUZZ_SEED=${2:-$RANDOM} CREMA_FUZZ_FAILURES=build/asan/fuzz_failures
build/asan/tests/fuzz_tests
