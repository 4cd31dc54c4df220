# For ranks.sh, which sources it and has set $tools, $what and RANDOM: a small net and its data in a folder of its own, $tree; runs
# that are started, waited for and judged. Nothing that it started remains when the script ends.
# shellcheck shell=bash disable=SC2034,SC2154

timeout=3 margin=10  # seconds
export OMP_NUM_THREADS=1 CREMA_FLAGS=
# As many ranks as a case needs, on any core.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none
tree=$(mktemp -d)
job='' disk='' spaces=''
left() {  # the living ranks: their command lines contain the folder of this script
  local pid
  for pid in $(pgrep -f "$tree/" || true); do
    if [ "$(readlink "/proc/$pid/exe" 2>/dev/null)" = "$tools/crema" ]; then echo "$pid"; fi
  done
}
delete_spaces() {
  local space pid
  for space in $spaces; do
    for pid in $(ip netns pids "$space" 2>/dev/null); do kill -9 "$pid" 2>/dev/null || true; done
    ip netns delete "$space" 2>/dev/null || true
  done
  spaces=''
}
leave() {
  local pid
  for pid in $job $(left); do kill -9 "$pid" 2>/dev/null || true; done
  delete_spaces
  [ -z "$disk" ] || umount -l "$disk" || true
  rm -rf "$tree"
}
trap leave EXIT
die() {
  local file
  echo "ranks.sh: ${what:+$what: }$*" >&2
  for file in out err; do
    if [ -s "$tree/$file" ]; then echo "--- the end of what it wrote to std$file" >&2; tail -n 25 "$tree/$file" >&2; fi
  done
  exit 1
}
mkdir -p "$tree"/{run,log}
cd "$tree" || exit 1
export GLOG_log_dir=$tree/log

# Pictures of noise, of ten classes.
make_data() {  # DATABASE PICTURES
  local i size
  size=$(printf '\\x00\\x00\\x%02x\\x%02x' $(($2 / 256)) $(($2 % 256)))
  { printf '%b' '\x00\x00\x08\x03' "$size" '\x00\x00\x00\x1c\x00\x00\x00\x1c'; head -c $(($2 * 784)) /dev/urandom; } >images
  { printf '%b' '\x00\x00\x08\x01' "$size"; for ((i = 0; i < $2; ++i)); do printf '%b' "\\x0$((i % 10))"; done; } >labels
  "$tools/crema" convert_mnist_data images labels "$1" >out 2>err || die "no database"
}
make_net() {  # DATABASE OUTPUTS
  cat <<END
name: "small_lenet"
layer { name: "data" type: "Data" top: "data" top: "label" data_param { source: "$1" batch_size: 12 backend: LMDB }
        transform_param { scale: 0.00390625 } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
        convolution_param { num_output: 8 kernel_size: 5 stride: 2 weight_filler { type: "xavier" } } }
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1" pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
layer { name: "ip1" type: "InnerProduct" bottom: "pool1" top: "ip1" inner_product_param { num_output: $2 weight_filler { type: "xavier" } } }
layer { name: "drop" type: "Dropout" bottom: "ip1" top: "ip1" }
layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2" inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }
END
}
make_solver() {  # NET RATE
  cat <<END
net: "$tree/$1" base_lr: $2 lr_policy: "fixed" momentum: 0.9 random_seed: 1 display: 1
max_iter: 100000000 snapshot: 20 keep_last: 3 snapshot_prefix: "$tree/run/a"
END
}
make_data data 400
make_net data 60 >net.prototxt
make_solver net.prototxt 0.01 >solver.prototxt

