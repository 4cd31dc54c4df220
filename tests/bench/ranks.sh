#!/usr/bin/env bash
# Two ranks of one thread against one rank of two threads on CPUs, each with the same batch in all, and PyTorch's DistributedDataParallel
# through gloo in the same rounds. Prints medians of ms per iteration, and ratios of each round: median, least and most.
#
#   ranks.sh PYTHON TORCH_PEER [BUILD_FOLDER [ROUNDS [ROWS [MODES]]]]
#
# PYTHON has torch; TORCH_PEER is the torch_peer.py of the other comparisons. ROWS: nets by commas, each with its batch,
# cifar10_full:100,googlenet:8. MODES of PyTorch: eager, or eager,compile, whose faster one counts; compiling takes minutes.
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 1; }
python=$1 peer=$(realpath "$2")
cd "$(dirname "$0")/../.."
tools=$(cd "${3:-build}/tools" && pwd)
rounds=${4:-3} rows=${5:-cifar10_full:100,googlenet:8} modes=${6:-eager}
seconds=6
export CREMA_FLAGS='' OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
export GLOG_log_dir=$tree
die() { echo "ranks.sh: $*" >&2; exit 1; }

# FILE: the median of the milliseconds between displays, without the first three, which include the
# start.
median() { sed -nE 's/.* Iteration [0-9]+ \(([0-9.e+]+) iter\/s.*/\1/p' "$1" | tail -n +4 | awk '{ print 1000 / $1 }' | middle; }
middle() { sort -g | awk '{ x[NR] = $1 } END { if (NR) print (x[int((NR + 1) / 2)] + x[int(NR / 2) + 1]) / 2 }'; }
# BATCH LAUNCHER...: ms per iteration of ranks with this batch each, in $ms.
train() {
  local batch=$1
  shift
  timeout --signal=INT $((seconds + 4)) "$@" "$tools/crema" train -solver "$tree/solver.prototxt" -batch_mode per_gpu \
    -assume "data=${batch}x$shape,label=$batch" >"$tree/out" 2>&1 </dev/null || [ $? -eq 124 ] ||
    die "$* fails: $(grep '^E' "$tree/out" || tail -n 3 "$tree/out")"
  ms=$(median "$tree/out")
  [ -n "$ms" ] || die "$* shows no time: $(tail -n 3 "$tree/out")"
}
torch() {  # RANKS: the same in PyTorch, in its faster mode
  local found
  found=$(OMP_NUM_THREADS=1 "$python" tests/bench/ddp_peer.py --peer "$peer" --cpu --total --pin --rows "$net:$batch" --ranks "$1" \
    --modes "$modes" --threads $((2 / $1)) --seconds $seconds 2>"$tree/err") || die "PyTorch fails: $found $(tail -n 3 "$tree/err")"
  ms=$(sed -nE 's/.* ([0-9.]+) ms\/step.*/\1/p' <<<"$found" | sort -g | head -n 1)
}
show() { printf '%.2f (%.2f to %.2f)' "$(middle <"$tree/$1")" "$(sort -g "$tree/$1" | head -n 1)" "$(sort -g "$tree/$1" | tail -n 1)"; }

echo "load before: $(cut -d' ' -f1-3 /proc/loadavg); $(nproc) cores, $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)"
echo "| net, batch of all ranks | Crema, 1 rank of 2 threads, ms | 2 ranks of 1 thread | 1 rank / 2 ranks | DDP, 1 process of 2 threads | 2 of 1 thread | 1 / 2 | DDP / Crema, 2 ranks |"
echo "|---|---|---|---|---|---|---|---|"
for row in ${rows//,/ }; do
  net=${row%:*} batch=${row#*:}
  cat >"$tree/solver.prototxt" <<END
net: "$PWD/tests/bench/nets/$net.prototxt" base_lr: 0.0001 lr_policy: "fixed" momentum: 0.9 weight_decay: 0.0005 random_seed: 1
display: 1 max_iter: 1000000 snapshot_after_train: false
END
  case $net in  # the peer's arguments
    lenet) shape=1x28x28 ;;
    alexnet) shape=3x227x227 ;;
    cifar10_full | seed_cifar_cnn) shape=3x32x32 ;;
    *) shape=3x224x224 ;;
  esac
  rm -f "$tree"/{one,two,torch_one,torch_two}
  for ((round = 0; round < rounds; ++round)); do
    # Turned round each time, as the machine may become slower.
    turns=(one two torch_one torch_two)
    [ $((round % 2)) -eq 0 ] || turns=(torch_two torch_one two one)
    for turn in "${turns[@]}"; do
      case $turn in
        one) OMP_NUM_THREADS=2 train "$batch" env ;;
        two) OMP_NUM_THREADS=1 train $((batch / 2)) mpirun -n 2 --use-hwthread-cpus --bind-to hwthread ;;
        torch_one) torch 1 ;;
        torch_two) torch 2 ;;
      esac
      echo "$ms" >>"$tree/$turn"
    done
  done
  for pair in one/two torch_one/torch_two torch_two/two; do
    paste "$tree/${pair%/*}" "$tree/${pair#*/}" | awk '{ print $1 / $2 }' >"$tree/${pair%/*}_by_${pair#*/}"
  done
  printf '| %s %d | %.1f | %.1f | %s | %.1f | %.1f | %s | %s |\n' "$net" "$batch" "$(middle <"$tree/one")" "$(middle <"$tree/two")" \
    "$(show one_by_two)" "$(middle <"$tree/torch_one")" "$(middle <"$tree/torch_two")" "$(show torch_one_by_torch_two)" "$(show torch_two_by_two)"
done
echo "load after: $(cut -d' ' -f1-3 /proc/loadavg)"
