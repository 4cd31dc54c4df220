#!/usr/bin/env bash
# Tests runs with several processes ("ranks") under mpirun in which one of them, its disk, its files or its network fails. The run
# must end within -rank_timeout and 10 s, leave no process, report in exactly one E line the rank, its host and the iteration, and
# leave snapshots that another number of ranks can resume.
#
#   ranks.sh [BUILD_FOLDER [CASES [COUNT [SEED]]]]        exit code 77: something is missing that it needs
#
# CASES: short, all, or names by commas: kill, stop, terminate, signal, disk, differ, cut, random. COUNT: of random kills and stops.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build} cases=${2:-all} count=${3:-50}
RANDOM=${4:-1}
[ "$cases" != short ] || cases=kill,stop,terminate
[ "$cases" != all ] || cases=kill,stop,signal,disk,differ,cut,random
tools=$(cd "$build/tools" && pwd -P)
[[ $(mpirun --version 2>&1) == *"Open MPI"* ]] || { echo "skipped: needs Open MPI's mpirun"; exit 77; }
[ -e "$build/lib/libcrema_mpi.so" ] || { echo "skipped: the build has no MPI"; exit 77; }

what=''
# shellcheck source=tests/ranks_support.sh
. tests/ranks_support.sh

# Without which nothing below means anything.
undisturbed() {
  what="undisturbed, 2 ranks"
  start 2 -set max_iter=45
  acted=$began
  until_it_trains
  begin=$(($(now) - began))  # start-up time in milliseconds
  until_it_ends 60
  [ "$code" -eq 0 ] || die "exit code $code"
  no_error
  [ "$(snapshots | paste -sd' ')" = "20 40 45" ] || die "snapshots of iterations $(snapshots | paste -sd' '), expected 20 40 45"
  report
  goes_on 3
}

# SIGNAL HOW RANKS: one rank gets it.
lose() {
  local signal=$1 how=$2 ranks=$3
  pick "$ranks"
  local rank=$picked
  what="SIG$signal for rank $rank of $ranks"
  start "$ranks"
  until_it_trains 45
  reached=$(shown)
  pick 1000
  pause $((2000 + picked))
  kill -"$signal" "$(pid_of "$rank")"
  acted=$(now)
  until_it_ends
  says_who "$rank" "$how"
  report
  goes_on $((5 - ranks))
}
kill_case() { lose KILL "has ended" 2; }
stop_case() { lose STOP "has been silent for" 3; }

# SIGNAL TO RANKS: TO is a rank or mpirun. All end with one snapshot.
ask() {
  local signal=$1 to=$2 ranks=$3
  what="SIG$signal for ${2/[0-9]/rank $2} of $ranks"
  # When asked to stop, mpirun waits this many seconds, sends SIGTERM, waits once more and sends SIGKILL. Meanwhile it does not read
  # the ranks' output, so a rank that writes 64 KiB then also waits.
  local launch=(mpirun --mca odls_base_sigkill_timeout 2)
  start "$ranks" -set snapshot=0 -set display=50
  until_it_trains 5
  pick 500
  pause "$picked"
  local pid=$job
  [ "$to" = mpirun ] || pid=$(pid_of "$to")
  kill -"$signal" "$pid"
  acted=$(now)
  until_it_ends
  no_error
  [ "$to" = mpirun ] || [ "$code" -eq 0 ] || die "exit code $code"
  [ "$(snapshots | wc -l)" -eq 1 ] || die "expected one snapshot, found those of iterations: $(snapshots | paste -sd' ')"
  said="one snapshot, of iteration $(newest)"
  report
  goes_on $((5 - ranks))
}
terminate_case() { ask TERM 1 2; }
signal_case() {
  local signal
  for signal in TERM INT; do
    ask $signal 0 2
    ask $signal 2 3
    ask $signal mpirun 2
  done
}

