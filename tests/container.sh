#!/usr/bin/env bash
# Carries out a Containerfile line by line, without a container engine: each stage is a Debian 12 that debootstrap makes in a temporary
# folder, or an empty one. Then it tries the image: two ranks train with that of tools/cluster, and a program in C computes a net with
# that of src/infer. Takes the time of a build, so it is not part of the suite.
#
#   container.sh [--no-build] [FILE]     FILE: tools/cluster/Containerfile, or src/infer/Containerfile
#                                        --no-build: up to the line that builds; TMPDIR needs 5 GB, else 2
# CMAKE_BUILD_PARALLEL_LEVEL limits the jobs of the build. Exit code 77: not root, no debootstrap, or no network.
set -euo pipefail
cd "$(dirname "$0")/.."
mirror=http://deb.debian.org/debian
die() { echo "container.sh: $*" >&2; exit 1; }
skip() { echo "skipped: $*"; exit 77; }
build=yes file=tools/cluster/Containerfile
for argument; do
  case $argument in
    --no-build) build= ;;
    tools/cluster/Containerfile | src/infer/Containerfile) file=$argument ;;
    *) die "unknown argument $argument (there are --no-build, tools/cluster/Containerfile and src/infer/Containerfile)" ;;
  esac
done
[ "$(id -u)" -eq 0 ] || skip "only root may chroot"
command -v debootstrap >/dev/null || skip "debootstrap is not installed (apt-get install debootstrap)"
curl -fsI --max-time 20 $mirror/dists/bookworm/Release >/dev/null || skip "$mirror cannot be reached"

tree=$(mktemp -d)
mounted=()
finish() {
  for folder in "${mounted[@]}"; do umount "$folder" || exit 1; done  # before anything in it is removed
  rm -rf --one-file-system "$tree"
}
trap finish EXIT
debootstrap --variant=minbase bookworm "$tree/base" $mirror >"$tree/log" 2>&1 || die "debootstrap fails: $(tail -n 3 "$tree/log")"

root='' folder=/ stage=0
environment=()
declare -A roots
within() {
  chroot "$root" /usr/bin/env -i HOME=/root PATH="$PATH" \
    ${CMAKE_BUILD_PARALLEL_LEVEL:+CMAKE_BUILD_PARALLEL_LEVEL="$CMAKE_BUILD_PARALLEL_LEVEL"} "${environment[@]}" /bin/sh -c "cd '$folder' && $1"
}
begin_stage() {  # IMAGE [AS NAME]
  stage=$((stage + 1)) root=$tree/stage$stage folder=/
  environment=()
  roots[${3:-$stage}]=$root
  case $1 in
    debian:bookworm) cp -a "$tree/base" "$root" ;;
    scratch) mkdir "$root" && return ;;
    *) die "FROM $1: only debian:bookworm and scratch are made here" ;;
  esac
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  mount -t proc proc "$root/proc"
  mounted+=("$root/proc")
}
copy() {  # [--from=STAGE] SOURCE... TARGET
  local from=. target=${*: -1}
  if [[ $1 == --from=* ]]; then from=${roots[${1#--from=}]} && shift; fi
  [[ $target == /* ]] || target=$folder/$target
  local sources=("${@:1:$#-1}")
  # As COPY does: the content of a folder, not the folder.
  for source in "${sources[@]}"; do
    [ -e "$from/$source" ] || die "COPY: there is no $source"
    if [ -d "$from/$source" ]; then
      mkdir -p "$root$target"
      cp -a "$from/$source/." "$root$target"
    else
      cp -a "$from/$source" "$root$target"
    fi
  done
}

while IFS= read -r line; do
  case $line in '' | '#'*) continue ;; esac
  echo "$line"
  read -r word rest <<<"$line"
  if [ -z "$build" ] && [[ $rest == *"cmake --build"* ]]; then
    echo "stopped before this line (--no-build)"
    exit 0
  fi
  case $word in
    FROM) # shellcheck disable=SC2086  # words
      begin_stage $rest ;;
    WORKDIR) folder=$rest && mkdir -p "$root$folder" ;;
    COPY) # shellcheck disable=SC2086
      copy $rest ;;
    ENV) # shellcheck disable=SC2206
      environment+=($rest) ;;
    RUN) within "$rest" >"$tree/log" 2>&1 </dev/null || die "this line fails: $(tail -n 20 "$tree/log")" ;;
    *) die "no rule for $word" ;;
  esac
done < <(sed -e '/^ *#/d' -e ':more; /\\$/ { N; s/\\\n *//; b more }' "$file")
size=$(du -sm --exclude=proc "$root" | cut -f1)

if [ "$file" = src/infer/Containerfile ]; then
  # The program is compiled where the libraries were, and runs without a system.
  image=$root root=${roots[build]} folder=/crema
  mkdir "$root/crema/program"
  cp tests/infer/speed.c tests/infer/lenet.prototxt "$root/crema/program"
  within "cc -std=c99 -D_POSIX_C_SOURCE=200809L program/speed.c -I/opt/crema/include -L/opt/crema/lib -Wl,-rpath,/opt/crema/lib \
    -lcrema_infer -lpthread -o program/speed" || die "the program cannot be compiled"
  cp "$root/crema/program/"{speed,lenet.prototxt} "$image"
  for _ in 1 2 3 4 5; do
    begin=$(date +%s%N)
    chroot "$image" /speed lenet.prototxt - first || die "the program does not run in the image"
    echo "from start to end with one result of LeNet: $((($(date +%s%N) - begin) / 1000000)) ms"
  done
  echo "the image has $size MB"
  exit 0
fi

# The image's purpose: two ranks train, and sshd accepts its settings.
cat >"$root/training/net.prototxt" <<'END'
layer { name: "data" type: "DummyData" top: "x" top: "y"
  dummy_data_param { shape { dim: 4 dim: 50 } shape { dim: 4 dim: 3 } data_filler { type: "gaussian" } data_filler { type: "uniform" } } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "z" inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "EuclideanLoss" bottom: "z" bottom: "y" top: "loss" }
END
echo 'net: "net.prototxt" base_lr: 0.01 lr_policy: "fixed" max_iter: 20 snapshot_prefix: "a"' >"$root/training/solver.prototxt"
version=$(within "crema -version")
[[ $version == *MPI* ]] || die "the image's program has no MPI: $version"
within "mpirun -n 2 --oversubscribe crema train -solver solver.prototxt" >"$tree/log" 2>&1 || die "two ranks do not train: $(tail "$tree/log")"
[ -s "$root/training/a_iter_20.caffemodel" ] || die "the training has left no weights"
within "/usr/sbin/sshd -t" || die "sshd refuses its settings"
echo "the image trains with two ranks; its last stage has $size MB"
