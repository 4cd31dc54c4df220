#!/usr/bin/env bash
# Gets Fashion-MNIST (60000 + 10000 pictures of clothes, 28 x 28 grey, ten classes) as four IDX files, as for MNIST.
#
#   get_fashion_mnist.sh [OUT_DIR] [--from FOLDER_OR_ADDRESS]
#
# OUT_DIR: where the files go (data/fashion_mnist in this repository). --from: take the four .gz files from a local folder, or
# from another server. Each of these is checked against its MD5; nothing appears before all four are correct. An interrupted
# download resumes, also in a later run. Then: create_fashion_mnist.sh
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

mirrors=(
  http://fashion-mnist.s3-website.eu-central-1.amazonaws.com
  https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion
)
# The MD5 sums that the README of github.com/zalandoresearch/fashion-mnist states.
packed='md5:8d4fb7e6c68d591d4c3dfef9ec88bf0d  train-images-idx3-ubyte
md5:25c81989df183df01b3e8a0aad5dffbe  train-labels-idx1-ubyte
md5:bef4ecab320f06d8554ea6380940ec79  t10k-images-idx3-ubyte
md5:bb300cfdad3c16e7a12a480ee83cd310  t10k-labels-idx1-ubyte'

parse_get "$root/data/fashion_mnist" "$@"
if recorded; then
  echo "$out: Fashion-MNIST is there already, and as it was unpacked"
  exit 0
fi

make_work
names=()
while read -r sum name; do
  get_packed "$name.gz" "$sum"
  gzip -dc -- "$got" >"$work/$name" || die "$got cannot be unpacked"
  names+=("$name")
done <<<"$packed"
record "${names[@]}"
for name in "${names[@]}" SHA256SUMS; do mv -f -- "$work/$name" "$out/$name"; done
for name in "${names[@]}"; do rm -f -- "$out/$name.gz.part"; done
echo "$out: Fashion-MNIST, all checksums match"
