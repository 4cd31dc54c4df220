#!/usr/bin/env bash
# Gets CIFAR-100 (50000 + 10000 colour images, 32 x 32, 100 classes in 20 superclasses) in its binary version.
#
#   get_cifar100.sh [OUT_DIR] [--from FOLDER_OR_ADDRESS]
#
# OUT_DIR: where train.bin, test.bin and the names of the classes go (data/cifar100 in this repository). --from: take
# cifar-100-binary.tar.gz from a local folder, or from another server. It is checked against its MD5; nothing appears before it is
# correct. An interrupted download resumes, also in a later run.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

archive=cifar-100-binary.tar.gz
mirrors=(https://www.cs.toronto.edu/~kriz)
# The MD5 that https://www.cs.toronto.edu/~kriz/cifar.html states.
sum=md5:03b5dce01913d631647c71ecec9e9cb8

parse_get "$root/data/cifar100" "$@"
if recorded; then
  echo "$out: CIFAR-100 is there already, and as it was unpacked"
  exit 0
fi

make_work
get_packed "$archive" "$sum" " (161 MB)"
tar -xzf "$got" -C "$work" --strip-components=1 || die "$got cannot be unpacked"
files=(train.bin test.bin fine_label_names.txt coarse_label_names.txt)
record "${files[@]}"
for name in "${files[@]}" SHA256SUMS; do mv -f -- "$work/$name" "$out/$name"; done
[ -z "$ours" ] || rm -f -- "$got"
echo "$out: CIFAR-100, the checksum matches"
