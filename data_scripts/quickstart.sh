#!/usr/bin/env bash
# From a fresh clone to a trained net: installs what is missing, builds Crema, renders sample digits, trains LeNet on them,
# and writes a report. Asks nothing. Safe to run again: finished steps are skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
out=build/quickstart
log=$(mktemp)
trap 'rm -f "$log"' EXIT

step() { printf '\n== %s\n' "$*"; }

step "1/5 Packages"
bash data_scripts/setup.sh
echo "All there."

step "2/5 Building Crema"
# GPU code is half of the work: without a card it is left out (cmake -DCREMA_CUDA=AUTO build, or tests/run.sh, adds it). An existing
# build is not changed.
first=()
[ -e build/CMakeCache.txt ] || [ -e /dev/nvidia0 ] || first=(-DCREMA_CUDA=OFF)
bash data_scripts/configure.sh "${first[@]}" -DCMAKE_UNITY_BUILD=ON >"$log" || { cat "$log"; exit 1; }
grep '^build/ was made' "$log" || true
targets=(crema_tool)
# The Python module; a Python without headers or NumPy has none.
! ninja -C build -t query crema_python >/dev/null 2>&1 || targets+=(crema_python)
if [ ! -e build/tools/crema ]; then
  # Seconds of a core that a file takes on average, measured on two cores of a server.
  each=6
  ! grep -q -e -DCREMA_CUDA build/build.ninja || each=12
  files=$(ninja -C build -t commands "${targets[@]}" | wc -l)
  cores=$(nproc)
  echo "$files files: about $(((files * each + 59 * cores) / (60 * cores))) minutes on $cores cores"
fi
NINJA_STATUS='[%f/%t files, %e s] ' cmake --build build --target "${targets[@]}"

step "3/5 Rendering sample digits"
if [ ! -e data/digits/train-images-idx3-ubyte ]; then
  /usr/bin/python3 data_scripts/make_digits.py data/digits
fi
if [ ! -e data/digits/digits_train_lmdb ] || [ ! -e data/digits/digits_test_lmdb ]; then
  bash data_scripts/create_mnist.sh data/digits data/digits --name digits --force
fi
ls -d data/digits/*_lmdb

step "4/5 Training LeNet"
mkdir -p "$out"
set +e
build/tools/train -solver models/lenet/digits_solver.prototxt 2>&1 | tee "$out/train.log" | grep --line-buffered -E \
  '^[WE]|GPU|Use CPU|Iteration [0-9]+ \(|Iteration [0-9]+, Testing|Test net output|Optimization Done'
status=${PIPESTATUS[0]}
set -e
[ "$status" -eq 0 ] || { tail -n 5 "$out/train.log"; exit 1; }

step "5/5 Report"
weights=$(ls -t models/lenet/lenet_digits_iter_*.caffemodel | head -n 1)
build/tools/crema report models/lenet/metrics.jsonl -model models/lenet/digits_train_val.prototxt \
  -weights "$weights" -output "$out/report.html" 2>>"$out/train.log"

python=$(sed -n 's/^_Python3_EXECUTABLE:INTERNAL=//p' build/CMakeCache.txt)
accuracy=$(sed -n 's/.*Test net output #[0-9]*: accuracy = //p' "$out/train.log" | tail -n 1)
cat <<END

Test accuracy: $accuracy
Curves, filters and the misclassified digits: $out/report.html
The whole log: $out/train.log

Next:
  build/tools/test -model models/lenet/digits_train_val.prototxt -weights $weights -iterations 20
  build/tools/summary -model models/lenet/digits_train_val.prototxt
  build/tools/time -model models/lenet/digits_train_val.prototxt -train_step
  build/tools/train -solver models/lenet/digits_solver.prototxt -snapshot ${weights%.caffemodel}.solverstate
  PYTHONPATH=build/python ${python:-python3} -c 'import crema
print(crema.Net("models/lenet/digits_train_val.prototxt", "$weights", crema.TEST).forward())'
  bash data_scripts/get_mnist.sh && bash data_scripts/create_mnist.sh     # the real MNIST (models/lenet/README.md)
  bash tests/run.sh                                                       # the test suite
END
