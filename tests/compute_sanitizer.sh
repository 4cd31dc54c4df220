#!/usr/bin/env bash
# NVIDIA's compute-sanitizer over the GPU part of the suite, on a machine with a card; exit code 1 if it finds something.
#
#   [JOBS=8] [LOGS=FOLDER] compute_sanitizer.sh [FOLDER_OF_TEST_PROGRAMS [memcheck|racecheck|initcheck|synccheck ...]]
#
# Everything runs once without it first, so that the tuning cache is full: with it, trying all of cuDNN's plans would take hours.
set -euo pipefail
cd "$(dirname "$0")"
programs=${1:-../build/tests}
shift || true
tools=("$@")
[ $# -gt 0 ] || tools=(memcheck racecheck initcheck)
PATH=$PATH:/usr/local/cuda/bin
command -v compute-sanitizer >/dev/null || { echo "compute_sanitizer.sh: compute-sanitizer, a part of the CUDA toolkit, is not in PATH" >&2; exit 1; }
logs=${LOGS:-}
[ -n "$logs" ] || { logs=$(mktemp -d); trap 'rm -rf "$logs"' EXIT; }
mkdir -p "$logs"

# Program, filter, in how many parts.
suite="layers * 24
kernels * 6
solver * 6
net * 3
data * 1
device * 1
tools *Corpus* 4"

part() { # tool program filter part parts
  local log=$logs/$1.$2.$4 command=() status=0
  case $1 in
    nothing) ;;
    # Tests provoke errors of CUDA and look at what becomes of them.
    memcheck) command=(compute-sanitizer --tool memcheck --report-api-errors no --error-exitcode 9) ;;
    # Some of cuDNN's kernels are reported, and fail if the tool skips them; so all are checked, and ours are counted.
    racecheck) command=(compute-sanitizer --tool racecheck) ;;
    *) command=(compute-sanitizer --tool "$1" --error-exitcode 9) ;;
  esac
  GTEST_TOTAL_SHARDS=$5 GTEST_SHARD_INDEX=$4 OMP_NUM_THREADS=2 \
    "${command[@]}" "$programs/$2_tests" --gtest_filter="$3" >"$log" 2>&1 || status=$?
  [ "$1" = nothing ] && return
  [ "$1" != racecheck ] || ! grep -q '^=========.* at .*crema::' "$log" || status=9
  echo "$1 $2 $(($4 + 1))/$5: $(grep -c '^\[       OK' "$log") passed, exit code $status, $(grep -E 'SUMMARY: ' "$log" | sed 's/=* *//')"
  [ $status -eq 0 ] || grep -E '^=========|^\[  FAILED|Failure' "$log" | head -40
  return $status
}
export -f part
export logs programs
parts() { # tool
  while read -r program filter count; do
    for ((i = 0; i < count; ++i)); do printf '%s\0' "part $1 $program '$filter' $i $count"; done
  done <<<"$suite"
}
parts nothing | xargs -0 -P "${JOBS:-8}" -n 1 bash -c || true
status=0
for tool in "${tools[@]}"; do
  parts "$tool" | xargs -0 -P "${JOBS:-8}" -n 1 bash -c || status=1
done
exit $status
