#!/usr/bin/env bash
# Installs what is missing to build and run Crema on Debian 12 or Ubuntu 24.04. Asks nothing; without root it prints the
# line to run and exits 1.
#   setup.sh            for building, training and the sample data
#   setup.sh --tests    also for the test suite
#   --no-cudnn          in addition: for a build with -DCREMA_CUDNN=OFF
#   --nccl              in addition: NCCL, as on a machine with several GPUs, for a build that will run on one
set -euo pipefail
cd "$(dirname "$0")/.."

tests=
packages=(g++ cmake ninja-build ccache pkg-config protobuf-compiler libprotobuf-dev libgoogle-glog-dev libgflags-dev
          liblmdb-dev libleveldb-dev libhdf5-dev libpugixml-dev libre2-dev libdnnl-dev libopencv-dev libjpeg-dev libzip-dev
          libcpp-httplib-dev nlohmann-json3-dev libopenmpi-dev openmpi-bin
          zlib1g-dev python3 python3-dev pybind11-dev python3-numpy python3-protobuf python3-pil fontconfig)
cudnn=1 several=
[ ! -e /dev/nvidia1 ] || several=1
for option in "$@"; do
  case $option in
    --tests) tests=1 packages+=(libgtest-dev clang-format-14 python3-pytest python3-matplotlib python3-sklearn python3-venv) ;;
    --no-cudnn) cudnn= ;;
    --nccl) several=1 ;;
    *) echo "setup.sh: unknown option $option (there are --tests, --no-cudnn and --nccl)" >&2; exit 1 ;;
  esac
done

# A CUDA toolkit brings cuDNN. PyPI has cudnn-frontend, NVIDIA's header-only C++ interface to it, the header of nvJPEG if the
# toolkit was installed without it, and NCCL, whose header is not available separately.
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null || true)
include=build/deps/include
frontend='' nvjpeg='' nccl=''
if [ -n "$nvcc" ]; then
  if [ -n "$cudnn" ] && [ ! -e $include/cudnn_frontend.h ]; then frontend=nvidia-cudnn-frontend; fi
  if [ ! -e $include/nvjpeg.h ] && [ ! -e "$(dirname "$nvcc")/../include/nvjpeg.h" ]; then
    case $("$nvcc" --version) in
      *"release 12."*) nvjpeg=nvidia-nvjpeg-cu12 ;;
      *"release 13."*) nvjpeg=nvidia-nvjpeg ;;
    esac
  fi
  if [ -n "$several" ] && [ ! -e $include/nccl.h ] && [ ! -e /usr/include/nccl.h ] && [ ! -e "$(dirname "$nvcc")/../include/nccl.h" ]; then
    case $("$nvcc" --version) in
      *"release 12."*) nccl=nvidia-nccl-cu12==2.28.9 ;;
      *"release 13."*) nccl=nvidia-nccl-cu13==2.28.9 ;;
    esac
  fi
  if [ -n "$frontend$nvjpeg$nccl" ] && ! python3 -m pip --version >/dev/null 2>&1; then packages+=(python3-pip); fi
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive
# Runs apt-get quietly; its last lines are shown when it fails.
apt() {
  if ! apt-get "$@" >"$log" 2>&1; then
    tail -n 20 "$log"
    echo "apt-get $1 failed (its last lines are above)."
    exit 1
  fi
}
installed() { dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q 'ok installed'; }

missing=()
for package in "${packages[@]}"; do
  installed "$package" || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ] && [ "$(id -u)" -eq 0 ]; then apt update; fi
# Fonts make the sample digits more varied; a system whose archive lacks one of them works without
# it.
for package in $(sed -n 's/^# *apt packages: *//p' data_scripts/make_digits.py); do
  if ! installed "$package" && apt-cache show "$package" >/dev/null 2>&1; then missing+=("$package"); fi
done
if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" -ne 0 ]; then
    echo "These packages are missing. Run this line, then the same command again:"
    echo "  sudo apt-get install -y --no-install-recommends ${missing[*]}"
    exit 1
  fi
  echo "Installing ${#missing[@]} packages: ${missing[*]}"
  apt install -y --no-install-recommends "${missing[@]}"
fi

# Unpacks a package of PyPI into $folder.
fetch() {
  echo "Fetching the headers of $1${2:+ ($2)}"
  folder=$(mktemp -d)
  python3 -m pip download --quiet --no-deps --dest "$folder" "$1"
  python3 -m zipfile -e "$folder"/*.whl "$folder"
  mkdir -p $include
}
if [ -n "$frontend" ]; then
  fetch $frontend
  cp -r "$folder"/include/. $include
  rm -rf "$folder"
fi
if [ -n "$nvjpeg" ]; then
  # A build can do without.
  if ! { fetch $nvjpeg && cp "$folder"/nvidia/*/include/nvjpeg.h $include; }; then
    echo "nvjpeg.h could not be fetched: the build will decode JPEGs on the CPU only"
  fi
  rm -rf "$folder"
fi
if [ -n "$nccl" ]; then
  # Likewise. The library is for machines that have none.
  if ! { fetch $nccl "200 MB" && cp "$folder"/nvidia/nccl/include/nccl.h $include && mkdir -p build/deps/lib &&
         cp "$folder"/nvidia/nccl/lib/libnccl.so.2 build/deps/lib; }; then
    echo "nccl.h could not be fetched: the build will connect several GPUs through MPI only, which is slow"
  fi
  rm -rf "$folder"
fi

# ONNX's own checker and its runtime, which Debian does not have, in an environment of their own.
if [ -n "$tests" ] && ! cmp -s tests/exchange/requirements.txt build/venv/requirements.txt; then
  echo "Fetching $(tr '\n' ' ' <tests/exchange/requirements.txt)"
  /usr/bin/python3 -m venv build/venv
  build/venv/bin/pip install --quiet --disable-pip-version-check -r tests/exchange/requirements.txt
  cp tests/exchange/requirements.txt build/venv/requirements.txt
fi