# Rank 0 has no room for a snapshot: what becomes of the training is what becomes of one by a single process.
disk_case() {
  if ! mount -t tmpfs -o size=64k tmpfs run 2>/dev/null; then echo "disk: left out: mounting a small disk needs root's rights"; return; fi
  disk=$tree/run
  what="full disk, one process"
  acted=$(now) code=0
  "${program[@]}" -set max_iter=45 >out 2>err </dev/null || code=$?
  took=$(($(now) - acted))
  local alone=$code
  room() { error_lines | sed -E 's/.*] //; s/only [0-9.]+ KiB/only some KiB/'; }
  room >alone
  [ -z "$(snapshots)" ] || die "the disk is not small enough"
  report
  what="full disk, 2 ranks"
  start 2 -set max_iter=45
  acted=$began
  until_it_ends 60
  [ "$((code != 0))" -eq "$((alone != 0))" ] || die "exit code $code, but $alone of one process"
  room | diff alone - >&2 || die "other errors than of one process"
  said="$(room | wc -l) E lines, as of one process"
  report
  what="full disk, then room"
  start 2 -set max_iter=100000
  until_it_trains 25
  mount -o remount,size=16m "$disk"
  until_it_trains $(($(shown) + 60))
  kill -TERM "$(pid_of 1)"
  acted=$(now)
  until_it_ends
  [ "$code" -eq 0 ] || die "exit code $code"
  said="newest snapshot $(newest)"
  report
  goes_on 3
  umount "$disk"
  disk=
}

