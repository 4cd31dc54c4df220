#!/usr/bin/env bash
# Installs what is missing to build and run Crema on Debian 12 or Ubuntu 24.04. Asks nothing; without root it prints the
# line to run and exits 1.
#   setup.sh            what building, training and the sample data need
#   setup.sh --tests    that, and what the test suite needs
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(g++ cmake ninja-build ccache pkg-config protobuf-compiler libprotobuf-dev libgoogle-glog-dev libgflags-dev
          liblmdb-dev libleveldb-dev libhdf5-dev libdnnl-dev libopencv-dev
          python3 python3-numpy python3-pil fontconfig)
fonts=$(sed -n 's/^# *apt packages: *//p' data_scripts/make_digits.py)
read -r -a font_packages <<<"$fonts"
packages+=("${font_packages[@]}")
[ "${1:-}" = --tests ] && packages+=(libgtest-dev)

# A CUDA toolkit brings cuDNN; cudnn-frontend, NVIDIA's header-only C++ interface to it, comes from PyPI.
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null || true)
headers=build/deps/include/cudnn_frontend.h
if [ -n "$nvcc" ] && [ ! -e "$headers" ] && ! python3 -m pip --version >/dev/null 2>&1; then
  packages+=(python3-pip)
fi

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" -ne 0 ]; then
    echo "These packages are missing. Run this line, then the same command again:"
    echo "  sudo apt-get install -y --no-install-recommends ${missing[*]}"
    exit 1
  fi
  echo "Installing ${#missing[@]} packages: ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  if ! { apt-get update && apt-get install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    tail -n 20 "$log"
    echo "apt-get could not install them (its last lines are above)."
    exit 1
  fi
fi

if [ -n "$nvcc" ] && [ ! -e "$headers" ]; then
  echo "Fetching cudnn-frontend's headers"
  folder=$(mktemp -d)
  python3 -m pip download --quiet --no-deps --dest "$folder" nvidia-cudnn-frontend
  python3 -m zipfile -e "$folder"/nvidia_cudnn_frontend-*.whl "$folder/unpacked"
  mkdir -p build/deps
  rm -rf build/deps/include
  cp -r "$folder/unpacked/include" build/deps/include
  rm -rf "$folder"
fi
