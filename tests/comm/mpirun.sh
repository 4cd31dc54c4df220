#!/usr/bin/env bash
# Runs the tests that need several processes, each group in separate processes, because MPI starts once per
# process.
#
#   mpirun.sh [BUILD_FOLDER]        exit code 77: there is no mpirun
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${1:-build}
if ! command -v mpirun >/dev/null || [ ! -e "$build/lib/libcrema_mpi.so" ]; then
  echo "skipped: mpirun is missing, or this build has no MPI"
  exit 77
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1 GTEST_COLOR=no
log=$(mktemp)
trap 'rm -f "$log"' EXIT
options=()
# With it mpirun does not kill the remaining ranks when one has ended without finalizing MPI, as ours do when a rank is lost.
case $(mpirun --version) in
  *"Open MPI"*) options=(--oversubscribe --enable-recovery) ;;
esac
run() {  # RANKS GROUP
  local ranks=$1 group=$2 passed
  # Some end without finalizing MPI, which mpirun reports as a failure: only the ranks' own results
  # count.
  timeout 120 mpirun -n "$ranks" "${options[@]}" "$build/tests/comm_tests" --gtest_filter="$group" >"$log" 2>&1 </dev/null || true
  passed=$(grep -c '^\[  PASSED  \] [1-9]' "$log") || true
  if [ "$passed" -ne "$ranks" ] || grep -qE '^\[  (FAILED|SKIPPED) ' "$log"; then
    echo "mpirun.sh: $group failed: $passed of $ranks ranks have passed"
    cat "$log"
    exit 1
  fi
  echo "$group passed on $ranks ranks"
}
for group in "MpiEngineTest.*" "MpiAbortTest.*" "MpiTimeoutTest.*" MpiWorldTest.MeetsAndEnds MpiWorldTest.AFailureEndsAll; do
  run 3 "$group"
done
gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU') || true
if [ "$gpus" -ge 2 ]; then
  for group in GpuWorldTest.SumsWhatIsExposed GpuWorldTest.SumsExposedHalves; do run $((gpus < 4 ? gpus : 4)) $group; done
else
  echo "skipped: GpuWorldTest, which needs two GPUs"
fi
