#!/usr/bin/env bash
# A Debian package: makes one, installs it into a bare system that debootstrap makes, and trains LeNet there as an ordinary user: with
# `crema`, with Caffe's names and with the Python module.
#
#   deb.sh [PACKAGE] [SUITE ...]   suites: bookworm, noble (default: bookworm); without a package it is built into build/deb-tree, which
#                                  takes a build's time: not part of the suite
# Exit code 77: not root, no debootstrap, or no network.
set -euo pipefail
package=
case ${1:-} in *.deb) package=$(realpath "$1"); shift ;; esac
suites=("$@")
[ $# -gt 0 ] || suites=(bookworm)
cd "$(dirname "$0")/.."
die() { echo "deb.sh: $*" >&2; exit 1; }
skip() { echo "skipped: $*"; exit 77; }
[ "$(id -u)" -eq 0 ] || skip "only root may chroot"
command -v debootstrap >/dev/null || skip "debootstrap is not installed (apt-get install debootstrap)"

work=$(mktemp -d)
tree=
finish() {
  if [ -n "$tree" ] && mountpoint -q "$tree/proc"; then umount "$tree/proc" || exit 1; fi  # before anything in it is removed
  rm -rf --one-file-system "$work"
}
trap finish EXIT
if [ -z "$package" ]; then
  # OpenCV's own codecs bring 130 libraries.
  { cmake -S . -B build/deb-tree -G Ninja -DCREMA_CUDA="${CREMA_CUDA:-OFF}" -DCREMA_MARCH=portable -DCREMA_OPENCV_CODECS=OFF \
      -DCREMA_TESTS=OFF -DCMAKE_UNITY_BUILD=ON && cmake --build build/deb-tree && cpack --config build/deb-tree/CPackConfig.cmake -B "$work/made"
  } >"$work/log" 2>&1 || die "no package: $(tail -n 40 "$work/log")"
  package=$(ls "$work"/made/*.deb)
  cp "$package" build/
fi
size=$(stat -c %s "$package")
[ "${CREMA_CUDA:-OFF}" != OFF ] || [ "$size" -lt 60000000 ] || die "$package has $size bytes"

for suite in "${suites[@]}"; do
  case $suite in
    bookworm) mirror=http://deb.debian.org/debian python=3.11 ;;
    noble) mirror=http://archive.ubuntu.com/ubuntu python=3.12 ;;
    *) die "unknown suite $suite (there are bookworm and noble)" ;;
  esac
  curl -fsI --max-time 20 $mirror/dists/$suite/Release >/dev/null || skip "$mirror cannot be reached"
  tree=$work/$suite
  options=(--variant=minbase)
  [ $suite = bookworm ] || options+=(--components=main,universe)
  [ $suite = bookworm ] || [ -e /usr/share/keyrings/ubuntu-archive-keyring.gpg ] || options+=(--no-check-gpg)
  script=()  # Debian's debootstrap knows Ubuntu's older releases only, which are made alike
  [ $suite = bookworm ] || script=(/usr/share/debootstrap/scripts/gutsy)
  debootstrap "${options[@]}" $suite "$tree" $mirror "${script[@]}" >"$work/log" 2>&1 || die "debootstrap fails: $(tail -n 3 "$work/log")"
  mount -t proc proc "$tree/proc"
  cp "$package" "$tree/tmp/crema.deb"
  inside() { chroot "$tree" /usr/bin/env -i HOME="$1" PATH=/usr/bin:/bin:/usr/sbin:/sbin DEBIAN_FRONTEND=noninteractive "${@:2}" >"$work/log" 2>&1; }
  as_root() { inside /root "$@" || die "$suite: $* fails: $(tail -n 40 "$work/log")"; }
  start=$SECONDS
  as_root apt-get install -y --no-install-recommends /tmp/crema.deb
  seconds=$((SECONDS - start))
  as_root useradd --create-home user
  cat >"$tree/home/user/try.sh" <<'END'
set -eu
cd ~
crema -version
grep -q SYNOPSIS /usr/share/man/man1/crema-train.1
mkdir -p data/digits
# The classes in IDX files: what needs no network. A stripe at the place of the label is easy to learn.
for part in train test; do
  { printf '\0\0\10\3\0\0\2\0\0\0\0\34\0\0\0\34'
    for i in $(seq 0 511); do
      head -c $((i % 10 * 56 + 112)) /dev/zero; head -c 112 /dev/zero | tr '\0' '\377'; head -c $((560 - i % 10 * 56)) /dev/zero
    done; } >$part.images
  { printf '\0\0\10\1\0\0\2\0'; for i in $(seq 0 511); do printf "\\$(printf %o $((i % 10)))"; done; } >$part.labels
  crema convert_mnist_data $part.images $part.labels data/digits/digits_${part}_lmdb
done
PATH=/opt/crema/bin:$PATH
train -solver /opt/crema/share/crema/models/lenet/digits_solver.prototxt -set max_iter=60 -set display=20 -set test_iter=5 \
  -set test_interval=60 -set snapshot_prefix=net 2>&1 | tee log
caffe test -model /opt/crema/share/crema/models/lenet/digits_train_val.prototxt -weights net_iter_60.caffemodel -iterations 5
END
  chroot "$tree" su - user -c 'bash try.sh' >"$work/log" 2>&1 || die "$suite: $(tail -n 40 "$work/log")"
  accuracy=$(sed -n 's/.*accuracy = \([0-9.]*\).*/\1/p' "$work/log" | tail -n 1)
  awk "BEGIN { exit !(${accuracy:-0} > 0.95) }" || die "$suite: LeNet has not learned: $(tail -n 40 "$work/log")"
  # The module, where the system's Python is the one that it was built for.
  if dpkg-deb -c "$package" | grep -q "_crema.cpython-${python/./}-"; then
    as_root apt-get install -y --no-install-recommends python3-numpy python3-protobuf
    chroot "$tree" su - user -c "python3 -c 'import caffe, crema; assert caffe.Net is crema.Net; print(crema.__file__)'" >"$work/log" 2>&1 ||
      die "$suite: $(cat "$work/log")"
  fi
  as_root apt-get remove -y crema
  [ ! -e "$tree/opt/crema/bin" ] && [ ! -L "$tree/usr/bin/crema" ] || die "$suite: files are left after removal"
  echo "$suite: $(basename "$package"), $size bytes, installed in $seconds s; LeNet learned there, accuracy $accuracy"
  umount "$tree/proc"
  tree=
done
