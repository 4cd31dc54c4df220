#!/usr/bin/env bash
# Makes the databases with boxes (LMDB) of Pascal VOC, as for training SSD: VOC2007 and VOC2012 trainval, and VOC2007 test.
#
#   create_voc.sh [DATA_DIR] [OUT_DIR] [--force]
#
# DATA_DIR: the folder with VOC2007 and VOC2012 (data/VOCdevkit in this repository). OUT_DIR: where voc_train_lmdb, voc_test_lmdb,
# labelmap_voc.prototxt and test_name_size.txt go (data/VOC0712). --force: replace existing results. The pictures stay encoded,
# and those for training are shuffled.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

default_out=$root/data/VOC0712
parse_create "$root/data/VOCdevkit" "$@"
need_tools convert_annoset create_label_map
sets=(VOC2007/trainval VOC2012/trainval VOC2007/test)
for set in "${sets[@]}"; do
  file=$data/${set%/*}/ImageSets/Main/${set#*/}.txt
  [ -f "$file" ] || die "$file is missing (data_scripts/get_voc.sh gets Pascal VOC)"
done
results=(voc_train_lmdb voc_test_lmdb labelmap_voc.prototxt test_name_size.txt)
refuse_existing "${results[@]}"

listed() {  # SET: "image annotation" lines
  tr -d '\r' <"$data/${1%/*}/ImageSets/Main/${1#*/}.txt" |
    awk -v year="${1%/*}" 'NF { print year "/JPEGImages/" $1 ".jpg " year "/Annotations/" $1 ".xml" }'
}

make_work
{ listed "${sets[0]}"; listed "${sets[1]}"; } >"$work/train.txt"
listed "${sets[2]}" >"$work/test.txt"
printf '%s\n' aeroplane bicycle bird boat bottle bus car cat chair cow diningtable dog horse motorbike person pottedplant sheep \
  sofa train tvmonitor >"$work/names.txt"
"$tools/create_label_map" -include_background "$work/names.txt" "$work/labelmap_voc.prototxt" || die "create_label_map failed"
for part in train test; do
  echo "making $out/voc_${part}_lmdb"
  shuffle=()
  [ "$part" = test ] || shuffle=(-shuffle)
  "$tools/convert_annoset" -strict -encoded -encode_type=jpg -check_label "${shuffle[@]}" \
    -label_map_file="$work/labelmap_voc.prototxt" "$data/" "$work/$part.txt" "$work/voc_${part}_lmdb" ||
    die "convert_annoset failed; nothing was changed in $out"
done
# "name height width" of the pictures for testing, with which DetectionOutput writes its results.
python3 - "$data" "$work/test.txt" >"$work/test_name_size.txt" <<'PY' || die "the sizes cannot be read; nothing was changed in $out"
import os, sys, xml.etree.ElementTree as tree
for line in open(sys.argv[2]):
    annotation = line.split()[1]
    size = tree.parse(os.path.join(sys.argv[1], annotation)).find("size")
    name = os.path.splitext(os.path.basename(annotation))[0]
    print(name, size.find("height").text.strip(), size.find("width").text.strip())
PY
move_results "${results[@]}"
