#!/usr/bin/env bash
# Gets MNIST (60000 + 10000 handwritten digits, 28 x 28 grey) as its four IDX files.
#
#   get_mnist.sh [OUT_DIR] [--from FOLDER_OR_ADDRESS]
#
# OUT_DIR: where the files go (data/mnist in this repository). --from: take them from a local folder, packed (.gz) or not, or
# from another server. Each file is checked against its SHA-256; none appears before all four are correct. An interrupted
# download resumes, also in a later run.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# The original server often refuses, so the mirrors that the large frameworks use come first.
mirrors=(
  https://ossci-datasets.s3.amazonaws.com/mnist
  https://storage.googleapis.com/cvdf-datasets/mnist
  http://yann.lecun.com/exdb/mnist
)
# SHA-256 of the unpacked files, because a mirror may pack them again. The publisher states no
# checksum.
sums='ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db  train-images-idx3-ubyte
65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5  train-labels-idx1-ubyte
0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7  t10k-images-idx3-ubyte
ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2  t10k-labels-idx1-ubyte'

# PACKED NAME
unpack() { gzip -dc -- "$1" >"$work/$2" 2>/dev/null; }
unpack_right() { unpack "$1" "$2" && check "$work" "$2"; }

copy_one() {  # NAME
  local name=$1
  if [ -f "$from/$name" ]; then
    cp -- "$from/$name" "$work/$name" || die "cannot copy $from/$name"
  elif [ -f "$from/$name.gz" ]; then
    unpack "$from/$name.gz" "$name" || die "$from/$name.gz is damaged"
  else
    die "$from holds neither $name nor $name.gz"
  fi
  check "$work" "$name" || die "$name in $from is not MNIST's file (its SHA-256 differs)"
}

parse_get "$root/data/mnist" "$@"
if check "$out"; then
  echo "$out: MNIST is there already, all checksums match"
  exit 0
fi

make_work
names=$(cut -d' ' -f3 <<<"$sums")
for name in $names; do
  if [ -n "$from" ]; then
    copy_one "$name"
  else
    fetch "$name.gz" "a file with a wrong checksum" "" unpack_right "$name"
  fi
done
for name in $names; do mv -f -- "$work/$name" "$out/$name" && rm -f -- "$out/$name.gz.part"; done
echo "$out: MNIST, all checksums match"