# Rank 1 finds different files behind the same names, or gets different arguments.
differ() {  # WHAT TEXT ARGUMENTS..., which are those of rank 1, or begin with "both"
  local text=$2 both=()
  what="rank 1 has $1"
  shift 2
  if [ "${1:-}" = both ]; then both=("${@:2}") && shift $#; fi
  cat >choose.sh <<END
#!/bin/sh
[ "\$OMPI_COMM_WORLD_RANK" != 1 ] || { cd "$tree/other" && exec "$tools/crema" train "\$@" $*; }
exec "$tools/crema" train "\$@"
END
  chmod +x choose.sh
  local program=("$tree/choose.sh" -solver "$tree/solver.prototxt")
  start 2 -set max_iter=45 ${both[@]+"${both[@]}"}
  acted=$began
  until_it_ends 60
  says "rank 1" "$text"
  report
  rm -rf run/* other
  mkdir other
  ln -s ../data other/data
}
differ_case() {
  mkdir other
  ln -s ../data other/data
  make_net data 61 >other_net.prototxt
  make_solver other_net.prototxt 0.01 >solver_of_other_net.prototxt
  make_solver net.prototxt 0.02 >other_solver.prototxt
  differ "another net" "another net" -solver "$tree/solver_of_other_net.prototxt"
  differ "another solver" "another solver" -solver "$tree/other_solver.prototxt"
  differ "another -batch_mode" "batch_mode" -batch_mode per_gpu
  differ "no solver file" "absent.prototxt" -solver "$tree/absent.prototxt"
  rm other/data
  make_data other/data 300
  differ "other data" "training data" both
  local rank
  for rank in . other; do
    "${program[@]}" -set max_iter=5 -set random_seed=$((2 + ${#rank})) >out 2>err || die "no weights"
    mv run/a_iter_5.caffemodel $rank/start.caffemodel
    rm -rf run/*
  done
  differ "other weights" "weights" both -weights start.caffemodel
  differ "no weights" "absent.caffemodel" -weights "$tree/absent.caffemodel"
}

# Two network namespaces, a rank in each, and the link between them is cut.
cut_case() {
  local a=crema-a-$$ b=crema-b-$$
  if ! ip netns add $a 2>/dev/null || ! unshare --uts true 2>/dev/null; then
    echo "cut: left out: network namespaces need iproute2 and root's rights"
    ip netns delete $a 2>/dev/null || true
    return
  fi
  spaces=$a
  ip netns add $b
  spaces="$a $b"
  ip link add link_a netns $a type veth peer name link_b netns $b
  ip -n $a address add 10.91.7.1/24 dev link_a
  ip -n $b address add 10.91.7.2/24 dev link_b
  local space
  for space in $spaces; do ip -n "$space" link set lo up; done
  ip -n $a link set link_a up
  ip -n $b link set link_b up
  cat >agent.sh <<END
#!/bin/sh
# HOST COMMAND...: as ssh does
[ "\$1" = 10.91.7.1 ] && space=$a || space=$b
shift
exec ip netns exec \$space unshare --uts sh -c "hostname \$space; \$*"
END
  chmod +x agent.sh
  local launch=("$tree/agent.sh" 10.91.7.1 exec mpirun --mca plm_rsh_agent "$tree/agent.sh" --mca oob_tcp_if_include 10.91.7.0/24
    --mca btl "tcp,self" --mca btl_tcp_if_include 10.91.7.0/24 -host "10.91.7.1:1,10.91.7.2:1")
  what="two hosts, undisturbed"
  start 2 -set max_iter=45
  acted=$began
  until_it_ends 60
  [ "$code" -eq 0 ] || die "exit code $code"
  no_error
  report
  rm -rf run/*

  what="two hosts, one rank killed"
  start 2
  until_it_trains 45
  kill -9 "$(pid_of 1)"
  acted=$(now)
  until_it_ends
  says_who 1 "has ended" $b
  report
  rm -rf run/*

  what="two hosts, the link cut"
  start 2
  until_it_trains 45
  reached=$(shown)
  pause 2000
  ip -n $a link set link_a down
  acted=$(now)
  while [ -n "$(left)" ]; do
    [ $(($(now) - acted)) -le $((1000 * (timeout + margin))) ] || die "ranks are left: $(left | paste -sd' ')"
    sleep 0.05
  done
  took=$(($(now) - acted)) code=1
  says_who 1 "has been silent for" $b  # rank 1's messages cannot get through
  report
  # mpirun and its daemon wait for each other for ever.
  delete_spaces
  { kill -9 $job && wait $job; } 2>/dev/null || true
  job=''
  launch=(mpirun)
  goes_on 3
}

# Kills and stops of random ranks at random instants, also while they start.
random_case() {
  local trial ranks rank signal early
  local -A tally=()
  for ((trial = 1; trial <= count; ++trial)); do
    pick 2
    ranks=$((2 + picked))
    pick "$ranks"
    rank=$picked
    pick 2
    signal=KILL
    [ "$picked" -eq 0 ] || signal=STOP
    pick 4
    early=$((picked == 0))
    # MPI_Init waits without limit for a rank that is stopped in it; of one that has ended mpirun knows.
    [ $early -eq 0 ] || signal=KILL
    what="random $trial: SIG$signal for rank $rank of $ranks"
    start "$ranks"
    if [ $early -eq 1 ]; then
      what+=", starting"
      while [ -z "$(pid_of "$rank")" ]; do
        kill -0 $job 2>/dev/null || die "it ended before rank $rank began"
        sleep 0.01
      done
      pick "$begin"
      pause "$picked"
    else
      until_it_trains 21
      pick 2000
      pause "$picked"
    fi
    # The snapshot of iteration 20 may be written still, not that of iteration 0.
    local trained=$(($(shown | grep . || echo 0)))
    kill -$signal "$(pid_of "$rank")"
    acted=$(now)
    until_it_ends
    [ "$code" -ne 0 ] || die "the exit code is 0"
    if [ "$trained" -gt 0 ]; then
      says_who "$rank" "has ended|has been silent for"
    elif [ "$(error_lines | wc -l)" -gt 1 ]; then
      die "expected at most one E line, found: $(error_lines)"
    else  # for a rank that ends before all are connected, mpirun may report alone
      said=$(error_lines | sed 's/.*] //')
    fi
    report
    tally[$signal]=$((${tally[$signal]:-0} + 1))
    [ -z "$(newest)" ] || goes_on $((5 - ranks))
    rm -rf run/*
  done
  echo "$count random failures: ${tally[KILL]:-0} kills, ${tally[STOP]:-0} stops"
}

undisturbed
for name in ${cases//,/ }; do
  declare -F "${name}_case" >/dev/null || die "no case $name"
  "${name}_case"
done
