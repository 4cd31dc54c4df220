#!/usr/bin/env bash
# LeNet, compiled to C in float32 and with 8-bit integers, on a Cortex-M4 in QEMU and here: both print the same for a random
# picture. Also prints the sizes. The packages: gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm python3-numpy
#   c_cortex_m.sh BUILD
set -euo pipefail
build=$(realpath "$1")
cd "$(dirname "$0")/../.."
for program in arm-none-eabi-gcc qemu-system-arm; do
  command -v $program >/dev/null || { echo "skipped: there is no $program"; exit 77; }
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$build/tools/train" -solver models/lenet/digits_solver.prototxt -assume data=8x1x28x28,label=8 -set max_iter=2 -set test_interval=1000 \
  -set test_initialization=false -set snapshot=0 -set snapshot_prefix="$folder/lenet" 2>/dev/null
"$build/tools/crema" export -to c -model models/lenet/digits_train_val.prototxt -weights "$folder/lenet_iter_2.caffemodel" \
  -assume data=1x1x28x28,label=1 -output "$folder/lenet.c" -main -verify=false 2>/dev/null
data_scripts/make_digits.py "$folder/digits" --train 600 --test 200 >/dev/null
for part in train t10k; do
  "$build/tools/convert_mnist_data" -backend=lmdb "$folder/digits/$part-images-idx3-ubyte" "$folder/digits/$part-labels-idx1-ubyte" \
    "$folder/digits/digits_${part/t10k/test}_lmdb" 2>/dev/null
done
sed "s|data/digits/|$folder/digits/|" models/lenet/digits_train_val.prototxt >"$folder/digits.prototxt"
"$build/tools/crema" quantize -model "$folder/digits.prototxt" -weights "$folder/lenet_iter_2.caffemodel" -output "$folder/int8" \
  -each_layer=false >/dev/null 2>&1
"$build/tools/crema" export -to c -model "$folder/int8/net.prototxt" -weights "$folder/int8/net.caffemodel" \
  -output "$folder/lenet_int8.c" -main -verify=false 2>/dev/null
board=tests/exchange/cortex_m
cp $board/start.c $board/mps2.ld "$folder"
cd "$folder"
(printf 'P5 28 28 255\n' && head -c 784 /dev/urandom) >picture.pgm
for net in lenet lenet_int8; do
  arm-none-eabi-gcc -std=c99 -Wall -Wextra -pedantic -Werror -O3 -mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16 \
    --specs=rdimon.specs -T mps2.ld start.c $net.c ${net}_main.c -o $net.elf -lm
  arm-none-eabi-size $net.elf
  gcc -O2 $net.c ${net}_main.c -o $net -lm
  ./$net picture.pgm >here
  timeout 60 qemu-system-arm -M mps2-an386 -nographic -monitor none -serial none \
    -semihosting-config enable=on,target=native,arg=lenet,arg=picture.pgm -kernel $net.elf >there
  [ "$(wc -l <here)" = 5 ]
  diff here there
  echo "$net: both print the same"
done
