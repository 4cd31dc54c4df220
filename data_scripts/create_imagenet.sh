#!/usr/bin/env bash
# Makes the databases (LMDB) and the mean image of ImageNet (ILSVRC 2012) from your own copy, which registered users get from
# image-net.org.
#
#   create_imagenet.sh DATA_DIR [OUT_DIR] [--size PIXELS] [--encoded] [--force]
#
# DATA_DIR: train, with a folder for each synset, such as n01440764, and val; or ILSVRC2012_img_train.tar and
# ILSVRC2012_img_val.tar, which are checked and unpacked there first. The classes of val are those of folders as in train, or of
# val.txt (lines "ILSVRC2012_val_00000001.JPEG 65"; it is in Caffe's caffe_ilsvrc12.tar.gz, which may be there unchanged), or of
# LOC_val_solution.csv (Kaggle's). OUT_DIR: where ilsvrc12_train_lmdb, ilsvrc12_val_lmdb, imagenet_mean.binaryproto and synsets.txt
# go (data/ilsvrc12 in this repository). --size: height and width of the pictures (256). --encoded: keep them as JPEG, a fifth of
# the space and more work for the processors. --force: replace existing results. Classes are numbered in the order of their synsets'
# names, as everywhere. An interrupted unpacking resumes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

size=256 default_out=$root/data/ilsvrc12
parse_create "" "$@"
[ -n "$data" ] || die "which folder has ImageNet? create_imagenet.sh DATA_DIR; -h tells what it holds"
[ -d "$data" ] || die "$data is no folder"
data=$(cd "$data" && pwd)
need_tools convert_imageset compute_image_mean
results=(ilsvrc12_train_lmdb ilsvrc12_val_lmdb imagenet_mean.binaryproto synsets.txt)
refuse_existing "${results[@]}"

check_archive() {  # NAME SUM: the MD5 published by image-net.org
  echo "checking $data/$1"
  has_sum "$data/$1" "$2" || die "$data/$1 is damaged or not whole (its MD5 is not $2)"
}

# The archive for training has one for each synset. A folder gets its name when it is complete.
unpack_train() {
  check_archive ILSVRC2012_img_train.tar md5:1d675b47d978889d74fa0da5fadfb00e
  echo "unpacking ILSVRC2012_img_train.tar"
  mkdir -p "$data/train"
  export train=$data/train
  # shellcheck disable=SC2016
  tar -xf "$data/ILSVRC2012_img_train.tar" --to-command='
    synset=${TAR_FILENAME##*/}; synset=${synset%.tar}; folder=$train/$synset
    if [ -d "$folder" ]; then cat >/dev/null; exit 0; fi
    rm -rf "$folder.part" && mkdir "$folder.part" && tar -xf - -C "$folder.part" && mv "$folder.part" "$folder"' ||
    die "ILSVRC2012_img_train.tar cannot be unpacked; the same command goes on"
  : >"$data/train/.whole"
}
unpack_val() {
  check_archive ILSVRC2012_img_val.tar md5:29b22e2961454d5413ddabcf34fc5622
  echo "unpacking ILSVRC2012_img_val.tar"
  rm -rf "$data/val.part"
  mkdir "$data/val.part"
  tar -xf "$data/ILSVRC2012_img_val.tar" -C "$data/val.part" || die "ILSVRC2012_img_val.tar cannot be unpacked"
  mv "$data/val.part" "$data/val"
}

if [ -f "$data/ILSVRC2012_img_train.tar" ] && [ ! -e "$data/train/.whole" ]; then unpack_train; fi
if [ -f "$data/ILSVRC2012_img_val.tar" ] && [ ! -d "$data/val" ]; then unpack_val; fi
for part in train val; do
  [ -d "$data/$part" ] || die "$data has neither the folder $part nor ILSVRC2012_img_$part.tar"
done

make_work
(cd "$data/train" && find . -mindepth 1 -maxdepth 1 -type d -name 'n[0-9]*' ! -name '*.part' -printf '%f\n') | LC_ALL=C sort \
  >"$work/synsets.txt"
[ -s "$work/synsets.txt" ] || die "$data/train has no folder of a synset, such as n01440764"

# FOLDER: "synset/picture class" of folders of synsets.
listed() {
  (cd "$data/$1" && find . -mindepth 2 -maxdepth 2 -type f -printf '%P\n') | LC_ALL=C sort |
    awk -F/ 'NR == FNR { number[$1] = NR - 1; next } $1 in number { print $0 " " number[$1] }' "$work/synsets.txt" -
}
# The numbers of the pictures of val, if they are in one folder.
numbered() {
  local list=$data/val.txt
  if [ ! -f "$list" ] && [ -f "$data/caffe_ilsvrc12.tar.gz" ]; then
    list=$work/val_of_caffe.txt
    tar -xzOf "$data/caffe_ilsvrc12.tar.gz" --wildcards '*val.txt' >"$list" || die "$data/caffe_ilsvrc12.tar.gz has no val.txt"
  fi
  if [ -f "$list" ]; then
    awk -v last="$(wc -l <"$work/synsets.txt")" 'NF != 2 || $2 !~ /^[0-9]+$/ || $2 >= last { print FNR; exit }' "$list" >"$work/wrong"
    [ ! -s "$work/wrong" ] || die "$list:$(cat "$work/wrong"): expected \"PICTURE CLASS\", with a class below $(wc -l <"$work/synsets.txt"). \
The devkit's ILSVRC2012_validation_ground_truth.txt has other numbers, which go by its meta.mat"
    cat "$list"
  elif [ -f "$data/LOC_val_solution.csv" ]; then
    tr -d '\r' <"$data/LOC_val_solution.csv" |
      awk -F'[, ]' 'NR == FNR { number[$1] = NR - 1; next } $2 in number { print $1 ".JPEG " number[$2] }' "$work/synsets.txt" - |
      LC_ALL=C sort
  else
    die "$data says nothing of the classes of val: put val.txt or caffe_ilsvrc12.tar.gz there, or LOC_val_solution.csv"
  fi
}
listed train >"$work/train.txt"
listed val >"$work/val.txt"
[ -s "$work/val.txt" ] || numbered >"$work/val.txt"
for part in train val; do
  [ -s "$work/$part.txt" ] || die "not one picture of $data/$part has a class"
  echo "making $out/ilsvrc12_${part}_lmdb of $(wc -l <"$work/$part.txt") pictures"
  options=(-resize_height="$size" -resize_width="$size" -shuffle)
  [ -z "$encoded" ] || options+=(-encoded -encode_type=jpg)
  "$tools/convert_imageset" "${options[@]}" "$data/$part/" "$work/$part.txt" "$work/ilsvrc12_${part}_lmdb" ||
    die "convert_imageset failed; nothing was changed in $out"
done
echo "making $out/imagenet_mean.binaryproto"
"$tools/compute_image_mean" -backend=lmdb "$work/ilsvrc12_train_lmdb" "$work/imagenet_mean.binaryproto" ||
  die "compute_image_mean failed; nothing was changed in $out"
move_results "${results[@]}"
