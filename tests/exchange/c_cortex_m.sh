#!/usr/bin/env bash
# LeNet, compiled to C, on a Cortex-M4 in QEMU and here: both print the same for a random picture. Also prints the sizes.
# The packages: gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm
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
board=tests/exchange/cortex_m
cp $board/start.c $board/mps2.ld "$folder"
cd "$folder"
(printf 'P5 28 28 255\n' && head -c 784 /dev/urandom) >picture.pgm
arm-none-eabi-gcc -std=c99 -Wall -Wextra -pedantic -Werror -O3 -mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16 --specs=rdimon.specs \
  -T mps2.ld start.c lenet.c lenet_main.c -o lenet.elf -lm
arm-none-eabi-size lenet.elf
gcc -O2 lenet.c lenet_main.c -o lenet -lm
./lenet picture.pgm >here
timeout 60 qemu-system-arm -M mps2-an386 -nographic -monitor none -serial none \
  -semihosting-config enable=on,target=native,arg=lenet,arg=picture.pgm -kernel lenet.elf >there
[ "$(wc -l <here)" = 5 ]
diff here there
echo "both print the same"
