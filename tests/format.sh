#!/usr/bin/env bash
# Every C++ and CUDA file is as clang-format 14 leaves it; other versions differ in details.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$(command -v clang-format-14 || command -v clang-format || true)
if [ -z "$program" ] || ! "$program" --version | grep -q 'version 14\.'; then
  echo "clang-format 14 is missing: install the package clang-format-14 (Debian 12, Ubuntu 24.04) or, elsewhere, pip install clang-format==14.0.6"
  exit 1
fi
git ls-files -z '*.h' '*.cpp' '*.cu' '*.cuh' | xargs -0 -P "$(nproc)" -n 50 "$program" --dry-run -Werror
