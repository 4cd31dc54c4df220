#!/usr/bin/env bash
# Under AddressSanitizer and UndefinedBehaviorSanitizer: the readers with damaged files, for an hour or the given seconds; then
# random nets for 10 minutes or the given number.
#   fuzz.sh [SECONDS [SEED [MINUTES]]]        failures stay in build/asan/fuzz_failures and build/asan/random_nets_failures
set -euo pipefail
cd "$(dirname "$0")/.."
bash data_scripts/setup.sh --tests
cmake --preset asan
cmake --build --preset asan --target fuzz_tests random_nets
export CREMA_FUZZ_SECONDS=${1:-3600} CREMA_FUZZ_SEED=${2:-$RANDOM} CREMA_FUZZ_FAILURES=build/asan/fuzz_failures
status=0
build/asan/tests/fuzz_tests || status=1
ASAN_OPTIONS=detect_leaks=0 OMP_NUM_THREADS=1 build/asan/tests/random_nets --seed "$CREMA_FUZZ_SEED" --nets 1000000000 \
  --minutes "${3:-10}" --shrink --failures build/asan/random_nets_failures || status=1
exit $status
