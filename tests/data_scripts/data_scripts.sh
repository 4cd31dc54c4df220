#!/usr/bin/env bash
# The get_ and create_ scripts of data sets with small data and a local server: downloads that are interrupted, resumed, wrong and
# refused, and the results.
#
#   data_scripts.sh [BUILD_FOLDER]        exit code 77: something is missing that it needs
set -euo pipefail
cd "$(dirname "$0")/../.."
tools=$(cd "${1:-build}/tools" && pwd)
top=$PWD
die() { echo "data_scripts.sh: $*" >&2; exit 1; }
command -v curl >/dev/null || { echo "skipped: needs curl"; exit 77; }
python=/usr/bin/python3
"$python" -c 'import numpy, PIL' 2>/dev/null || { echo "skipped: needs python3-numpy and python3-pil"; exit 77; }

tree=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$tree"' EXIT
[ -d "$tree" ] || die "no temporary folder"  # whatever is removed below is in it
mkdir -p "$tree"/{data_scripts,build,served,made,out}
cp data_scripts/*.sh "$tree/data_scripts/"
ln -s "$tools" "$tree/build/tools"
# A build folder of a moved tree is configured again, one of this location is not.
mkdir "$tree/bin"
printf '#!/bin/sh\necho "$@"\n' >"$tree/bin/cmake"
chmod +x "$tree/bin/cmake"
configured() {  # TREE
  printf 'CMAKE_CACHEFILE_DIR:INTERNAL=%s/build\nCMAKE_HOME_DIRECTORY:INTERNAL=%s\n' "$1" "$1" >"$tree/build/CMakeCache.txt"
  PATH=$tree/bin:$PATH bash "$tree/data_scripts/configure.sh" -DX=1
}
[ "$(configured "$tree")" = "-S . -B build -G Ninja -DX=1" ] || die "configure.sh: $(configured "$tree")"
[[ $(configured /gone) == "build/ was made in /gone:"*"--fresh -S . -B build -G Ninja -DX=1" ]] ||
  die "configure.sh after a move: $(configured /gone)"
rm "$tree/build/CMakeCache.txt"

"$python" data_scripts/make_shapes.py "$tree/made" --train 6 --test 3 --size 48 >/dev/null
"$python" tests/data_scripts/small_sets.py "$tree/made" "$tree/served"

# The sums in the scripts become those of the small archives: SCRIPT FILE KIND PLACE
put_sum() {
  local sum
  sum=$("${3}sum" <"$2" | cut -d' ' -f1)
  sed -i -E "s#(^|[ '=:])[0-9a-f]{32,64}(.*$4)#\1$sum\2#" "$tree/data_scripts/$1"
  grep -q "$sum" "$tree/data_scripts/$1" || die "$1 has no sum of $4"
}
for name in train-images-idx3-ubyte train-labels-idx1-ubyte t10k-images-idx3-ubyte t10k-labels-idx1-ubyte; do
  gzip -dc "$tree/served/$name.gz" >"$tree/made/$name"
  put_sum get_mnist.sh "$tree/made/$name" sha256 "  $name"
  put_sum get_fashion_mnist.sh "$tree/served/$name.gz" md5 "  $name"
done
for name in data_batch_{1..5}.bin test_batch.bin; do put_sum get_cifar10.sh "$tree/made/cifar-10-batches-bin/$name" sha256 "  $name"; done
put_sum get_cifar100.sh "$tree/served/cifar-100-binary.tar.gz" md5 '$'
# In the others the sum follows the name.
for pair in get_voc.sh/VOC{trainval_06-Nov-2007,test_06-Nov-2007,trainval_11-May-2012}.tar \
  get_coco.sh/{annotations_trainval2017,val2017,train2017}.zip create_imagenet.sh/ILSVRC2012_img_{train,val}.tar; do
  sum=$(md5sum <"$tree/served/${pair#*/}" | cut -d' ' -f1)
  sed -i -E "s#([/ ]${pair#*/} md5:)[0-9a-f]{32}#\1$sum#" "$tree/data_scripts/${pair%/*}"
  grep -q "$sum" "$tree/data_scripts/${pair%/*}" || die "${pair%/*} has no sum of ${pair#*/}"
done

coproc SERVER { exec "$python" "$top/tests/weights/range_server.py" "$tree/served"; }
server=$SERVER_PID
read -r port <&"${SERVER[0]}"
address=http://127.0.0.1:$port

