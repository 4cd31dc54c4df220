#!/usr/bin/env bash
# Crema in an external project: found by CMake's find_package in an installed folder that has been moved, with only its
# one header; and as a part of the project's own tree.
#
#   consumer.sh [BUILD_FOLDER]        exit code 77: no numpy, which renders the digits
set -euo pipefail
cd "$(dirname "$0")/.."
source=$PWD build=$(realpath "${1:-build}")
die() { echo "consumer.sh: $*" >&2; exit 1; }
/usr/bin/python3 -c 'import numpy' 2>/dev/null || { echo "skipped: needs python3-numpy"; exit 77; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CREMA_FLAGS='' XDG_CONFIG_HOME=$work  # the user's own flags are not tested
quietly() { "$@" >"$work/log" 2>&1 || die "$* failed: $(cat "$work/log")"; }

quietly cmake --install "$build" --prefix "$work/first" --strip
mv "$work/first" "$work/crema"
[ "$(cd "$work/crema/include" && find . -type f)" = ./crema.h ] || die "include/ holds more than crema.h"
package=$work/crema/lib/cmake/Crema
! grep -e "$work/first" -e "$source" -e "$build" "$package"/* || die "the package names the folders of its build"
version=$(sed -n 's/^project(crema VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
grep -q "PACKAGE_VERSION \"$version\"" "$package/CremaConfigVersion.cmake" || die "the package is not version $version"

# The project of the page, with its two programs, and a larger one.
mkdir "$work/page"
block() { awk -v fence="^\`\`\`$1\$" -v wanted="$2" '/^```$/ { inside = 0 } inside && number == wanted; $0 ~ fence { inside = 1; ++number }' src/crema.md; }
block cmake 1 >"$work/page/CMakeLists.txt"
block cpp 1 >"$work/page/use.cpp"
block cpp 2 >"$work/page/name.cpp"
block cpp 4 >"$work/page/fraction.cpp"
sed 's/\<use\>/name/g' "$work/page/CMakeLists.txt" | grep -E 'add_executable|target_link' >"$work/page/more"
sed 's/\<use\>/fraction/g; s/add_executable(fraction/& MODULE/; s/add_executable/add_library/' "$work/page/CMakeLists.txt" |
  grep -E 'add_library|target_link' >>"$work/page/more"
cat "$work/page/more" >>"$work/page/CMakeLists.txt"
for project in "$work/page" tests/consumer; do
  made=$work/build/$(basename "$project")
  quietly cmake -S "$project" -B "$made" -G Ninja -DCMAKE_PREFIX_PATH="$work/crema" -DCMAKE_CXX_EXTENSIONS=OFF \
    -DCMAKE_CXX_FLAGS="-Wall -Wextra -Wpedantic -Wconversion -Werror -fvisibility=hidden"
  quietly cmake --build "$made"
  ! ninja -C "$made" -t commands | grep -e -march -e -fopenmp || die "the package gives its users our flags"
done

mkdir -p "$work/data/digits"
quietly /usr/bin/python3 data_scripts/make_digits.py "$work/data" --train 2000 --test 500
for part in train t10k; do
  quietly "$work/crema/bin/convert_mnist_data" "$work"/data/$part-{images-idx3,labels-idx1}-ubyte \
    "$work/data/digits/digits_${part/t10k/test}_lmdb"
done
cd "$work"
cp -r crema/share/crema/models .
cat >solver.prototxt <<END
net: "models/lenet/digits_train_val.prototxt"
base_lr: 0.01 momentum: 0.9 weight_decay: 0.0005 lr_policy: "fixed" max_iter: 150 random_seed: 1
snapshot_prefix: "lenet"
END
# One thread: on cores that others use, too, OpenMP's threads wait for each other.
export OMP_NUM_THREADS=1
digits() { build/consumer/digits "$1" models/lenet/digits_train_val.prototxt data/t10k-{images-idx3,labels-idx1}-ubyte; }
digits solver.prototxt >out 2>&1 || die "digits failed: $(cat out)"
awk '$1 == "accuracy" && $2 > 0.8 { good = 1 } END { exit !good }' out || die "digits is no good: $(cat out)"
# It catches the library's exceptions.
! digits missing.prototxt >/dev/null 2>log || die "digits trains without a solver"
grep -q 'missing.prototxt' log || die "digits does not say what is missing: $(cat log)"
build/page/use >page.out 2>&1 || die "the README's program failed: $(cat page.out)"
[ "$(wc -w <page.out)" -eq 12 ] || die "the README's program does not print a loss and ten probabilities: $(cat page.out)"

# The page's layer, in the program.
cat >own.prototxt <<END
layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 } } }
layer { name: "own" type: "Fraction" bottom: "x" top: "y" }
END
quietly crema/bin/crema time -model own.prototxt -forward -iterations 1 -layers build/page/libfraction.so
! crema/bin/crema time -model own.prototxt -forward -iterations 1 >/dev/null 2>log || die "own.prototxt runs without its layer"

# A picture named by the program of the page, with a deploy file and what it does not say.
quietly "$work/crema/bin/deploy" -model models/lenet/digits_train_val.prototxt -output deploy.prototxt
printf '%s\n' zero one two three four five six seven eight nine >labels.txt
{ printf 'P5\n28 28\n255\n'; head -c 800 data/t10k-images-idx3-ubyte | tail -c 784; } >digit.pgm
if ! build/page/name deploy.prototxt models/lenet/lenet_digits_iter_100.caffemodel 0 labels.txt digit.pgm >page.out 2>&1; then
  grep -q 'without OpenCV' page.out || die "the page's second program failed: $(cat page.out)"
else
  [ "$(grep -cE '^[0-9.e-]+ - (zero|one|two|three|four|five|six|seven|eight|nine)$' page.out)" -eq 5 ] ||
    die "the page's second program does not name five classes: $(cat page.out)"
fi

# The runtime alone: its page's project, in C. A process has one of the two libraries, so the program is of that one.
quietly cmake --install "$build" --prefix "$work/runtime" --component infer --strip
[ "$(cd runtime/include && find . -type f)" = ./crema_infer.h ] || die "the runtime's include/ is not crema_infer.h"
[ ! -e runtime/lib/libcrema.so ] || die "the runtime brings libcrema"
mkdir runtime_page
of_page() { awk -v fence="^\`\`\`$1\$" '/^```$/ { inside = 0 } inside; $0 ~ fence { inside = 1 }' "$source/src/infer.md"; }
of_page cmake >runtime_page/CMakeLists.txt
of_page c >runtime_page/name.c
[ "$(wc -l <runtime_page/name.c)" -le 60 ] || die "the runtime's program is longer than 60 lines"
quietly cmake -S runtime_page -B runtime_page/build -G Ninja -DCMAKE_PREFIX_PATH="$work/runtime" -DCMAKE_C_EXTENSIONS=OFF \
  -DCMAKE_C_STANDARD=99 -DCMAKE_C_FLAGS="-Wall -Wextra -pedantic -Wconversion -Werror"
quietly cmake --build runtime_page/build
printf '%s\n' 'find_package(Crema REQUIRED COMPONENTS crema)' >>runtime_page/CMakeLists.txt
! cmake -S runtime_page -B runtime_page/build >log 2>&1 || die "a runtime is taken for the whole of Crema"
grep -q 'installed without the component crema' log || die "the package does not say what is missing: $(cat log)"
if [ -e runtime/lib/libcrema_jpeg.so ] && /usr/bin/python3 -c 'import cv2' 2>/dev/null; then
  /usr/bin/python3 -c 'import cv2; cv2.imwrite("digit.jpg", cv2.imread("digit.pgm", 0))'
  quietly runtime_page/build/name deploy.prototxt models/lenet/lenet_digits_iter_100.caffemodel 0 labels.txt digit.jpg
  [ "$(grep -cE '^[0-9.e-]+ - (zero|one|two|three|four|five|six|seven|eight|nine)$' log)" -eq 5 ] ||
    die "the runtime's program does not name five classes: $(cat log)"
fi

mkdir whole
sed "s#find_package.*#set(CMAKE_CXX_STANDARD 17)\nset(CMAKE_CXX_VISIBILITY_PRESET hidden)\nset(CMAKE_UNITY_BUILD ON)\nadd_subdirectory($source crema)#" \
  "$source/tests/consumer/CMakeLists.txt" >whole/CMakeLists.txt
echo 'file(WRITE ${CMAKE_BINARY_DIR}/type "${CMAKE_BUILD_TYPE}")' >>whole/CMakeLists.txt
cp "$source/tests/consumer/digits.cpp" whole
quietly cmake -S whole -B whole/build -G Ninja -DCREMA_CUDA=OFF
[ ! -s whole/build/type ] || die "our build type is taken for the whole project: $(cat whole/build/type)"
commands=$(ninja -C whole/build -t commands digits)
grep -e '-O3 .*src/base/files.cpp' <<<"$commands" >log || die "in a project without a build type ours is not optimized"
! grep -e -fvisibility -e -std=gnu++17 log || die "the project's standard or visibility is taken for our files"
! grep -e '-c .*digits' <<<"$commands" | grep -e -march -e -fopenmp -e -Wall -e "$source/src" -e protobuf ||
  die "a subdirectory gives its users our flags"
! ninja -C whole/build -t targets all | grep -e '_tests: ' -e '/golden: ' || die "a subdirectory brings our tests"
! grep -l libcrema $(find whole/build -name cmake_install.cmake) || die "a subdirectory brings our installation"
echo "an installed Crema serves another project: $(tail -n 1 out)"
