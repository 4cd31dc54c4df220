#!/usr/bin/env bash
# Configures build/ with the given options of CMake, for quickstart.sh and tests/run.sh. A build folder from another location,
# because the tree was moved or copied with it, is configured again: CMake would refuse it.
set -euo pipefail
cd "$(dirname "$0")/.."

fresh=()
if [ -e build/CMakeCache.txt ]; then
  made_for=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' build/CMakeCache.txt)
  if [ ! "$made_for" -ef . ] || [ ! "$(sed -n 's/^CMAKE_CACHEFILE_DIR:INTERNAL=//p' build/CMakeCache.txt)" -ef build ]; then
    echo "build/ was made in $made_for: it is configured and built again for $PWD"
    fresh=(--fresh)
  fi
fi
exec cmake "${fresh[@]}" -S . -B build -G Ninja "$@"
