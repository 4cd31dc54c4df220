#!/usr/bin/env bash
# Under AddressSanitizer and UndefinedBehaviorSanitizer: the readers with damaged files, for an hour or the given seconds; then
# random nets for 10 minutes or the given number. One process per core, or as many as given, each with a different seed.
#   fuzz.sh [SECONDS [SEED [MINUTES [PROCESSES]]]]
# Logs and failures stay in build/asan/fuzz_logs, fuzz_failures and random_nets_failures.
set -euo pipefail
cd "$(dirname "$0")/.."
bash data_scripts/setup.sh --tests
cmake --preset asan
cmake --build --preset asan --target fuzz_tests random_nets
export CREMA_FUZZ_SECONDS=${1:-3600} CREMA_FUZZ_FAILURES=build/asan/fuzz_failures
seed=${2:-$RANDOM} minutes=${3:-10} processes=${4:-$(nproc)}
logs=build/asan/fuzz_logs
rm -rf "$logs"
mkdir -p "$logs"
export OMP_NUM_THREADS=1
read_damaged_files() {
  OMP_THREAD_LIMIT=1 CREMA_FUZZ_SEED=$1 build/asan/tests/fuzz_tests
}
train_random_nets() {
  ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 build/asan/tests/random_nets --seed "$1" \
    --nets 1000000000 --minutes "$minutes" --shrink --failures build/asan/random_nets_failures
}
status=0
for work in read_damaged_files train_random_nets; do
  children=()
  for ((i = 0; i < processes; ++i)); do
    "$work" $((seed + i)) > "$logs/$work-$((seed + i))" 2>&1 &
    children+=($!)
  done
  for child in "${children[@]}"; do
    wait "$child" || status=1
  done
done
# Inputs by reader, over all processes.
sed -n 's/^\(.*\): seed [0-9]*, inputs up to [0-9]*, \([0-9]*\) accepted, \([0-9]*\) refused$/\1\t\2\t\3/p' "$logs"/read_* |
  awk -F'\t' '{ accepted[$1] += $2; refused[$1] += $3 }
    END { for (name in accepted) printf "%s: %d accepted, %d refused\n", name, accepted[name], refused[name] }' | sort
grep -hE '^[0-9]+ nets,' "$logs"/train_* || true
grep -E -A 3 ': Failure$|^FAILED|runtime error:|ERROR: AddressSanitizer' "$logs"/* || true
exit $status
