#!/usr/bin/env bash
# ThreadSanitizer over the loader, the snapshot writer, ranks, the page server and the log (plain bodies, no oneDNN).
#   tsan.sh [flags of ctest]      for example: tsan.sh -R 'data|solver|comm'
# With Clang 19 or later and its OpenMP, parallel loops are checked too: Archer tells the sanitizer where threads meet. On Debian 12
# they are clang-19, libomp-19-dev, libclang-rt-19-dev and llvm-19. GCC's OpenMP has no such tool: there, loops run on one thread.
set -euo pipefail
cd "$(dirname "$0")/.."
bash data_scripts/setup.sh --tests
root=$PWD
# An interpreter would have to load the sanitizer first, and then so would each tool that a test starts, which already has it.
without='^python_'
options="allocator_may_return_null=1 suppressions=$root/tests/tsan.supp"
for version in 22 21 20 19; do
  clang=/usr/lib/llvm-$version
  [ -e "$clang/lib/libarcher.so" ] && [ -x "$clang/bin/clang++" ] && break
  clang=
done
if [ -n "$clang" ]; then
  cmake --preset tsan -DCMAKE_C_COMPILER="$clang/bin/clang" -DCMAKE_CXX_COMPILER="$clang/bin/clang++" -DCREMA_OPENMP=ON
  # Archer warns unless it reads a 1 here. It does not understand quotes; for the sanitizer the value is 0, because with 1 it would
  # not see the locks of libstdc++ and other libraries.
  options+=" external_symbolizer_path=$clang/bin/llvm-symbolizer"
  options+=" ignore_noninstrumented_modules=1 ignore_noninstrumented_modules='0'"
  export OMP_TOOL_LIBRARIES=$clang/lib/libarcher.so OMP_NUM_THREADS=4 OMP_WAIT_POLICY=passive
else
  echo "tsan.sh: no Clang from 19 on with libarcher.so in /usr/lib/llvm-*: parallel loops run on one thread" >&2
  cmake --preset tsan
  # protobuf's maps, which `report` reads JSON with, have another layout in such a build by GCC than in Debian's library.
  without+='|^tools$'
fi
cmake --build --preset tsan
# A test requests more memory than there is: that must return null, as without the sanitizer.
TSAN_OPTIONS=$options ctest --preset tsan -j "$(nproc)" -E "$without" "$@"