now() { echo $(($(date +%s%N) / 1000000)); }  # milliseconds
pause() { sleep "$(printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)))"; }
pick() { picked=$(((RANDOM * 32768 + RANDOM) % $1)); }  # a $(...) would draw the same number each time
launch=(mpirun)
program=("$tools/crema" train -solver "$tree/solver.prototxt")
start() {  # RANKS ARGUMENT...
  local ranks=$1
  shift
  rm -f log/* out err
  # In a separate process group: signals from a terminal to this script are not for the ranks.
  setsid "${launch[@]}" -n "$ranks" "${program[@]}" -batch_mode total -rank_timeout $timeout "$@" >out 2>err </dev/null &
  job=$! began=$(now)
}
pid_of() {  # RANK; nothing while there is none
  local pid
  for pid in $(left); do
    if tr '\0' '\n' 2>/dev/null <"/proc/$pid/environ" | grep -qx "OMPI_COMM_WORLD_RANK=$1"; then echo "$pid"; fi
  done
}
shown() { { sed -nE 's/.* Iteration ([0-9]+)[ ,].*/\1/p' err 2>/dev/null || true; } | tail -n 1; }
until_it_trains() {  # [ITERATION]
  while [ "$(shown | grep . || echo 0)" -lt "${1:-1}" ]; do
    kill -0 "$job" 2>/dev/null || die "the training has not begun"
    [ $(($(now) - began)) -lt 60000 ] || die "no iteration ${1:-1} after 60 s"
    sleep 0.05
  done
}
# Waits for the end of all. The exit code is in $code, the time since $acted in $took.
until_it_ends() {  # [SECONDS]
  local limit=$((1000 * ${1:-$((timeout + margin))}))
  while kill -0 $job 2>/dev/null || [ -n "$(left)" ]; do
    [ $(($(now) - acted)) -le $limit ] ||
      die "after $((limit / 1000)) s there still is: $(pgrep -af "$tree/" | cut -c 1-100 | paste -sd';')"
    sleep 0.05
  done
  took=$(($(now) - acted)) code=0
  wait $job || code=$?
  job=
}
error_lines() { grep -hE '^E[0-9]{4} ' err out || true; }
no_error() { [ -z "$(error_lines)" ] || die "unexpected: $(error_lines)"; }
says() {  # TEXT...: the only E line matches each
  local text lines
  lines=$(error_lines)
  [ "$(grep -c . <<<"$lines")" -eq 1 ] || die "expected one E line, found: ${lines:-none}"
  said=${lines#*] }
  for text in "$@"; do [[ $said =~ $text ]] || die "expected '$text' in: $said"; done
  [ "$code" -ne 0 ] || die "the exit code is 0"
}
# A lost rank is named, with its host and how far it was: ranks tell how far they are once a second.
says_who() {  # RANK HOW [HOST]
  says "rank $1 on ${3:-$(hostname)} " "$2" "last iteration ([0-9]+)"
  local last=${BASH_REMATCH[1]}
  [ "$last" -le $(($(shown) + 1)) ] || die "iteration $(shown) is the last in the log: $said"
  [ "$last" -ge "${reached:-0}" ] || die "2 s before it was at $reached: $said"
}
snapshots() { find "$tree/run/" -name 'a_iter_*.solverstate' | sed -E 's/.*_iter_([0-9]+)\..*/\1/' | sort -n; }
newest() { snapshots | tail -n 1; }
goes_on() {  # RANKS: from the newest complete snapshot
  local from
  from=$(newest)
  [ -n "$from" ] || die "no snapshot"
  start "$1" -snapshot auto -set max_iter=$((from + 3)) -set snapshot=0
  acted=$began
  local taken=$took
  until_it_ends 60
  took=$taken
  if [ "$code" -ne 0 ] || grep -q 'passes over' err; then die "$1 ranks do not go on from iteration $from, exit code $code"; fi
  [ "$(newest)" -eq $((from + 3)) ] || die "going on from iteration $from ended at $(newest)"
  rm -rf run/*
}
said='' reached=''
report() {
  printf '%-52s %5d ms  exit code %3d  %s\n' "$what" "$took" "$code" "$said"
  said='' reached=''
}