# EXIT_CODE SCRIPT ARGUMENT...: runs a script in an empty environment of proxies and flags; what it says is in $said.
run() {
  local expected=$1 script=$2 code=0
  shift 2
  said=$(env -i HOME="$tree" PATH="$PATH" OMP_NUM_THREADS=1 bash "$tree/data_scripts/$script" "$@" 2>&1 </dev/null) || code=$?
  [ "$code" -eq "$expected" ] || die "$script $*: exit code $code, expected $expected; it said: $said"
}
says() { [[ $said == *"$1"* ]] || die "expected '$1' in: $said"; }
holds() {  # FOLDER NAME...: exactly these
  local found
  found=$(LC_ALL=C ls -A "$tree/$1" | paste -sd' ')
  shift
  [ "$found" = "$*" ] || die "expected '$*', found '$found'"
}
requests() { if [ -e "$tree/served/requests" ]; then wc -l <"$tree/served/requests"; else echo 0; fi; }
fresh() { rm -rf "$tree/out" "$tree/served/requests"; }
idx="t10k-images-idx3-ubyte t10k-labels-idx1-ubyte train-images-idx3-ubyte train-labels-idx1-ubyte"

# Every set: whole, once more without a request, from a server that ends its answers or knows no ranges, and from a folder.
while IFS='|' read -r script files; do
  for way in "$address" "$address/cut" "$address/whole" "$tree/served"; do
    fresh
    # shellcheck disable=SC2086
    run 0 $script "$tree/out" --from "$way"
    [[ $way != */cut ]] || says " at byte "
    # shellcheck disable=SC2086
    holds out $files
    before=$(requests)
    # shellcheck disable=SC2086
    run 0 $script "$tree/out" --from "$way"
    says "is there already"
    [ "$(requests)" -eq "$before" ] || die "$script asked the server again"
  done
  # Nothing wrong appears, and existing files stay.
  fresh
  run 1 "$script" "$tree/out" --from "$address/wrong"
  says "wrong checksum"
  says "--from takes another address"
  holds out ""
  run 1 "$script" "$tree/out" --from "$address/absent"
  says "404"
  holds out ""
  run 1 "$script" "$tree/out" --from http://127.0.0.1:1
  says "127.0.0.1"
  holds out ""
  run 1 "$script" "$tree/out" --from "$tree/build"
  holds out ""
  run 1 "$script" "$tree/out" --from "$tree/nowhere"
  says "--from needs a folder or an address, got '$tree/nowhere'"
done <<END
get_mnist.sh|$idx
get_fashion_mnist.sh|SHA256SUMS $idx
get_cifar10.sh|data_batch_1.bin data_batch_2.bin data_batch_3.bin data_batch_4.bin data_batch_5.bin test_batch.bin
get_cifar100.sh|SHA256SUMS coarse_label_names.txt fine_label_names.txt test.bin train.bin
get_voc.sh|ARCHIVES VOC2007 VOC2012
get_coco.sh|ARCHIVES annotations train2017 val2017
END

# Files of an earlier run are not requested again; other files are discarded.
fresh
mkdir "$tree/out"
size=$(stat -c %s "$tree/served/cifar-100-binary.tar.gz")
head -c $((size / 2)) "$tree/served/cifar-100-binary.tar.gz" >"$tree/out/cifar-100-binary.tar.gz.part"
run 0 get_cifar100.sh "$tree/out" --from "$address"
says "going on with $address/cifar-100-binary.tar.gz at byte $((size / 2))"
[ "$(cat "$tree/served/requests")" = "/cifar-100-binary.tar.gz $((size / 2))" ] || die "asked for $(cat "$tree/served/requests")"
for bytes in 10 $((2 * size)); do
  fresh
  mkdir "$tree/out"
  head -c "$bytes" /dev/zero >"$tree/out/cifar-100-binary.tar.gz.part"
  run 0 get_cifar100.sh "$tree/out" --from "$address"
done
# A file that changed since is fetched again.
echo >>"$tree/out/train.bin"
run 0 get_cifar100.sh "$tree/out" --from "$address"
says "the checksum matches"

# One mirror after the other.
fresh
sed -i '/^mirrors=(/,/^)/d' "$tree/data_scripts/get_fashion_mnist.sh"
sed -i "/^# The MD5/i mirrors=($address/absent $address/wrong $address/cut)" "$tree/data_scripts/get_fashion_mnist.sh"
run 0 get_fashion_mnist.sh "$tree/out"
says "$address/wrong/train-images-idx3-ubyte.gz gave a file with a wrong checksum; nothing was kept"
says "404"
sed -i "s# $address/cut)#)#" "$tree/data_scripts/get_fashion_mnist.sh"
rm "$tree/out/SHA256SUMS"
run 1 get_fashion_mnist.sh "$tree/out"
says "the others failed too"
says "The same command goes on"

# Parts of COCO.
fresh
run 0 get_coco.sh "$tree/out" --part val --from "$address"
holds out ARCHIVES annotations val2017
run 1 get_coco.sh "$tree/out" --part test
says "--part is one of: train val , got 'test'"
run 1 get_voc.sh "$tree/out" --part val
says "unknown option --part (usage: get_voc.sh [OUT_DIR] [--from FOLDER_OR_ADDRESS])"

