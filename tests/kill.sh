#!/usr/bin/env bash
# Trainings that write a snapshot after every iteration are killed at random instants and started again with -snapshot auto until
# they are through. No snapshot may be damaged, and the last one must have the weights and the state of an undisturbed run, bit
# for bit.
#
#   kill.sh [BUILD_FOLDER [INSTANTS [SEED]]]
set -euo pipefail
cd "$(dirname "$0")/.."
tools=$(cd "${1:-build}/tools" && pwd)
instants=${2:-200}
RANDOM=${3:-1}
export OMP_NUM_THREADS=1 CREMA_FLAGS=
die() { echo "kill.sh: $*" >&2; exit 1; }
tree=$(mktemp -d)
job=
trap '[ -z "$job" ] || kill -9 "$job" 2>/dev/null || true; rm -rf "$tree"' EXIT
cd "$tree"

# New random data in every pass, dropout; about 200 kB of weights, and three times that of state.
cat >net.prototxt <<'END'
name: "small"
layer { name: "data" type: "DummyData" top: "x" top: "y"
  dummy_data_param { shape { dim: 4 dim: 50 } shape { dim: 4 dim: 3 }
                     data_filler { type: "gaussian" } data_filler { type: "uniform" } } }
layer { name: "ip1" type: "InnerProduct" bottom: "x" top: "h" inner_product_param { num_output: 900 weight_filler { type: "xavier" } } }
layer { name: "drop" type: "Dropout" bottom: "h" top: "h" }
layer { name: "ip2" type: "InnerProduct" bottom: "h" top: "z" inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "EuclideanLoss" bottom: "z" bottom: "y" top: "loss" }
END
for format in BINARYPROTO HDF5; do
  cat >"$format.prototxt" <<END
net: "net.prototxt" type: "Adam" base_lr: 0.001 lr_policy: "fixed" momentum: 0.9 ema_decay: 0.9 random_seed: 1
max_iter: 40 snapshot: 1 keep_last: 3 snapshot_format: $format snapshot_prefix: "run/a"
END
done

now() { date +%s%N; }
last() { find run -name 'a_iter_40*' | sort; }
digest() { [ "$(last | wc -l)" -eq 3 ] || die "the last snapshot is missing: $(ls run)"; last | xargs sha256sum; }

# The results of an undisturbed run, and its time in microseconds.
mkdir -p run
declare -A expected
for format in BINARYPROTO HDF5; do
  begin=$(now)
  "$tools/crema" train -solver $format.prototxt >log 2>&1 || die "the training fails: $(tail -n 3 log)"
  micros=$((($(now) - begin) / 1000))
  expected[$format]=$(digest)
  rm -f run/*
done

killed=0 writing=0 between=0 early=0 finished=0
check() {
  ! grep -n 'passes over' log || die "a snapshot was damaged after $killed kills"
  [ "$(digest)" = "${expected[$format]}" ] || die "other bits than the undisturbed training's, after $killed kills ($format)"
  finished=$((finished + 1))
  rm -f run/*
}
# Left by a snapshot that a kill has interrupted.
partial() { find run -name '*.tmp.*' | sort; }
without() {  # KIND OTHER: the files of a kind that lack those of the other
  local file other
  for file in run/a_iter_*."$1" run/a_iter_*."$1".h5; do
    other=${file/.$1/.$2}
    if [ -e "$file" ] && [ ! -e "$other" ] && [[ $file != *_ema.* ]]; then echo "$file"; fi
  done
}
for format in BINARYPROTO HDF5; do
  goal=$instants
  [ $format = HDF5 ] || goal=$((instants / 2))
  while [ $killed -lt "$goal" ]; do
    partial >before
    "$tools/crema" train -solver $format.prototxt -snapshot auto >log 2>&1 &
    job=$!
    sleep "$(printf '0.%06d' $(((RANDOM * 32768 + RANDOM) % (micros / 2))))"
    kill -9 $job 2>/dev/null || true
    code=0
    wait $job 2>/dev/null || code=$?
    job=
    if [ $code -eq 0 ]; then
      check
      continue
    fi
    [ $code -eq 137 ] || die "exit code $code: $(tail -n 3 log)"
    killed=$((killed + 1))
    ! grep -n 'passes over' log || die "a snapshot was damaged after $killed kills"
    grep -q Snapshotting log || early=$((early + 1))
    [ -z "$(partial | comm -13 before -)" ] || writing=$((writing + 1))
    [ -z "$(without caffemodel solverstate)" ] || between=$((between + 1))
    [ -z "$(without solverstate caffemodel)" ] || die "$(without solverstate caffemodel) has no weights"
  done
  "$tools/crema" train -solver $format.prototxt -snapshot auto >log 2>&1 || die "the training fails: $(tail -n 3 log)"
  check
done
echo "$killed kills: $early before the first snapshot of that start, $writing while a file was being written, $between between" \
  "weights and state. All $finished trainings ended with the bits of the undisturbed one."
