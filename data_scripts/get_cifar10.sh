#!/usr/bin/env bash
# Gets CIFAR-10 (50000 + 10000 colour images, 32 x 32, ten classes) in its binary version: six .bin files.
#
#   get_cifar10.sh [OUT_DIR] [--from FOLDER_OR_ADDRESS]
#
# OUT_DIR: where the files go (data/cifar10 in this repository). --from: take them from a local folder with
# cifar-10-binary.tar.gz, the .bin files, or cifar-10-batches-bin with them, or the archive from another server. Each file is
# checked against its SHA-256; none appears before all six are correct. An interrupted download resumes, also in a later run.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

archive=cifar-10-binary.tar.gz
mirrors=(
  https://www.cs.toronto.edu/~kriz
  https://storage.googleapis.com/s4tf-hosted-binaries/datasets/CIFAR10
)
# SHA-256 of the files in the archive. https://www.cs.toronto.edu/~kriz/cifar.html publishes the archive's MD5 only, and a mirror
# may pack them again.
sums='cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5  data_batch_1.bin
a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed  data_batch_2.bin
bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67  data_batch_3.bin
014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48  data_batch_4.bin
755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add  data_batch_5.bin
8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b  test_batch.bin'

unpack() { tar -xzf "$1" -C "$work" --strip-components=1 2>/dev/null; }  # ARCHIVE

unpack_right() { unpack "$1" && check "$work"; }  # ARCHIVE

copy() {
  local folder
  for folder in "$from" "$from/cifar-10-batches-bin"; do
    [ -f "$folder/test_batch.bin" ] || continue
    cp -- "$folder"/data_batch_[1-5].bin "$folder/test_batch.bin" "$work" 2>/dev/null || true  # the check tells
    check "$work" || die "the .bin files in $folder are not CIFAR-10's six (one is missing or its SHA-256 differs)"
    return
  done
  [ -f "$from/$archive" ] || die "$from holds neither the .bin files nor $archive"
  unpack "$from/$archive" || die "$from/$archive is damaged"
  check "$work" || die "$from/$archive does not hold CIFAR-10's six .bin files (a SHA-256 differs)"
}

parse_get "$root/data/cifar10" "$@"
if check "$out"; then
  echo "$out: CIFAR-10 is there already, all checksums match"
  exit 0
fi

make_work
if [ -n "$from" ]; then
  copy
else
  fetch "$archive" "an archive with wrong checksums" " (162 MB)" unpack_right
fi
mv -f -- "$work"/data_batch_[1-5].bin "$work/test_batch.bin" "$out"
rm -f -- "$out/$archive.part"
echo "$out: CIFAR-10, all checksums match"