# Results of the create scripts: SCRIPT|GET_SCRIPT|RESULTS
while IFS='|' read -r script get results; do
  rm -rf "$tree/data" "$tree/out"
  run 1 "$script" "$tree/data" "$tree/out"
  says "$get"
  run 0 "$get" "$tree/data" --from "$tree/served"
  run 0 "$script" "$tree/data" "$tree/out"
  # shellcheck disable=SC2086
  holds out $results
  run 1 "$script" "$tree/data" "$tree/out"
  says "exists; --force replaces it"
  run 0 "$script" "$tree/data" "$tree/out" --force
done <<'END'
create_mnist.sh|get_mnist.sh|mnist_test_lmdb mnist_train_lmdb
create_fashion_mnist.sh|get_fashion_mnist.sh|fashion_mnist_test_lmdb fashion_mnist_train_lmdb
create_cifar10.sh|get_cifar10.sh|cifar10_test_lmdb cifar10_train_lmdb mean.binaryproto
create_cifar100.sh|get_cifar100.sh|cifar100_test_lmdb cifar100_train_lmdb mean.binaryproto
create_voc.sh|get_voc.sh|labelmap_voc.prototxt test_name_size.txt voc_test_lmdb voc_train_lmdb
create_coco.sh|get_coco.sh|coco_train_lmdb coco_val_lmdb labelmap_coco.prototxt
END
rm -rf "$tree/data/train2017" "$tree/out"
run 0 create_coco.sh "$tree/data" "$tree/out"
holds out coco_val_lmdb labelmap_coco.prototxt

# ImageNet from archives and from folders; the classes of val in each form that they come in.
image_net="ilsvrc12_train_lmdb ilsvrc12_val_lmdb imagenet_mean.binaryproto synsets.txt"
rm -rf "$tree/data"
mkdir "$tree/data"
cp "$tree"/served/ILSVRC2012_img_*.tar "$tree/data"
run 1 create_imagenet.sh
says "which folder has ImageNet?"
run 1 create_imagenet.sh "$tree/made" "$tree/out"
says "has neither the folder train nor ILSVRC2012_img_train.tar"
run 1 create_imagenet.sh "$tree/data" "$tree/out" --size 32
says "says nothing of the classes of val"
printf '1\n0\n2\n' >"$tree/data/val.txt"
run 1 create_imagenet.sh "$tree/data" "$tree/out" --size 32
says 'val.txt:1: expected "PICTURE CLASS", with a class below 2'
rm "$tree/data/val.txt"
for form in caffe_ilsvrc12.tar.gz LOC_val_solution.csv val.txt; do
  rm -rf "$tree/out"
  cp "$tree/made/$form" "$tree/data"
  run 0 create_imagenet.sh "$tree/data" "$tree/out" --size 32
  # shellcheck disable=SC2086
  holds out $image_net
  says "ilsvrc12_train_lmdb of 6 pictures"
  says "ilsvrc12_val_lmdb of 3 pictures"
  cmp "$tree/out/synsets.txt" "$tree/made/synsets.txt"
  [ -e "$tree/val.mdb" ] || cp "$tree/out/ilsvrc12_val_lmdb/data.mdb" "$tree/val.mdb"
  cmp "$tree/out/ilsvrc12_val_lmdb/data.mdb" "$tree/val.mdb"
  rm "$tree/data/$form"
done
# A folder that was not unpacked to its end is unpacked again, one that was is left alone.
rm -r "$tree/data/train/.whole" "$tree/data/train/n02000002" "$tree/out"
mkdir "$tree/data/train/n02000002.part"
touch -d 2001-01-01 "$tree/data/train/n01000001"
mkdir "$tree/data/val/n01000001"
mv "$tree"/data/val/*.JPEG "$tree/data/val/n01000001"
run 0 create_imagenet.sh "$tree/data" "$tree/out" --size 32 --encoded
says "ilsvrc12_train_lmdb of 6 pictures"
[ "$(stat -c %y "$tree/data/train/n01000001" | cut -c1-4)" = 2001 ] || die "n01000001 was unpacked again"
echo >>"$tree/data/ILSVRC2012_img_val.tar"
rm -r "$tree/data/val"
run 1 create_imagenet.sh "$tree/data" "$tree/out" --force
says "ILSVRC2012_img_val.tar is damaged or not whole"

# Every script tells its use.
for script in "$tree"/data_scripts/{get,create}_*.sh; do
  run 0 "${script##*/}" -h
  says "  ${script##*/} "
  run 1 "${script##*/}" --nonsense
  says "unknown option --nonsense (usage: ${script##*/}"
done
echo "the scripts of data sets are right"
