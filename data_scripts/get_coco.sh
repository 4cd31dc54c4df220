#!/usr/bin/env bash
# Gets COCO 2017 (118,287 + 5,000 pictures, 80 classes of objects): pictures and annotations, unpacked.
#
#   get_coco.sh [OUT_DIR] [--part train|val] [--from FOLDER_OR_ADDRESS]
#
# OUT_DIR: where train2017, val2017 and annotations go (data/coco in this repository); twice 19 GB while it runs. --part: only one
# of the two; val is 0.8 GB. --from: take the archives from a local folder, or from another server. Each is checked against its MD5
# before it is unpacked. An interrupted download resumes, also in a later run. Then: create_coco.sh
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

mirrors=(
  http://images.cocodataset.org
  https://s3.amazonaws.com/images.cocodataset.org
)
unpack() { python3 -m zipfile -e "$1" "$2"; }  # ARCHIVE FOLDER; there may be no unzip

part="train val"
parse_get "$root/data/coco" "$@"
make_work
# The publisher states no checksums; these MD5 are the ones that PaddleDetection checks.
get_unpacked annotations/annotations_trainval2017.zip md5:f4bbac642086de4f52a3fdda2de5fa2c " (253 MB)" unpack \
  annotations/instances_val2017.json
[ "$part" = train ] ||
  get_unpacked zips/val2017.zip md5:442b8da7639aecaf257c1dceb8ba8c80 " (816 MB)" unpack val2017
[ "$part" = val ] ||
  get_unpacked zips/train2017.zip md5:cced6f7f71b7629ddf16f17bbcfab6b2 " (19.3 GB)" unpack train2017
echo "$out: COCO 2017${part:+, $part}"
