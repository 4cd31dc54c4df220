#!/usr/bin/env bash
# Gets Pascal VOC 2007 and 2012 (21,503 annotated pictures, 20 classes): three archives of 2.8 GB, unpacked.
#
#   get_voc.sh [OUT_DIR] [--from FOLDER_OR_ADDRESS]
#
# OUT_DIR: where VOC2007 and VOC2012 go (data/VOCdevkit in this repository); twice 2.8 GB while it runs. --from: take the archives
# from a local folder, or from another server. Each is checked against its MD5 before it is unpacked. An interrupted download
# resumes, also in a later run. Then: create_voc.sh
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

mirrors=(
  https://thor.robots.ox.ac.uk/pascal/VOC
  http://host.robots.ox.ac.uk/pascal/VOC
)
unpack() { tar -xf "$1" -C "$2" --strip-components=1; }  # ARCHIVE FOLDER

parse_get "$root/data/VOCdevkit" "$@"
make_work
# The publisher states no checksums; these MD5 are the ones that torchvision checks.
get_unpacked voc2007/VOCtrainval_06-Nov-2007.tar md5:c52e279531787c972589f7e41ab4ae64 " (439 MB)" unpack \
  VOC2007/ImageSets/Main/trainval.txt
get_unpacked voc2007/VOCtest_06-Nov-2007.tar md5:b6e924de25625d8de591ea690078ad9f " (431 MB)" unpack \
  VOC2007/ImageSets/Main/test.txt
get_unpacked voc2012/VOCtrainval_11-May-2012.tar md5:6cd6e144f989b92b3379bac3b3de84fd " (1.9 GB)" unpack \
  VOC2012/ImageSets/Main/trainval.txt
echo "$out: Pascal VOC 2007 and 2012"
