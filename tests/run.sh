#!/usr/bin/env bash
# Sets up what is missing, builds, and runs the whole test suite: bash tests/run.sh [ctest options].
set -euo pipefail
cd "$(dirname "$0")/.."
bash data_scripts/setup.sh --tests
# Without a card GPU code for one kind is enough, compiled quickly: that it compiles.
quick=OFF
[ -e /dev/nvidia0 ] || { export CUDAARCHS=${CUDAARCHS:-90}; quick=ON; }
bash data_scripts/configure.sh -DCREMA_CUDA=AUTO -DCREMA_CUDA_QUICK=$quick -DCMAKE_UNITY_BUILD=ON
cmake --build build
status=0
ctest --test-dir build --output-on-failure -j "$(nproc)" "$@" || status=$?
# CTest hides the output of passing programs: report what they skipped, and why.
log=build/Testing/Temporary/LastTest.log
if [ -f "$log" ]; then
  awk '/: Skipped$/ { getline; count[$0]++ } /^SKIPPED \[[0-9]+\] / { times = substr($2, 2) + 0; sub(/^SKIPPED \[[0-9]+\] [^ ]* /, ""); count[$0] += times }
       END { for (why in count) print count[why] " skipped: " why }' "$log"
fi
exit "$status"
