#!/usr/bin/env bash
# clang-tidy (16 or newer, .clang-tidy) over src/ and tools/, as a build for the CPU compiles them in groups; a finding fails.
#   bash tests/tidy.sh [REGEX]    REGEX: only groups whose path matches, e.g. kernels_conv
set -euo pipefail
cd "$(dirname "$0")/.."
tidy=
for version in 20 19 18 17 16; do
  command -v clang-tidy-$version >/dev/null && { tidy=clang-tidy-$version; break; }
done
[ "$tidy" ] || { echo "tidy.sh needs clang-tidy 16 or newer: apt-get install clang-tidy-16 libomp-16-dev" >&2; exit 1; }
build=build/tidy
cmake -S . -B $build -G Ninja -DCREMA_CUDA=OFF -DCMAKE_UNITY_BUILD=ON -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON >/dev/null
cmake --build $build --target crema_schema >/dev/null
python3 - $build "${1:-.}" <<'PY' | nice xargs -P "$(nproc)" -n 1 $tidy -p $build --quiet --warnings-as-errors='*' 2> >(grep -v "warnings\? generated" >&2)
import json, re, sys
build, wanted = sys.argv[1:]
for entry in json.load(open(f"{build}/compile_commands.json")):
    path = entry["file"]
    if re.search(r"\.pb\.cc$|/tests/|/crema\.dir/", path) or not re.search(wanted, path):
        continue
    print(path)
PY
