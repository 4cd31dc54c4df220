#!/usr/bin/env bash
# Draws images of circles, squares and triangles (make_shapes.py) and makes databases with boxes of them (LMDB).
#
#   create_shapes.sh [OUT_DIR] [--force]
#
# OUT_DIR: where everything goes (data/shapes in this repository). --force: replace databases that exist.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

parse_create "$root/data/shapes" "$@"
need_tools convert_annoset
results=(shapes_train_lmdb shapes_test_lmdb)
refuse_existing "${results[@]}"

make_work
"$root/data_scripts/make_shapes.py" "$out" || die "make_shapes.py failed; no database was changed in $out"
for part in train test; do
  echo "making $out/shapes_${part}_lmdb"
  "$tools/convert_annoset" -encoded -label_map_file="$out/labelmap.prototxt" "$out/" "$out/$part.txt" \
    "$work/shapes_${part}_lmdb" || die "convert_annoset failed; no database was changed in $out"
done
move_results "${results[@]}"
