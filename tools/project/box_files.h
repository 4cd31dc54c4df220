// Finds pictures and their boxes in a folder, in the forms in which people pass data sets on.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/convert/annotations/annotations.h"
#include "data/convert/annotations/class_numbers.h"

namespace crema {

// One set of pictures; its paths begin at `root`, which ends with a slash.
struct BoxSet {
  std::string root;
  std::vector<ListedImage> images;  // with the files of their boxes; of COCO empty
  std::string coco;                 // the path of its file
};

struct BoxFiles {
  AnnotationFormat format = AnnotationFormat::voc;
  std::string form;          // "Pascal VOC's", for people
  std::vector<BoxSet> sets;  // one, or that for training and that for testing
  std::vector<std::string> classes;
  std::vector<std::string> lone;  // files of boxes without a picture
};

// Folders are as those data sets have them:
//   VOC   Annotations/*.xml next to JPEGImages/ or images/, or next to the pictures; ImageSets/Main/train.txt
//         and val.txt divide them; also in a folder below, VOCdevkit/VOC2007
//   COCO  instances_*.json, _annotations.coco.json or annotations.json, here or in folders below
//   YOLO  labels/*.txt next to images/, with the names in classes.txt, obj.names or data.yaml; either in train/
//         and val/
// None has no sets.
BoxFiles find_boxes(const std::string& folder, Log& log);

}  // namespace crema
