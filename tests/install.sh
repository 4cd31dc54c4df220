#!/usr/bin/env bash
# `cmake --install` makes a folder that runs with only glibc (and CUDA, unless that is bundled), also after it has
# moved: trains from an LMDB and handles images in a tree with nothing else. Its Python package is imported, too.
#
#   install.sh [BUILD_FOLDER]        exit code 77: this user may not chroot
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
die() { echo "install.sh: $*" >&2; exit 1; }

export PATH=$PATH:/usr/sbin:/sbin
inside=("$(command -v chroot)")
[ "$(id -u)" -eq 0 ] || inside=("$(command -v unshare)" --map-root-user "${inside[@]}")
if ! "${inside[@]}" / true 2>/dev/null; then
  echo "skipped: this user may not chroot"
  exit 77
fi

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree"/{tmp,data/digits,opt,srv,images}
folder=$tree/opt/crema
cmake --install "$build" --prefix "$folder" --strip >"$tree/tmp/log" || die "$(cat "$tree/tmp/log")"
! readelf -S "$folder/bin/crema" | grep -q '\.symtab' || die "bin/crema is not stripped"
for file in bin/{train,caffe,convert_imageset} include/crema.h lib/cmake/Crema/CremaConfig.cmake share/crema/{README.md,LICENSE,models/lenet/solver.prototxt} share/man/man1/crema-train.1; do
  [ -e "$folder/$file" ] || die "$file is missing"
done

# Links of pages lead somewhere.
"$(command -v /usr/bin/python3 || echo python3)" -B - "$folder/share/crema" <<'END' || die "the installed pages have broken links"
import glob, os, sys
sys.path.insert(0, "tests/pages")
import extract
top, broken = sys.argv[1], []
pages = glob.glob(f"{top}/**/*.md", recursive=True)
for page in pages:
    with open(page) as file:
        broken += [f"{page}: {link}" for link in extract.links_of(file.read())
                   if not os.path.exists(os.path.join(os.path.dirname(page), link))]
print("\n".join(broken))
sys.exit(bool(broken) or len(pages) < 50)
END

# Where programs and libraries look for others: next to themselves and in absolute folders, never in the working
# directory.
modules=$(ls "$build"/python/crema/_crema*.so "$folder"/python/crema/_crema*.so 2>/dev/null || true)
for object in "$build"/tools/crema "$build"/lib/*.so "$folder"/bin/crema "$folder"/lib/libcrema* $modules; do
  path=$(readelf -d "$object" | sed -n 's/.*(R\(UN\)\?PATH).*\[\(.*\)\]/\2/p')
  [ -n "$path" ] || continue
  while IFS= read -r entry; do
    [[ $entry == /* || $entry == '$ORIGIN'* ]] || die "$object looks for libraries in '$entry': its path is $path"
  done <<<"${path//:/$'\n'}"
done

# Files from the machine, each where this one has it.
machine='^(ld-linux.*|libc|libm|libmvec|libdl|librt|libpthread|libresolv|libutil)\.so'
cuda='^lib(cudart|cublas|cublasLt|cudnn|nvrtc|nccl)\.so'
mpi='^lib(mpi|mpich|open-pal|open-rte)\.so'  # only processes that MPI has started load it
needed=$(for object in "$folder"/bin/crema "$folder"/lib/*.so* "$folder"/python/crema/_crema*.so; do
           [ -e "$object" ] || continue
           readelf -d "$object" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'
         done | sort -u)
bring() { mkdir -p "$tree$(dirname "$1")" && cp -L "$1" "$tree$1"; }
places=$(ldd "$build/tools/crema")
glibc=$(dirname "$(awk '$1 == "libc.so.6" {print $3}' <<<"$places")")
for name in $needed libdl.so.2 librt.so.1 libpthread.so.0; do
  [ -e "$folder/lib/$name" ] && continue
  [[ $name =~ $mpi ]] && continue
  if [[ $name =~ $cuda ]]; then
    bring "$(awk -v name="$name" '$1 == name {print $3; exit}' <<<"$places")"
  elif [[ $name =~ $machine ]]; then
    [[ $name == ld-linux* ]] || bring "$glibc/$name"
  else
    die "$name is needed and not in the folder"
  fi
done
bring "$(readelf -p .interp "$folder/bin/crema" | grep -o '/.*')"

# 64 images of 28 x 28 and their labels in MNIST's format; a picture that needs no program to be written.
for part in train test; do
  { printf '\0\0\10\3\0\0\0\100\0\0\0\34\0\0\0\34'; head -c $((64 * 784)) /dev/urandom; } >"$tree/data/$part.images"
  { printf '\0\0\10\1\0\0\0\100'; for i in {1..64}; do printf "\\$((i % 8))"; done; } >"$tree/data/$part.labels"
done
{ printf 'P6 8 8 255\n'; head -c 192 /dev/urandom; } >"$tree/images/a.ppm"
echo "a.ppm 1" >"$tree/images/list.txt"

try() {  # VERB ARGUMENT...
  # The tree has no /proc, from which the loader would learn a program's location.
  env -i LD_ORIGIN_PATH="$at/bin" "${inside[@]}" "$tree" "$at/bin/$1" "${@:2}" >"$tree/tmp/log" 2>&1 || die "in $at: $1 failed: $(cat "$tree/tmp/log")"
}
# The Python that the module was built for, which the tree has not: outside of it, but with the folder's libraries.
python=
for candidate in python3 /usr/bin/python3; do
  [ -n "$modules" ] && "$candidate" -c 'import numpy' 2>/dev/null && { python=$candidate; break; }
done
import='
import crema, sys
libraries = {line.split(None, 5)[5].strip() for line in open("/proc/self/maps") if "libcrema.so" in line}
assert libraries == {sys.argv[1] + "/lib/libcrema.so"}, libraries
from crema import layers as L
spec = crema.NetSpec()
spec.data = L.DummyData(shape=dict(dim=[2, 3]))
spec.score = L.InnerProduct(spec.data, num_output=4)
open(sys.argv[2], "w").write(str(spec.to_proto()))
assert crema.Net(sys.argv[2], crema.TEST).forward()["score"].shape == (2, 4)
'
for at in /opt/crema /srv/moved; do
  [ $at = /opt/crema ] || mv "$folder" "$tree$at"
  if [ -n "$python" ]; then
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$tree$at/python "$python" -c "$import" "$(realpath "$tree")$at" "$tree/tmp/net.prototxt" \
      >"$tree/tmp/log" 2>&1 ||
      die "in $at: the Python package: $(cat "$tree/tmp/log")"
  fi
  rm -rf "$tree"/data/digits/* "$tree"/encoded
  for part in train test; do
    try convert_mnist_data /data/$part.images /data/$part.labels /data/digits/digits_${part}_lmdb
  done
  # The installed LeNet, from another folder: its net is found above the solver.
  try train -solver "$at/share/crema/models/lenet/digits_solver.prototxt" -set max_iter=3 -set display=1 -set test_iter=1 \
    -set test_interval=3 -set snapshot_prefix=/tmp/net
  grep -q 'Optimization Done' "$tree/tmp/log" || die "in $at: no training: $(cat "$tree/tmp/log")"
  if [ -e "$tree$at/lib/libcrema_images.so" ]; then
    try convert_imageset -encoded -encode_type png /images/ /images/list.txt /encoded
    try compute_image_mean /encoded
  fi
done
echo "the installed folder runs on its own: $(ls "$tree$at/lib" | wc -l) libraries, $(du -sh "$tree$at" | cut -f1)"
