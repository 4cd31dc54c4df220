#!/usr/bin/env bash
# Makes the databases with boxes (LMDB) of COCO 2017, and the map of its 80 classes to the labels 1 to 80.
#
#   create_coco.sh [DATA_DIR] [OUT_DIR] [--force]
#
# DATA_DIR: annotations, and train2017 or val2017 or both (data/coco in this repository). OUT_DIR: where coco_train_lmdb,
# coco_val_lmdb and labelmap_coco.prototxt go (DATA_DIR). --force: replace existing results. The pictures stay encoded, and those
# for training are shuffled; an object that represents a crowd is difficult.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

parse_create "$root/data/coco" "$@"
need_tools convert_annoset create_label_map
parts=()
for part in train val; do
  [ -d "$data/${part}2017" ] || continue
  [ -f "$data/annotations/instances_${part}2017.json" ] || die "$data/annotations/instances_${part}2017.json is missing"
  parts+=("$part")
done
[ ${#parts[@]} -gt 0 ] || die "$data has neither train2017 nor val2017 (data_scripts/get_coco.sh gets COCO)"
results=("${parts[@]/%/_lmdb}")
results=("${results[@]/#/coco_}" labelmap_coco.prototxt)
refuse_existing "${results[@]}"

make_work
"$tools/create_label_map" -anno_format=coco -include_background "$data/annotations/instances_${parts[-1]}2017.json" \
  "$work/labelmap_coco.prototxt" || die "create_label_map failed"
for part in "${parts[@]}"; do
  echo "making $out/coco_${part}_lmdb"
  shuffle=()
  [ "$part" = val ] || shuffle=(-shuffle)
  "$tools/convert_annoset" -anno_format=coco -strict -encoded -encode_type=jpg -check_label "${shuffle[@]}" \
    -label_map_file="$work/labelmap_coco.prototxt" "$data/${part}2017/" "$data/annotations/instances_${part}2017.json" \
    "$work/coco_${part}_lmdb" || die "convert_annoset failed; nothing was changed in $out"
done
move_results "${results[@]}"
